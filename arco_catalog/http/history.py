"""The HTTP handler that returns the history of a catalog's names, roles and grants."""

from arco_catalog.http.names import check_name, decode_namespace
from arco_catalog.http.paging import paging
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.operations.history_page import HistoryFilter, history_page


async def list_(context: RequestContext) -> Response:
    """Returns a page of the operations on the catalog's names, roles and grants, newest first, as far as the caller may
    see them; with `namespace` only operations on it and on the names directly in it, with `table` only on that name in
    the namespace. A page may be empty though it is not the last. Raises an error for `table` without `namespace`,
    and for an invalid name or page token."""
    selection, page = _selection(context), paging(context)
    found = await history_page(context.sessions.open(), selection, page)
    return json_response({"operations": [*found.operations], "next-page-token": found.next_page_token})


def _selection(context: RequestContext) -> HistoryFilter:
    """Returns which operations the query selects: all of them if `namespace` is missing or empty. Raises `BadRequest`
    for `table` without `namespace`, for an invalid name, and for a parameter that occurs twice."""
    joined, name = context.query.one("namespace"), context.query.one("table")
    if not joined:
        if name is not None:
            raise BadRequest("Query parameter 'table' needs 'namespace': send the namespace of the table, too")
        return HistoryFilter()
    namespace = decode_namespace(joined, context.options.namespace_separator)
    return HistoryFilter(namespace, None if name is None else check_name(name, "table"))
