"""HTTP handlers that read and change governance: the owners, qualities and tags of namespaces, tables and views. A
change is a JSON merge patch. The routes of the catalog API and of the management API share them."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, answer_response, json_response
from arco_catalog.operations import governance


async def of_namespace(context: RequestContext) -> Response:
    """Returns the governance document of a namespace. Raises `NoSuchNamespace`."""
    return json_response(await governance.namespace_governance(await context.sessions.open_named(), context.namespace))


async def of_table(context: RequestContext) -> Response:
    """Returns the governance document of a table. Raises `NoSuchTable`."""
    session = await context.sessions.open_named()
    return json_response(await governance.relation_governance(session, context.namespace, context.table, "table"))


async def of_view(context: RequestContext) -> Response:
    """Returns the governance document of a view. Raises `NoSuchView`."""
    session = await context.sessions.open_named()
    return json_response(await governance.relation_governance(session, context.namespace, context.view, "view"))


async def change_of_namespace(context: RequestContext) -> Response:
    """Applies the merge patch in the body to the governance document of a namespace, and returns the changed document.
    Raises `NoSuchNamespace`, and `BadRequest` for an invalid patch."""
    session, patch = await context.sessions.open_named(), context.body or {}
    return answer_response(await governance.govern_namespace(session, context.namespace, patch))


async def change_of_table(context: RequestContext) -> Response:
    """Applies the merge patch in the body to the governance document of a table, and returns the changed document.
    Raises `NoSuchTable`, and `BadRequest` for an invalid patch."""
    session, patch = await context.sessions.open_named(), context.body or {}
    return answer_response(await governance.govern_relation(session, context.namespace, context.table, "table", patch))


async def change_of_view(context: RequestContext) -> Response:
    """Applies the merge patch in the body to the governance document of a view, and returns the changed document.
    Raises `NoSuchView`, and `BadRequest` for an invalid patch."""
    session, patch = await context.sessions.open_named(), context.body or {}
    return answer_response(await governance.govern_relation(session, context.namespace, context.view, "view", patch))
