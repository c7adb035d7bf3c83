"""The HTTP handler that searches for namespaces, tables, views and other relations by words of their names."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.operations.search import KINDS, search
from arco_catalog.planning.search import SearchQuery


async def find(context: RequestContext) -> Response:
    """Returns a page of the namespaces, tables, views, generic tables and semantic models that the caller may list,
    found by words in their names that start with the query's; with `type` only of that kind. A page may be empty before
    the last one. Raises `BadRequest` for an invalid query."""
    text, query = context.query.one("q"), context.query
    if text is None:
        raise BadRequest("Query parameter 'q' is missing: it has the words to search for")
    kind = query.choice("type", KINDS, "") or None
    limit, token = query.positive("limit"), query.one("pageToken")
    sought = SearchQuery.parse(text)
    found = await search(context.sessions.open(), sought, kind=kind, limit=limit, token=token)
    # Not how many names were read: the caller may not list all of them.
    return json_response({"results": [*found.results], "next-page-token": found.next_page_token})
