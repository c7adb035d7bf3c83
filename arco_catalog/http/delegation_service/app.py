"""The delegation service's app: its routes and their handlers."""

import re

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.http.app import App
from arco_catalog.http.delegation_service.errors import TaskErrors
from arco_catalog.http.delegation_service.shapes import BASE, accepted, ended, record
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.requests import Handle
from arco_catalog.http.responses import Response, json_response
from arco_catalog.http.route import Effect, Route
from arco_catalog.http.routes import HEALTH
from arco_catalog.iceberg.errors import InternalError, NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.operation_request import IdempotencyKey, OperationRequest
from arco_catalog.state.task import Task
from arco_catalog.telemetry.telemetry import Telemetry
from arco_catalog.upkeep.delegation_service.payload import DelegatedPurge
from arco_catalog.upkeep.delegation_service.service import DelegationService
from storage_backends.lazy_dataclass import dataclass

_TASK = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def create_delegation_app(
    service: DelegationService,
    options: HttpOptions | None = None,
    telemetry: Telemetry | None = None,
    authentication: Authentication | None = None,
) -> App:
    """Returns an app with the API of the tasks of this `service`, with these `options` or the default ones; every
    request is reported to `telemetry` if that is given. `authentication` must accept the caller of a request, except
    for `/health`; without it the app serves every caller but one that `CertificateCallers` could not identify. The
    caller of this function closes the service."""
    options = options or HttpOptions()
    tasks = Tasks(service)
    routes = (
        Route("POST", f"{BASE}/tasks/execute/synchronous", tasks.execute, effect=Effect.MUTATES),
        Route("POST", f"{BASE}/tasks", tasks.submit, effect=Effect.MUTATES),
        Route("GET", f"{BASE}/tasks", tasks.list),
        Route("GET", f"{BASE}/tasks/{{task}}", tasks.show),
        *(HEALTH if options.health else ()),
    )

    def answered(inner: Handle) -> Handle:
        return TaskErrors(inner).handle

    return App({}, options, routes, telemetry, authentication=authentication, guard=answered)


@dataclass(frozen=True, slots=True)
class Tasks:
    """The HTTP handlers of one delegation service: they submit purges as tasks, and show and list a caller's tasks."""

    service: DelegationService

    async def execute(self, context: RequestContext) -> Response:
        """Submits the task in the body, waits for its end, and returns the result of a successful task or the error of
        a failed one. Raises the errors of `DelegationService.submit`, `BadRequest`, and `Forbidden` for a realm that is
        not allowed."""
        submitted = await self._submitted(context)
        return ended(await self.service.ended(submitted.id))

    async def submit(self, context: RequestContext) -> Response:
        """Submits the task in the body, and returns 202 with the task's id, its status, and the URL of the status.
        Raises as `execute` does."""
        task = await self._submitted(context)
        return json_response(accepted(task, context.options.base_path.decode()), 202)

    async def show(self, context: RequestContext) -> Response:
        """Returns the task in the path, if this caller has submitted it. Raises `NotFound` for any other id."""
        task = context.params["task"]
        if not _TASK.fullmatch(task):
            raise NotFound(f"Task does not exist: {task[:64]!r} is not the id of a task")
        stored = await self.service.find(self._session(context), task, context.caller.principal)
        return json_response(record(stored.task, whole=True))

    async def list(self, context: RequestContext) -> Response:
        """Returns one page of the caller's tasks, and the token of the next page unless it is the last one. A page may
        be empty though it is not the last.

        The tasks of all callers are divided into pages, and a page has only the tasks that this caller has submitted.
        """
        after = context.query.one("page_token") or ""
        found, following = await self.service.tasks(self._session(context), context.caller.principal, after)
        body: JsonObject = {"tasks": [record(stored.task, whole=False) for stored in found]}
        if following is not None:
            body["next_page_token"] = following
        return json_response(body)

    async def _submitted(self, context: RequestContext) -> Task:
        """Submits the task in the body, and returns it. A task that was submitted before is executed here if it is not
        over and does not run here yet; one that has failed continues, too, but under an idempotency key that was sent
        before only if it failed for lost credentials. Raises the errors of reading the body, of `check_realm` and of
        `submit`."""
        if context.body is None:
            raise InternalError("the route that submits a task was reached without a request body")
        purge = DelegatedPurge.parse(context.body)
        self.service.check_realm(purge.realm, context.caller.realm)
        return await self.service.submit(self._session(context, purge), purge, context.caller.principal)

    def _session(self, context: RequestContext, purge: DelegatedPurge | None = None) -> Session:
        """Returns a session for the request. The request's body there is the content of the `purge`, without
        credentials, so that none are stored. Raises `BadRequest` for a malformed idempotency key of a submission."""
        state, route = self.service.state, context.endpoint
        key = context.headers.get("idempotency-key")
        parsed = None if key is None or purge is None else IdempotencyKey.parse(key, context.options.dialect)
        deadline_ms = state.runtime.now_ms() + state.settings.request_ms
        source: JsonObject = {"kind": "DelegationService"}
        body = None if purge is None else purge.content
        principal, hold = context.caller.principal, context.hold
        return state.session(
            OperationRequest(
                route.method, route.template, "", body, principal, source, deadline_ms, key=parsed, hold=hold
            ),
            ALLOW_ALL,
        )
