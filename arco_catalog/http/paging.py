"""Reads from a query which page of a listing the client wants. A module of its own, so that handlers which only read do
not import those that change namespaces."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.operations.listing import Paging


def paging(context: RequestContext) -> Paging:
    """Returns the page that the query requests: its token, None for a listing without pages and empty for the first
    page, and the size, None for the default. Raises `BadRequest` if a parameter occurs twice, or the size is no integer
    of at least 1."""
    return Paging(context.query.one("pageToken"), context.query.positive("pageSize"))
