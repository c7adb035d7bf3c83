"""The ASGI app: finds the route, decodes the request, lets the handler answer, and turns every failure into an error in
Iceberg's shape."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from arco_catalog.http.asgi import Receive, Scope, Send
from arco_catalog.http.encoding import encoded
from arco_catalog.http.errors import error_response
from arco_catalog.http.exchange import Effect, Exchange, Route, Service
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.requests import ClientGone, Request
from arco_catalog.http.responses import Response
from arco_catalog.http.router import Router
from arco_catalog.http.routes import ROUTES
from arco_catalog.iceberg.errors import MethodNotAllowed, NoSuchRoute, NoSuchWarehouse, Unsupported
from arco_catalog.operations.catalog import Catalog

_LOG = logging.getLogger(__name__)


def create_app(warehouses: Mapping[str, Catalog], options: HttpOptions | None = None) -> "App":
    """An app that serves these catalogs, each under its name. Whoever opened them closes them."""
    return App(warehouses, options or HttpOptions(), ROUTES)


class App:
    """An ASGI callable."""

    def __init__(self, warehouses: Mapping[str, Catalog], options: HttpOptions, routes: Sequence[Route]) -> None:
        endpoints = tuple(route.endpoint for route in routes if route.advertised)
        self._service = Service(warehouses, options, endpoints)
        self._router = Router(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            await self._answer(Request.of(scope, receive), send)
        else:
            raise NotImplementedError(f"not an HTTP request: {scope['type']}")

    async def _answer(self, request: Request, send: Send) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            response = await self._respond(request)
        except ClientGone:
            _LOG.debug("%s %s: the client hung up", request.method, request.raw_path.decode("latin-1"))
            return
        await response.send(send, to_head=request.method == "HEAD")
        if _LOG.isEnabledFor(logging.DEBUG):
            path = request.raw_path.decode("latin-1")
            _LOG.debug("%s %s %d %.1f ms", request.method, path, response.status, 1000 * (clock() - began))

    async def _respond(self, request: Request) -> Response:
        options = self._service.options
        commits = False
        try:
            match = self._router.match(request.raw_path)
            if match is None:
                path = request.raw_path.decode("latin-1")
                raise NoSuchRoute(f"No endpoint at {path}: /v1/config lists what there is")
            route = match.routes.get(request.method)
            if route is None:
                return self._wrong_method(request, sorted(match.routes))
            commits = route.commits
            exchange = await self._exchange(route, match.params, request)
            return await encoded(await route.handler(exchange), exchange)
        except ClientGone:
            raise
        except Exception as error:  # whatever it is, the client is told in a shape that it can read
            return error_response(error, commits=commits, dialect=options.dialect)

    async def _exchange(self, route: Route, params: Mapping[str, str], request: Request) -> Exchange:
        """The request as its handler sees it, refused here if any such request would be."""
        prefix = params.get("prefix")
        if prefix is not None:
            catalog = self._service.warehouses.get(prefix)
            if catalog is None:
                raise NoSuchWarehouse(f"Warehouse does not exist: {prefix}")
            reason = catalog.settings.read_only_because
            keyed = "idempotency-key" in request.headers  # the key's marker may have the answer, which the driver reads
            if reason is not None and route.effect is not Effect.READS and not keyed:
                raise Unsupported(f"This catalog is read-only: {reason}")
        query = request.query()
        body = await request.json_object(self._service.options) if route.has_body else None
        return Exchange(self._service, route, params, query, request.headers, body)

    def _wrong_method(self, request: Request, allowed: Sequence[str]) -> Response:
        error = MethodNotAllowed(f"{request.method} is not possible here: use {' or '.join(allowed)}")
        dialect = self._service.options.dialect
        return error_response(error, commits=False, dialect=dialect, headers={"Allow": ", ".join(allowed)})


async def _live(receive: Receive, send: Send) -> None:
    """The lifespan protocol. Nothing is opened or closed here."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
