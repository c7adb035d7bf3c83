"""HTTP handlers that list who has access to a namespace, table or view. The routes of the catalog API and of the
management API share them."""

from arco_catalog.http.paging import paging
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.operations.management.privilege_holders import HoldersQuery, list_holders
from arco_catalog.planning.access import Securable


async def of_namespace(context: RequestContext) -> Response:
    """Returns a page of the principals with privileges on a namespace, each with the role and the grants; with
    `privilege` in the query only the principals that have it. Without that, the privileges in `USUAL` count. A role
    without principals has a row, too, but a principal that must rotate credentials has none, and a page may be empty
    before the last one. Raises `NoSuchNamespace`, and `BadRequest` for another type's privilege or an invalid page."""
    return await _holders(context, "namespace", Securable(context.namespace))


async def of_table(context: RequestContext) -> Response:
    """Returns a page of the principals with privileges on a table, each with the role and the grants; with `privilege`
    in the query only the principals that have it. Without that, the privileges in `USUAL` count. A role without
    principals has a row, too, but a principal that must rotate credentials has none, and a page may be empty before the
    last one. Raises `NoSuchTable`, and `BadRequest` for another type's privilege or an invalid page."""
    return await _holders(context, "table", Securable(context.namespace, context.table))


async def of_view(context: RequestContext) -> Response:
    """Returns a page of the principals with privileges on a view, each with the role and the grants; with `privilege`
    in the query only the principals that have it. Without that, the privileges in `USUAL` count. A role without
    principals has a row, too, but a principal that must rotate credentials has none, and a page may be empty before the
    last one. Raises `NoSuchView`, and `BadRequest` for another type's privilege or an invalid page."""
    return await _holders(context, "view", Securable(context.namespace, context.view, "view"))


async def _holders(context: RequestContext, kind: str, on: Securable) -> Response:
    """Returns a page of the holders of privileges on a securable: of the one in the query's `privilege`, or else of the
    usual ones for the `kind`. Raises the errors of `HoldersQuery.of`, `open_named` and `list_holders`."""
    query, page = HoldersQuery.of(kind, on, context.query.one("privilege")), paging(context)
    session = await context.sessions.open_named()
    return json_response(await list_holders(session, context.sessions.realm, query, page))
