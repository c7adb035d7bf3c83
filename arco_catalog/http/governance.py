"""Handlers of governance: owners, qualities and tags. A change is a JSON merge patch."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, answer_response, json_response
from arco_catalog.operations import governance


async def of_namespace(context: RequestContext) -> Response:
    """The document of a namespace."""
    return json_response(await governance.namespace_governance(context.session(), context.namespace))


async def of_table(context: RequestContext) -> Response:
    """The document of a table."""
    return json_response(
        await governance.relation_governance(context.session(), context.namespace, context.table, "table")
    )


async def of_view(context: RequestContext) -> Response:
    """The document of a view."""
    return json_response(
        await governance.relation_governance(context.session(), context.namespace, context.view, "view")
    )


async def change_of_namespace(context: RequestContext) -> Response:
    """Changes that of a namespace."""
    patch = context.body or {}
    return answer_response(await governance.govern_namespace(context.session(), context.namespace, patch))


async def change_of_table(context: RequestContext) -> Response:
    """Changes that of a table."""
    session, patch = context.session(), context.body or {}
    return answer_response(await governance.govern_relation(session, context.namespace, context.table, "table", patch))


async def change_of_view(context: RequestContext) -> Response:
    """Changes that of a view."""
    session, patch = context.session(), context.body or {}
    return answer_response(await governance.govern_relation(session, context.namespace, context.view, "view", patch))
