"""The innermost layer: finds the route of a request, authenticates the caller, decodes the parts that the route needs,
and calls the handler."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from arco_catalog.http.browsers import check_media_type, check_page, is_navigation
from arco_catalog.http.principal import GATEWAY_EVENT, authenticated_caller
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.requests import LARGE_HEAD_BYTES, Request, SlowBody
from arco_catalog.http.responses import Response
from arco_catalog.http.route import PREFIX, Effect, Route
from arco_catalog.http.router import Match, Router
from arco_catalog.http.service import Service
from arco_catalog.http.sessions import Sessions
from arco_catalog.iceberg.errors import (
    BadRequest,
    CatalogChanged,
    CommitStateUnknown,
    MethodNotAllowed,
    NoSuchRoute,
    NoSuchWarehouse,
    NotAuthorized,
    PayloadTooLarge,
    Unsupported,
)
from arco_catalog.protocol.catalog import Catalog

if TYPE_CHECKING:  # importing them takes time, which a cold start without realms and rates saves
    from arco_catalog.http.rates import RequestRates
    from arco_catalog.operations.realms import Realm


POLARIS_BASE = b"/api/catalog"
CATALOG_APIS = (POLARIS_BASE + b"/v1/", POLARIS_BASE + b"/polaris/v1/")


class Dispatch:
    """The innermost layer: authenticates the caller, except on public routes, and passes the request to the handler of
    its route."""

    def __init__(self, service: Service, router: Router, rates: "RequestRates | None" = None) -> None:
        self._service = service
        self._router = router
        self._rates = rates

    async def handle(self, request: Request) -> Response:
        """Returns the response of the route's handler. Raises `NoSuchRoute` and `MethodNotAllowed`, except to a caller
        that authentication rejects; `Forbidden` for a foreign web page or an unsafe `Host`, unless `allowed_hosts` is
        None; `NoSuchWarehouse`; `Unsupported` for a change of a read-only catalog without an idempotency key
        that the catalog reads; `BadRequest` for a change of tables or views in a catalog of type EXTERNAL;
        `TooManyRequests`; what authentication, decoding and the handler raise. To a caller who may not know of the
        catalog it raises `NoSuchWarehouse` in place of `BadRequest` and `PayloadTooLarge` by the body or the handler.
        After `CatalogChanged` it looks up the catalog of the path anew and calls the handler a second time."""
        if request.head_bytes > LARGE_HEAD_BYTES:
            await request.take_head()
        allowed_hosts = self._service.options.allowed_hosts
        if allowed_hosts is not None:
            origins, linked = self._service.options.allowed_origins, self._is_linked(request)
            check_page(request.headers, request.server, allowed_hosts, origins, linked=linked)
        match = self._match(request)
        route = None if match is None else match.route(request.method)
        # A public route is for every caller; a path without a route is for none.
        public = route is not None and route.public
        realm = None if public else await self._identify(request)
        if self._rates is not None and not public:
            request.route = route  # a refusal has the operation's name in the log
            self._rates.take((request.caller.realm, request.caller.principal))
        request.hold.owner = request.caller.principal if request.caller.authenticated else None
        if match is None:
            path = request.raw_path.decode("latin-1")
            raise NoSuchRoute(f"No endpoint at {path}: /v1/config lists the endpoints of the catalog API")
        if route is None:
            allowed = match.methods
            message = f"{request.method} is not supported for this path: use {' or '.join(allowed)}"
            raise MethodNotAllowed(message, allowed)
        request.route = route
        context = await self._context(route, match.params, request, realm)
        sessions = context.sessions
        try:
            if route.has_body or route.optional_json or route.takes_form:
                await self._read_body(context, route, request)
            if not route.in_external and sessions.named is not None:
                _refuse_external(sessions.named)
            if sessions.key_text is not None:
                await sessions.resolve_key()
            return await route.handler(context)
        except (BadRequest, PayloadTooLarge):
            # A caller without rights must not learn from an error about the request that the catalog exists.
            await sessions.check_visible()
            raise
        except CatalogChanged:
            # Raised before anything was changed, because this process had an outdated entry of the catalog cached.
            if route.has_prefix:
                sessions.named = await self._catalog(context.params[PREFIX[1:-1]], realm, request)
            if sessions.key_text is not None:
                await sessions.resolve_key()
            return await route.handler(context)
        finally:
            # Request and sessions refer to each other: the body would stay in memory until a collection of garbage.
            del context.sessions

    async def _identify(self, request: Request) -> "Realm | None":
        """Authenticates the request, sets its `caller`, and returns its realm; None on a server without realms. Without
        authentication the caller is anonymous in a realm, and without realms that of the adapter or gateway in front,
        if there is any. Raises `NotAuthorized`, and `Unavailable` if an identity provider does not answer."""
        service, event = self._service, request.scope.get(GATEWAY_EVENT)
        if service.realms is not None:
            realm, request.caller = await service.realms.identify(request.headers, event)
            return realm
        if service.authentication is not None:
            _, request.caller = await authenticated_caller(service.authentication, request.headers, event, judged=False)
        elif request.caller.unidentified_because is not None:
            raise NotAuthorized(request.caller.unidentified_because)
        return None

    def _match(self, request: Request) -> Match | None:
        """Returns the routes of a request's path, by their methods, and the path's parameters, after the base path was
        removed; None if no route has the path. Raises the errors of `Router.match`."""
        return self._router.match(self._below_base(request.raw_path), request.spelling)

    def _is_linked(self, request: Request) -> bool:
        """Whether a browser opens a page of the console, to which pages of other origins may link. Raises `BadRequest`
        for a path that does not decode."""
        if not is_navigation(request.method, request.headers):
            return False
        match = self._match(request)
        route = None if match is None else match.route(request.method)
        return route is not None and route.linked

    def _below_base(self, path: bytes) -> bytes:
        """Returns the path without the base path of this server, if it begins with that, and on a server with realms
        without the base path of Polaris's catalog API. The management API is not served below the latter, so that a
        proxy can block all of it by its one path."""
        if self._service.options.base_path:
            path = _below(self._service.options.base_path, path)
        of_catalogs = self._service.realms is not None and path.startswith(CATALOG_APIS)
        return _below(POLARIS_BASE, path) if of_catalogs else path

    async def _context(
        self, route: Route, params: Mapping[str, str], request: Request, realm: "Realm | None"
    ) -> RequestContext:
        """Returns the request as the handler gets it, still without the body, and with sessions. Sets `warehouse` and
        `catalog` of the request if the route has a prefix. Raises `UnsupportedMediaType`, the errors of
        `require_default_warehouse` and `_catalog`, the one for a query that does not decode, and `Unsupported` for a
        change of a read-only catalog without an idempotency key that the catalog reads."""
        changes = route.effect is not Effect.READS
        if route.has_body or (changes and not route.takes_form):
            check_media_type(request.headers, route.body_types, needs_body=route.has_body)
        catalog = None
        if route.has_prefix:
            prefix = params.get("prefix") or self._service.require_default_warehouse()
            params = {**params, "prefix": prefix}
            catalog = await self._catalog(prefix, realm, request)
            request.warehouse, request.catalog = prefix, catalog
            reason = catalog.settings.read_only_because
            # A request with a key may be a retry of one that was applied: the driver then reads the response in its
            # marker.
            if reason is not None and changes and not self._has_key(request, catalog):
                raise Unsupported(f"This catalog is read-only, since the store could lose commits: {reason}")
        context = RequestContext(
            service=self._service,
            endpoint=route,
            options=self._service.options,
            template=route.template,
            params=params,
            query=request.query(),
            headers=request.headers,
            caller=request.caller,
            hold=request.hold,
            raw_path=request.raw_path,
            id=request.id,
        )
        key_text = request.headers.get("idempotency-key") if changes and route.has_prefix else None
        context.sessions = Sessions(self._service, route, context, catalog, realm, key_text)
        return context

    def _has_key(self, request: Request, catalog: Catalog | None) -> bool:
        """Whether the request has an idempotency key and the catalog reads keys."""
        if catalog is None or "idempotency-key" not in request.headers:
            return False
        settings = catalog.key_settings(self._service.options.key_policy)
        return settings.reads_keys(catalog.runtime.now_ms())

    async def _catalog(self, name: str, realm: "Realm | None", request: Request) -> Catalog:
        """Returns the catalog with a name in the realm or, without a realm, in this server's configuration. Raises
        `NoSuchWarehouse`, and in a realm the errors of `catalog_of`."""
        if realm is not None:
            # Imported here, because a cold start without realms has no use for it.
            from arco_catalog.http.realms import catalog_of

            return await catalog_of(realm, realm.lookups(), name, request.caller.identity)
        catalog = self._service.warehouses.get(name)
        if catalog is None:
            raise NoSuchWarehouse(f"Warehouse does not exist: {name}")
        return catalog

    async def _read_body(self, context: RequestContext, route: Route, request: Request) -> None:
        """Reads the JSON object in the body into `body` of the context, and the number of bytes that it was sent in
        into `body_bytes`, or the form into `form`.
        Raises the errors of `Request.json_object` or `Request.form`, but for a body that arrives too slowly the one of
        `_unread`."""
        try:
            if route.takes_form:
                context.form = await request.form(context.options)
                return
            context.body, context.body_bytes = await request.json_object(context.options, optional=route.optional_json)
        except SlowBody as slow:
            resent = route.effect is not Effect.READS and self._has_key(request, context.sessions.named)
            raise _unread(route, str(slow), resent=resent) from slow


def _below(base: bytes, path: bytes) -> bytes:
    """Returns the part of a path after the base; the path itself if it is not below it."""
    return path[len(base) :] if path.startswith(base + b"/") else path


def _refuse_external(catalog: Catalog) -> None:
    """Raises `BadRequest` if the catalog is of type EXTERNAL, whose tables and views another catalog owns."""
    if catalog.settings.external:
        raise BadRequest(
            f"Catalog {catalog.settings.warehouse} is external: its tables and views are changed in the catalog that "
            "owns them, and here tables only by notifications"
        )


def _unread(route: Route, reason: str, *, resent: bool) -> BadRequest | CommitStateUnknown:
    """Returns the error for a body that did not arrive: `BadRequest`, or `CommitStateUnknown` if the route commits or
    the request may have been sent before (`resent`). The first sending may have been applied, and without the body its
    marker cannot be found."""
    if resent or route.commits:
        message = f"{reason}: this attempt changed nothing, but one before it, if there was any, may have been applied"
        return CommitStateUnknown(message, "request-lost")
    return BadRequest(f"{reason}: nothing was changed, so send the request once more")
