"""Handlers of governance: owners, qualities and tags. A change is a JSON merge patch. They serve the catalog's own API
and that of management."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, answer_response, json_response
from arco_catalog.operations import governance
from arco_catalog.protocol.catalog import Session


async def of_namespace(context: RequestContext) -> Response:
    """The document of a namespace."""
    return json_response(await governance.namespace_governance(await _session(context), context.namespace))


async def of_table(context: RequestContext) -> Response:
    """The document of a table."""
    session = await _session(context)
    return json_response(await governance.relation_governance(session, context.namespace, context.table, "table"))


async def of_view(context: RequestContext) -> Response:
    """The document of a view."""
    session = await _session(context)
    return json_response(await governance.relation_governance(session, context.namespace, context.view, "view"))


async def change_of_namespace(context: RequestContext) -> Response:
    """Changes that of a namespace."""
    session, patch = await _session(context), context.body or {}
    return answer_response(await governance.govern_namespace(session, context.namespace, patch))


async def change_of_table(context: RequestContext) -> Response:
    """Changes that of a table."""
    session, patch = await _session(context), context.body or {}
    return answer_response(await governance.govern_relation(session, context.namespace, context.table, "table", patch))


async def change_of_view(context: RequestContext) -> Response:
    """Changes that of a view."""
    session, patch = await _session(context), context.body or {}
    return answer_response(await governance.govern_relation(session, context.namespace, context.view, "view", patch))


async def _session(context: RequestContext) -> Session:
    """A session with the catalog that the path names, as either API does. Raises what `open_catalog` does."""
    if context.endpoint.has_prefix:
        return context.sessions.open()
    context.sessions.requirements()  # what is wrong with the path is told whether there is such a catalog or not
    return await context.sessions.open_catalog(context.params["catalog"])
