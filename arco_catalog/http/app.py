"""The ASGI app: finds the route, decodes the request, lets the handler answer, and turns every failure into an error in
Iceberg's shape."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from arco_catalog.http.asgi import Receive, Scope, Send
from arco_catalog.http.browsers import check_media_type, check_page
from arco_catalog.http.encoding import encoded
from arco_catalog.http.errors import error_response
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.request_context import Effect, RequestContext, Route, Service
from arco_catalog.http.requests import ClientGone, Request, SlowBody
from arco_catalog.http.responses import NO_HEADERS, Response
from arco_catalog.http.router import PREFIX, Router
from arco_catalog.http.routes import HEALTH, ROUTES
from arco_catalog.http.telemetry.request_log import RequestLog, RequestState
from arco_catalog.http.telemetry.telemetry import Telemetry
from arco_catalog.iceberg.errors import (
    BadRequest,
    CommitStateUnknown,
    MethodNotAllowed,
    NoSuchRoute,
    NoSuchWarehouse,
    NotAuthorized,
    Unsupported,
)
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.protocol.request_stats import collect_stats
from arco_catalog.state.memory import BODY_WEIGHT, Memory

SEVERAL = "-"
"""Told as the warehouse of requests that name none, where there are several."""


def create_app(
    warehouses: Mapping[str, Catalog], options: HttpOptions | None = None, telemetry: Telemetry | None = None
) -> "App":
    """An app that serves these catalogs, each under its name, and reports requests to `telemetry` if given. The caller
    closes the catalogs."""
    options = options or HttpOptions()
    return App(warehouses, options, (*HEALTH, *ROUTES) if options.health else ROUTES, telemetry)


class App:
    """An ASGI callable."""

    def __init__(
        self,
        warehouses: Mapping[str, Catalog],
        options: HttpOptions,
        routes: Sequence[Route],
        telemetry: Telemetry | None = None,
    ) -> None:
        memory = Memory(options.request_memory_bytes, options.memory_seconds)
        # What could never be had is refused at once: the largest body is one that fits alone.
        options = replace(options, max_body_bytes=min(options.max_body_bytes, memory.most // BODY_WEIGHT))
        endpoints = tuple(route.endpoint for route in routes if route.advertised)
        self._service = Service(warehouses, options, endpoints)
        self._router = Router(routes)
        self._telemetry = telemetry
        self._memory = memory
        self._usual_warehouse = next(iter(warehouses)) if len(warehouses) == 1 else SEVERAL

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            with self._memory.hold() as hold:
                await self._serve(scope, Request.of(scope, receive, hold), send)
        else:
            raise NotImplementedError(f"not an HTTP request: {scope['type']}")

    async def _serve(self, scope: Scope, request: Request, send: Send) -> None:
        state = RequestState(self._usual_warehouse)
        if self._telemetry is None:
            await self._answer(request, send, state)
        else:
            await self._answer_and_export(self._telemetry.begin(scope, request, state), self._telemetry, send)

    async def _answer_and_export(self, request_log: RequestLog, telemetry: Telemetry, send: Send) -> None:
        try:
            with collect_stats(request_log.stats):
                await self._answer(
                    request_log.request, send, request_log.state, {"X-Request-Id": request_log.request_id}
                )
        except BaseException as error:
            request_log.state.error = type(error).__name__
            raise
        finally:
            await telemetry.export(request_log)

    async def _answer(
        self, request: Request, send: Send, state: RequestState, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        try:
            response = await self._respond(request, state)
        except ClientGone as gone:
            state.error = type(gone).__name__
            return
        if headers:
            response = Response(response.status, response.body, {**response.headers, **headers})
        state.response = response
        await response.send(send, to_head=request.method == "HEAD")

    async def _respond(self, request: Request, state: RequestState) -> Response:
        options = self._service.options
        commits = False
        try:
            await request.take_head()
            if options.allowed_hosts is not None:
                check_page(request.headers, request.server, options.allowed_hosts)
            if request.caller.unidentified_because is not None:
                raise NotAuthorized(request.caller.unidentified_because)
            match = self._router.match(request.raw_path, request.spelling)
            if match is None:
                path = request.raw_path.decode("latin-1")
                raise NoSuchRoute(f"No endpoint at {path}: /v1/config lists the supported endpoints")
            route = match.routes.get(request.method)
            if route is None:
                return self._wrong_method(request, sorted(match.routes))
            commits, state.route = route.commits, route
            context = await self._context(route, match.params, request, state)
            return await encoded(await route.handler(context), context)
        except ClientGone:
            raise
        except Exception as error:  # whatever it is, the client is told in a shape that it can read
            state.error = type(error).__name__
            return error_response(error, commits=commits, dialect=options.dialect)

    async def _context(
        self, route: Route, params: Mapping[str, str], request: Request, state: RequestState
    ) -> RequestContext:
        """The request as its handler sees it, refused here if any such request would be."""
        if route.has_body or route.effect is not Effect.READS:
            check_media_type(request.headers, needs_body=route.has_body)
        if PREFIX in route.template:
            prefix = params.get("prefix") or self._service.default_warehouse()
            params = {**params, "prefix": prefix}
            catalog = self._service.warehouses.get(prefix)
            if catalog is None:
                raise NoSuchWarehouse(f"Warehouse does not exist: {prefix}")
            state.warehouse = prefix
            reason = catalog.settings.read_only_because
            keyed = "idempotency-key" in request.headers  # the key's marker may have the answer, which the driver reads
            if reason is not None and route.effect is not Effect.READS and not keyed:
                raise Unsupported(f"This catalog is read-only: {reason}")
        query = request.query()
        try:
            body, size = await request.json_object(self._service.options) if route.has_body else (None, 0)
        except SlowBody as slow:
            raise self._unread(route, request, str(slow)) from slow
        return RequestContext(
            self._service, route, params, query, request.headers, request.caller, body, size, request.hold
        )

    @staticmethod
    def _unread(route: Route, request: Request, reason: str) -> BadRequest | CommitStateUnknown:
        """What a body that did not arrive means: a refusal, but where another sending may have been applied, whose
        marker can't be looked for without the body."""
        resent = route.effect is not Effect.READS and "idempotency-key" in request.headers
        if resent or route.commits:
            return CommitStateUnknown(f"{reason}: if the request was sent before, it may have been applied")
        return BadRequest(reason)

    def _wrong_method(self, request: Request, allowed: Sequence[str]) -> Response:
        error = MethodNotAllowed(f"{request.method} is not supported for this path: use {' or '.join(allowed)}")
        dialect = self._service.options.dialect
        return error_response(error, commits=False, dialect=dialect, headers={"Allow": ", ".join(allowed)})


async def _live(receive: Receive, send: Send) -> None:
    """The lifespan protocol. Nothing is opened or closed here."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
