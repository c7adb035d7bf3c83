"""`/v1/config`, which clients ask first, and `/health`, for health checks."""

from urllib.parse import quote

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.iceberg.errors import NoSuchWarehouse
from arco_catalog.iceberg.json import JsonValue

KEY_LIFETIME = "PT30M"
"""How long clients may go on retrying with one Idempotency-Key. Markers are kept longer
(docs/design/idempotency.md#markers)."""


async def get_config(context: RequestContext) -> Response:
    """The configuration of one warehouse. Raises `NoSuchWarehouse`."""
    service = context.service
    name = context.query.one("warehouse") or service.default_warehouse()
    if context.realm is not None:
        await context.look_up(name)
        await context.session().head()
    elif name not in service.warehouses:
        raise NoSuchWarehouse(f"Warehouse does not exist: {name}")
    return json_response(
        {
            "defaults": {},
            "overrides": {
                # Clients put the prefix into paths as it is given, so it is given encoded.
                "prefix": quote(name, safe=""),
                "namespace-separator": quote(service.options.namespace_separator, safe=""),
            },
            "endpoints": [*service.endpoints],
            "idempotency-key-lifetime": KEY_LIFETIME,
        }
    )


async def health(context: RequestContext) -> Response:
    """Says that the process answers, and what it serves. Asks nothing of the store: a slow store is no reason to
    restart a server."""
    warehouses: list[JsonValue] = [
        {"name": name, "read_only_because": catalog.settings.read_only_because}
        for name, catalog in context.service.warehouses.items()
    ]
    return json_response({"status": "ok", "warehouses": warehouses})
