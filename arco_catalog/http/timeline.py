"""HTTP handlers that return the timelines of tables and views, their versions with who made each, when, and what it
changed, and that compare two versions (docs/receipts.md#timeline)."""

from arco_catalog.http.paging import paging
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.operations.timeline import read_timeline, read_version


async def of_table(context: RequestContext) -> Response:
    """Returns a page of the versions of a table, latest first, or from the one that was current at the time `at`. With
    `at`, a page may be empty before the last one. Raises `NoSuchTable`, and `BadRequest` for an invalid page token or
    time."""
    return await _page(context, context.table, "table")


async def of_view(context: RequestContext) -> Response:
    """Returns a page of the versions of a view, latest first, or from the one that was current at the time `at`. With
    `at`, a page may be empty before the last one. Raises `NoSuchView`, and `BadRequest` for an invalid page token or
    time."""
    return await _page(context, context.view, "view")


async def version_of_table(context: RequestContext) -> Response:
    """Returns one version of a table with its receipt. Raises `NoSuchTable`, `NotFound` for an unknown version, and
    `BadRequest` for what is neither its number nor its id."""
    return await _version(context, context.table, "table")


async def version_of_view(context: RequestContext) -> Response:
    """Returns one version of a view with its receipt. Raises `NoSuchView`, `NotFound` for an unknown version, and
    `BadRequest` for what is neither its number nor its id."""
    return await _version(context, context.view, "view")


async def compare_tables(context: RequestContext) -> Response:
    """Returns what differs between two versions of a table, `from` and `to`, by default the current one. Raises
    `NoSuchTable`, `NotFound` for a version that is unknown or has no metadata file any more, and an error without
    `from`, and for what names no version."""
    return await _comparison(context, context.table, "table")


async def compare_views(context: RequestContext) -> Response:
    """Returns what differs between two versions of a view, `from` and `to`, by default the current one. Raises
    `NoSuchView`, `NotFound` for a version that is unknown or has no metadata file any more, and an error without
    `from`, and for what names no version."""
    return await _comparison(context, context.view, "view")


async def _page(context: RequestContext, name: str, kind: str) -> Response:
    """Responds with a page of the versions of a table or view, the latest first; with `at`, in milliseconds since 1970,
    from the version that was current then."""
    at_ms, page = context.query.positive("at"), paging(context)
    session = context.sessions.open()
    return json_response(await read_timeline(session, context.namespace, name, kind, page, at_ms))


async def _version(context: RequestContext, name: str, kind: str) -> Response:
    """Responds with the version of a relation that the path names by number or id."""
    session, version = context.sessions.open(), context.path_name("version")
    return json_response(await read_version(session, context.namespace, name, kind, version))


async def _comparison(context: RequestContext, name: str, kind: str) -> Response:
    """Responds with the differences between the versions `from` and `to` in the query; without `to` with the current
    one. Fails without `from`."""
    # Imported here: a cold start with another request saves the time.
    from arco_catalog.operations.compare import compare_versions

    before, after = context.query.one("from"), context.query.one("to")
    session = context.sessions.open()
    if before is None:
        raise BadRequest("Query parameter 'from' is missing: send the version to compare with")
    return json_response(await compare_versions(session, context.namespace, name, kind, before, after))
