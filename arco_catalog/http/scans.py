"""HTTP handlers that plan scans of tables for engines."""

from arco_catalog.http.access_delegation import NOT_DELEGATED
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import NO_CONTENT, Response
from arco_catalog.http.tables import delegates
from arco_catalog.iceberg.errors import NoSuchPlanId
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.iceberg.scan_request import parse_plan_request
from arco_catalog.iceberg.shapes import STRING
from arco_catalog.operations.scans import plans
from arco_catalog.operations.scans.plans import Plan
from arco_catalog.operations.scans.tokens import InvalidToken, read_token
from arco_catalog.protocol.catalog import Session


async def plan(context: RequestContext) -> Response:
    """Plans a scan of a table, and returns its tasks, or plan tasks for them, the plan's id, and credentials for the
    files if the client's header requests them. If the catalog can vend none, it returns the plan without them. Raises
    the errors of `plans.begin` and `access_for_scan`, and `BadRequest` for an invalid body."""
    request = parse_plan_request(context.body or {})
    session = context.sessions.open()
    return await _completed(context, session, await plans.begin(session, context.namespace, context.table, request))


async def fetch_plan(context: RequestContext) -> Response:
    """Returns the plan with the id in the path as the request for it was answered, with new credentials if the client's
    header requests them. If the catalog can vend none, it returns the plan without them. Raises the errors of
    `plans.resume` and `access_for_scan`."""
    session = context.sessions.open()
    found = await plans.resume(session, context.namespace, context.table, context.params["plan-id"])
    return await _completed(context, session, found)


async def cancel_plan(context: RequestContext) -> Response:
    """Returns 204 for every id that a plan of some table may have: nothing is held for a plan, so there is nothing to
    free. It does so for plan tasks, and for plans that have expired, too. Raises `NoSuchPlanId` for any other text, and
    the errors of `Sessions.check_allowed`."""
    await context.sessions.check_allowed()
    try:
        read_token(context.params["plan-id"])
    except InvalidToken:
        raise NoSuchPlanId("Nothing to cancel: the plan id in the path is malformed") from None
    return NO_CONTENT


async def fetch_tasks(context: RequestContext) -> Response:
    """Returns the tasks of a plan task, and more plan tasks. Raises the errors of `plans.fetch`, and `BadRequest` for
    an invalid body."""
    task = context.fields.required("plan-task", STRING)
    found = await plans.fetch(context.sessions.open(), context.namespace, context.table, task)
    return Response(200, found.planned.tasks.json(found.plan_tasks, {}))


async def _completed(context: RequestContext, session: Session, found: Plan) -> Response:
    """Returns the response with a completed plan, and with credentials for the files if the client's header requests
    them and the catalog can vend them."""
    head: dict[str, JsonValue] = {"status": "completed", "plan-id": found.token.text}
    delegated = NOT_DELEGATED
    if delegates(context):
        from arco_catalog.http.delegation import access_for_scan

        delegated = await access_for_scan(context, session, context.table, found.state)
        if delegated.credentials:
            head["storage-credentials"] = [*delegated.credentials_json]
    return Response(200, found.planned.tasks.json(found.plan_tasks, head), delegated.headers)
