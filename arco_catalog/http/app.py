"""Makes the ASGI app of the catalog: the layers that a request passes on its way to its handler."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.http.asgi import Receive, Scope, Send
from arco_catalog.http.dispatch import Dispatch
from arco_catalog.http.middleware.delivery import Delivery
from arco_catalog.http.middleware.encoding import Encoding
from arco_catalog.http.middleware.errors import Errors
from arco_catalog.http.middleware.telemetry import RequestTelemetry
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.requests import ClientGone, Handle, Request
from arco_catalog.http.route import Route
from arco_catalog.http.router import Router
from arco_catalog.http.routes import DELEGATION, HEALTH, ROUTES
from arco_catalog.http.service import Service
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.memory import BODY_WEIGHT, Memory
from arco_catalog.telemetry.telemetry import Telemetry

if TYPE_CHECKING:  # importing them takes time, which a cold start saves that needs none of them
    from arco_catalog.http.console.files import Console
    from arco_catalog.http.rates import RequestRates
    from arco_catalog.http.realms import RealmService
    from arco_catalog.protocol.policy import Policy

SEVERAL = "-"
"""The warehouse that telemetry shows for a request that names none, if the app serves several."""


def create_app(
    warehouses: Mapping[str, Catalog],
    options: HttpOptions | None = None,
    telemetry: Telemetry | None = None,
    realms: "RealmService | None" = None,
    authentication: Authentication | None = None,
    guard: Callable[[Handle], Handle] | None = None,
    rates: "RequestRates | None" = None,
    console: "Console | None" = None,
    policy: "Policy | None" = None,
) -> "App":
    """Returns an app that serves the catalogs in `warehouses` by their names, with these `options` or the default ones.
    With `realms` it serves the catalogs of these realms instead, and also the management API and the endpoints that
    issue tokens, vend credentials and sign requests, which otherwise refuse them. If `telemetry` is given, every
    request is reported to it. If `authentication` is given, and no `realms`, which have their own, it must accept the
    caller of a request, except on public routes such as `/health`. `guard` wraps the layer that serves requests in one
    that may refuse them. `rates` limits the requests of each principal, except on public routes. With `console` it also
    serves these pages. If `policy` is given, it must allow each request that needs a privilege, besides the grants. The
    caller closes the catalogs after the app's last request."""
    options = options or HttpOptions()
    routes = (*HEALTH, *ROUTES) if options.health else ROUTES
    if realms is not None:
        # Imported here, because a cold start without realms has no use for these routes.
        from arco_catalog.http.management.routes import MANAGEMENT, TOKENS

        instead = {route.endpoint: route for route in (*DELEGATION, TOKENS)}
        routes = (*(instead.get(route.endpoint, route) for route in routes), *MANAGEMENT)
    if console is not None:
        # Imported here, because only a server has these routes.
        from arco_catalog.http.console.routes import CONSOLE

        routes = (*routes, *CONSOLE)
    return App(warehouses, options, routes, telemetry, realms, authentication, guard, rates, console, policy)


class App:
    """The ASGI application of the catalog: passes each HTTP request through its layers to the handler of its route. Use
    `create_app` for one with the catalog's routes."""

    def __init__(
        self,
        warehouses: Mapping[str, Catalog],
        options: HttpOptions,
        routes: Sequence[Route],
        telemetry: Telemetry | None = None,
        realms: "RealmService | None" = None,
        authentication: Authentication | None = None,
        guard: Callable[[Handle], Handle] | None = None,
        rates: "RequestRates | None" = None,
        console: "Console | None" = None,
        policy: "Policy | None" = None,
    ) -> None:
        self._memory = Memory(options.request_memory_bytes, options.memory_seconds)
        # A body that could never get the memory it takes is refused at once.
        options = replace(options, max_body_bytes=min(options.max_body_bytes, self._memory.max_bytes // BODY_WEIGHT))
        usual_warehouse = next(iter(warehouses)) if len(warehouses) == 1 else SEVERAL
        # The layers, from the inside out: a request passes them from the last to the first.
        service = Service(warehouses, options, routes, realms, authentication, console, policy)
        handle: Handle = Dispatch(service, Router(routes), rates).handle
        handle = handle if guard is None else guard(handle)
        handle = Encoding(handle, options).handle
        handle = Errors(handle, options.key_policy).handle
        if console is not None:
            # Imported here, because only a server with the console has this layer.
            from arco_catalog.http.middleware.console_headers import ConsoleHeaders

            handle = ConsoleHeaders(handle, console.headers, options.base_path).handle
        if options.allowed_origins:
            from arco_catalog.http.middleware.cors import Cors  # few servers have pages of other origins

            handle = Cors(handle, options.allowed_origins).handle
        handle = Delivery(handle).handle
        if telemetry is not None:
            handle = RequestTelemetry(handle, telemetry, usual_warehouse).handle
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _serve_lifespan(receive, send)
        elif scope["type"] == "http":
            hold = self._memory.hold()
            try:
                await self._handle(Request.of(scope, receive, send, hold))
            except ClientGone:  # no client is left to read a response
                pass
            finally:
                hold.close()
        else:
            raise NotImplementedError(
                f"the server opened an ASGI scope of type {scope['type']!r}: this app supports only http and lifespan"
            )


async def _serve_lifespan(receive: Receive, send: Send) -> None:
    """Confirms startup and shutdown to the server (ASGI lifespan protocol). Nothing is opened or closed here."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
