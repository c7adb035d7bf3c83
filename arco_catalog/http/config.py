"""`/v1/config`, which clients ask first, and `/health`, for health checks."""

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from arco_catalog.config.durations import format_duration
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.http.service import Endpoint
from arco_catalog.iceberg.errors import NoSuchWarehouse
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.key_settings import Dialect, KeyPolicy


async def get_config(context: RequestContext) -> Response:
    """The configuration of one warehouse. Raises `NoSuchWarehouse`."""
    service = context.service
    name = context.query.one("warehouse") or service.default_warehouse()
    if context.sessions.realm is not None:
        await context.sessions.select_catalog(name)
    elif name in service.warehouses:
        context.sessions.named = service.warehouses[name]
    else:
        raise NoSuchWarehouse(f"Warehouse does not exist: {name}")
    await context.sessions.open().head()  # it records how keys are read, which no server's variables decide
    policy = context.sessions.catalog.key_settings(service.options.key_policy).policy
    return json_response(
        {
            "defaults": {},
            "overrides": {
                # Clients put the prefix into paths as it is given, so it is given encoded.
                "prefix": quote(name, safe=""),
                "namespace-separator": quote(service.options.namespace_separator, safe=""),
            },
            "endpoints": [*_endpoints(service.routes)],
            **_discovery(policy, service.options.key_lifetime_ms),
        }
    )


def _endpoints(routes: Iterable[Endpoint]) -> Iterator[str]:
    """What is served. Polaris tells its endpoints for generic tables without a slash before the path, and its plugin
    for Spark believes in none that is told otherwise; so those are told in both ways."""
    advertised = [route for route in routes if route.advertised]
    yield from (route.endpoint for route in advertised)
    yield from (f"{route.method} {route.template[1:]}" for route in advertised if "/generic-tables" in route.template)


def _discovery(policy: KeyPolicy, lifetime_ms: int) -> JsonObject:
    """What tells a client whether to send keys: how long it may retry with one. A client of the Polaris dialect looks
    into a map that the specification does not have."""
    told: JsonObject = {}
    if policy.enabled:
        told["idempotency-key-lifetime"] = format_duration(lifetime_ms)
    if policy.dialect is Dialect.POLARIS:
        told["properties"] = {"idempotency-key-supported": "true" if policy.enabled else "false", **told}
    return told


async def health(context: RequestContext) -> Response:
    """Says that the process answers, and what it serves. Asks nothing of the store: a slow store is no reason to
    restart a server."""
    warehouses: list[JsonValue] = [
        {"name": name, "read_only_because": catalog.settings.read_only_because}
        for name, catalog in context.service.warehouses.items()
    ]
    return json_response({"status": "ok", "warehouses": warehouses})
