"""HTTP handlers that return the timelines of tables and views: their versions with who made each, when, and what it
changed (docs/receipts.md#timeline)."""

from arco_catalog.http.paging import paging
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.operations.timeline import read_timeline, read_version


async def of_table(context: RequestContext) -> Response:
    """Returns a page of the versions of a table, newest first, or from the one that was current at the time `at`.
    Raises `NoSuchTable`, and `BadRequest` for an invalid page token or time."""
    return await _page(context, context.table, "table")


async def of_view(context: RequestContext) -> Response:
    """Returns a page of the versions of a view, newest first, or from the one that was current at the time `at`. Raises
    `NoSuchView`, and `BadRequest` for an invalid page token or time."""
    return await _page(context, context.view, "view")


async def version_of_table(context: RequestContext) -> Response:
    """Returns one version of a table with its receipt. Raises `NoSuchTable`, `NotFound` for an unknown version, and
    `BadRequest` for what is neither its number nor its id."""
    return await _version(context, context.table, "table")


async def version_of_view(context: RequestContext) -> Response:
    """Returns one version of a view with its receipt. Raises `NoSuchView`, `NotFound` for an unknown version, and
    `BadRequest` for what is neither its number nor its id."""
    return await _version(context, context.view, "view")


async def _page(context: RequestContext, name: str, kind: str) -> Response:
    at_ms, page = context.query.positive("at"), paging(context)
    session = context.sessions.open()
    return json_response(await read_timeline(session, context.namespace, name, kind, page, at_ms))


async def _version(context: RequestContext, name: str, kind: str) -> Response:
    session, version = context.sessions.open(), context.path_name("version")
    return json_response(await read_version(session, context.namespace, name, kind, version))
