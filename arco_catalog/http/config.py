"""Handlers of `/v1/config`, by which a client reads its configuration first, and of `/health`, for health checks."""

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from arco_catalog.config.durations import format_duration
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.http.service import Endpoint
from arco_catalog.iceberg.errors import NoSuchWarehouse
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.properties import SCAN_PLANNING_MODE
from arco_catalog.state.key_settings import Dialect, KeyPolicy

RESOLVE_MAX_ITEMS = 100
"""The maximum number of tables and views of which one request may load the states (http/resolve.py)."""


async def get_config(context: RequestContext) -> Response:
    """Returns the client configuration of the warehouse that the query names, or of the default one: its prefix, the
    namespace separator, the supported endpoints, who plans scans if the catalog sets it, the limit of items for
    `resolve`, whether the catalog takes idempotency keys, and if known the properties by which engines reach its files,
    for people who write an engine's settings. Raises `NoSuchWarehouse`, `BadRequest` if the query names no warehouse
    and there is no default, and the errors of `Session.head` and, in a realm, of `catalog_of`."""
    service = context.service
    name = context.query.one("warehouse") or service.require_default_warehouse()
    if context.sessions.realm is not None:
        await context.sessions.select_catalog(name)
    elif name in service.warehouses:
        context.sessions.named = service.warehouses[name]
    else:
        raise NoSuchWarehouse(f"Warehouse does not exist: {name}")
    # HEAD records how the catalog reads keys. The server's variables apply only to a catalog without that record.
    await context.sessions.open().head()
    policy = context.sessions.catalog.key_settings(service.options.key_policy).policy
    return json_response(
        {
            "defaults": _defaults(context.sessions.catalog.settings.scan_planning),
            "overrides": {
                # Clients put the prefix into paths as it is given, so it is given encoded.
                "prefix": quote(name, safe=""),
                "namespace-separator": quote(service.options.namespace_separator, safe=""),
            },
            "endpoints": [*_endpoints(service.routes)],
            "resolve-max-items": RESOLVE_MAX_ITEMS,
            **_discovery(policy, service.options.key_lifetime_ms),
            **_file_io(context),
        }
    )


def _file_io(context: RequestContext) -> JsonObject:
    """Returns a field with the properties by which engines reach the files of a catalog, without secrets: those of its
    storage configuration, if that is of AWS and has any, or else of the server's store; no field without any. They are
    not among the `defaults`, because an engine may reach the store by another endpoint, which its environment names."""
    session, properties = context.sessions.open(), context.service.options.file_io
    if session.catalog.storage:
        # Imported here: only a catalog of a realm has a storage configuration.
        from arco_catalog.operations.delegation import storage_of
        from arco_catalog.vending.storage_config import AwsStorage

        storage = storage_of(session)
        properties = (storage.client_properties if isinstance(storage, AwsStorage) else {}) or properties
    return {"file-io": dict(properties)} if properties else {}


def _endpoints(routes: Iterable[Endpoint]) -> Iterator[str]:
    """Iterates over the endpoints that are `advertised`; the others, which are served too, are not among them. Those
    for generic tables come in two spellings: Polaris lists them without a slash before the path, and its Spark plugin
    recognises only that spelling."""
    advertised = [route for route in routes if route.advertised]
    yield from (route.endpoint for route in advertised)
    yield from (f"{route.method} {route.template[1:]}" for route in advertised if "/generic-tables" in route.template)


def _defaults(scan_planning: str | None) -> JsonObject:
    """Returns the properties that clients may replace by their own: the mode of scan planning, if it is not None.
    Clients may choose another mode, because one that can read files can also plan scans of them."""
    return {} if scan_planning is None else {SCAN_PLANNING_MODE: scan_planning}


def _discovery(policy: KeyPolicy, lifetime_ms: int) -> JsonObject:
    """Returns the fields by which a client knows whether to send idempotency keys: the time for which it may retry
    with one key, or no field if keys are off. The Polaris dialect also has a map `properties`, which the Iceberg
    specification does not have: it repeats the field, and contains whether keys are supported."""
    fields: JsonObject = {}
    if policy.enabled:
        fields["idempotency-key-lifetime"] = format_duration(lifetime_ms)
    if policy.dialect is Dialect.POLARIS:
        fields["properties"] = {"idempotency-key-supported": "true" if policy.enabled else "false", **fields}
    return fields


async def health(context: RequestContext) -> Response:
    """Returns 200 with the warehouses of the process, and for each the reason why it is read-only, null if it is not.
    It sends no request to the store, because a slow store is no reason to restart the server.

    On a server with realms the list of warehouses is empty.
    """
    warehouses: list[JsonValue] = [
        {"name": name, "read_only_because": catalog.settings.read_only_because}
        for name, catalog in context.service.warehouses.items()
    ]
    return json_response({"status": "ok", "warehouses": warehouses})
