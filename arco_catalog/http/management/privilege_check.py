"""The HTTP handler of the management API that answers which privileges principals have in a catalog."""

from arco_catalog.http.management.bodies import read_batch
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.operations.management.privilege_check import check_rights


async def check(context: RequestContext) -> Response:
    """Checks privileges of the caller, or of other principals, and returns each outcome with its reason. Raises the
    errors of `read_batch`, `Sessions.open_catalog` and `check_rights`."""
    batch = context.parsed(read_batch)
    session = await context.sessions.open_catalog(context.params["catalog"])
    return json_response(await check_rights(session, context.sessions.required_realm, batch))
