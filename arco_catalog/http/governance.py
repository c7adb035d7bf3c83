"""Handlers of governance: owners, qualities and tags. A change is a JSON merge patch. The routes of the catalog API and
of the management API share them."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, answer_response, json_response
from arco_catalog.operations import governance
from arco_catalog.protocol.catalog import Session


async def of_namespace(context: RequestContext) -> Response:
    """Returns the governance document of a namespace."""
    return json_response(await governance.namespace_governance(await _session(context), context.namespace))


async def of_table(context: RequestContext) -> Response:
    """Returns the governance document of a table."""
    session = await _session(context)
    return json_response(await governance.relation_governance(session, context.namespace, context.table, "table"))


async def of_view(context: RequestContext) -> Response:
    """Returns the governance document of a view."""
    session = await _session(context)
    return json_response(await governance.relation_governance(session, context.namespace, context.view, "view"))


async def change_of_namespace(context: RequestContext) -> Response:
    """Applies the merge patch in the body to the governance document of a namespace."""
    session, patch = await _session(context), context.body or {}
    return answer_response(await governance.govern_namespace(session, context.namespace, patch))


async def change_of_table(context: RequestContext) -> Response:
    """Applies the merge patch in the body to the governance document of a table."""
    session, patch = await _session(context), context.body or {}
    return answer_response(await governance.govern_relation(session, context.namespace, context.table, "table", patch))


async def change_of_view(context: RequestContext) -> Response:
    """Applies the merge patch in the body to the governance document of a view."""
    session, patch = await _session(context), context.body or {}
    return answer_response(await governance.govern_relation(session, context.namespace, context.view, "view", patch))


async def _session(context: RequestContext) -> Session:
    """Opens a session with the catalog in the path, which each API names by a parameter of its own. Raises what
    `open_catalog` raises."""
    if context.endpoint.has_prefix:
        return context.sessions.open()
    context.sessions.requirements()  # raises for a malformed path first, so the error does not depend on the catalog
    return await context.sessions.open_catalog(context.params["catalog"])
