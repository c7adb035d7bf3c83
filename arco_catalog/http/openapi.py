"""The HTTP handler of `GET /openapi.json`, which returns the OpenAPI document of this server (docs/decisions/0054).

`python -m tools.openapi` generates the document of all routes into the file beside this module, which is read with the
first request for it. The server's configuration decides which part of the document it serves, and the key policy of an
only catalog (`_key_policy`) whether and how operations take an idempotency key.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from arco_catalog.http.etag import none_match
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response
from arco_catalog.http.service import Service
from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.state.key_settings import Dialect, KeyPolicy

FILE = Path(__file__).with_name("openapi.json")
CACHE_CONTROL = "public, max-age=300"
"""The time is short, because a new deployment may serve other endpoints."""
_PARAMETER = re.compile(r"\{[^}]*\}")
_COMPONENT = "#/components/"
_KEY = {"$ref": "#/components/parameters/idempotency-key"}


async def get(context: RequestContext) -> Response:
    """Returns the OpenAPI document of this server, or 304 without a body to a client that has it. The route is public,
    because the document contains nothing of the stored catalogs."""
    service = context.service
    realms = service.realms
    authenticated = service.authentication is not None or (realms is not None and realms.authentication is not None)
    endpoints = tuple(route.endpoint for route in service.routes)
    policy = _key_policy(service)
    dialect = policy.dialect if policy.enabled else None
    body, tag = _served(endpoints, service.options.base_path.decode("latin-1"), dialect, authenticated)
    headers = {"ETag": tag, "Cache-Control": CACHE_CONTROL}
    if not none_match(context.headers.get("if-none-match"), tag):
        return Response(304, headers=headers)
    return Response(200, body, headers)


def _key_policy(service: Service) -> KeyPolicy:
    """Returns how idempotency keys are read: by the cached HEAD of the server's only catalog; by the server's variables
    if HEAD is not cached or does not state it, and on a server with several catalogs or with realms."""
    variables = service.options.key_policy
    catalogs = [*service.warehouses.values()]
    return catalogs[0].key_settings(variables).policy if len(catalogs) == 1 else variables


@lru_cache(8)  # one entry for each app in the process, and for each key policy
def _served(
    endpoints: tuple[str, ...], base_path: str, dialect: Dialect | None, authenticated: bool
) -> tuple[bytes, str]:
    """Returns the bytes of the document that `served` makes of these arguments, and an ETag."""
    body = dumps(served(endpoints, base_path, dialect, authenticated=authenticated))
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def served(
    endpoints: Iterable[str],
    base_path: str = "",
    dialect: Dialect | None = Dialect.ICEBERG,
    *,
    authenticated: bool = True,
) -> JsonObject:
    """Returns the OpenAPI document for these endpoints alone, with the components that they refer to. `base_path`
    becomes the URL of the server. The `dialect` decides on the form of an idempotency key, and without one the
    operations have no parameter for it. Unless callers are `authenticated` the document has no security schemes."""
    whole = _whole()
    supported = {_nameless(endpoint) for endpoint in endpoints}
    paths: dict[str, Any] = {}
    for path, item in whole["paths"].items():
        kept = {method: each for method, each in item.items() if _nameless(f"{method.upper()} {path}") in supported}
        if dialect is None:
            kept = {method: _without_key(each) for method, each in kept.items()}
        if kept:
            paths[path] = kept
    components: dict[str, Any] = {**referred(paths, whole["components"])}
    if dialect is Dialect.POLARIS and "parameters" in components:
        components["parameters"] = {name: _as_in_polaris(name, each) for name, each in components["parameters"].items()}
    document = {**whole, "servers": [{"url": base_path or "/"}], "paths": paths}
    if authenticated:
        schemes = whole["components"]["securitySchemes"]
        security = [{"OAuth2": ["catalog"]}, {"BearerAuth": []}]
        return {**document, "security": security, "components": {**components, "securitySchemes": schemes}}
    return {**document, "components": components}


def _without_key(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns an operation without its parameter for an idempotency key."""
    parameters = [each for each in operation.get("parameters", []) if each != _KEY]
    return {**operation, "parameters": parameters} if "parameters" in operation else operation


def _as_in_polaris(name: str, parameter: JsonObject) -> JsonObject:
    """Returns the parameter `name` in the Polaris dialect, where an idempotency key need not be a UUID; any other
    parameter as it is."""
    if name != "idempotency-key":
        return parameter
    schema: JsonObject = {"type": "string", "pattern": "^[a-zA-Z0-9][a-zA-Z0-9_.-]*$", "minLength": 1, "maxLength": 255}
    return {**parameter, "schema": schema}


@cache
def _whole() -> Mapping[str, Any]:
    """Returns the OpenAPI document of all routes, which the first call reads from the file; do not change it."""
    document = loads(FILE.read_bytes())
    assert isinstance(document, dict)
    return document


def _nameless(endpoint: str) -> str:
    """Returns an endpoint (method and path template) with `{}` for each parameter of the path, because the management
    specification names the parameters differently."""
    return _PARAMETER.sub("{}", endpoint)


def referred(part: Any, components: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the components that `part` refers to, directly or through other components, in the order of
    `components`."""
    found: set[str] = set()
    waiting = [part]
    while waiting:
        for reference in _references(waiting.pop()):
            if reference not in found:
                found.add(reference)
                kind, name = reference.split("/")
                waiting.append(components[kind][name])
    kept = {
        kind: {name: each for name, each in named.items() if f"{kind}/{name}" in found}
        for kind, named in components.items()
    }
    return {kind: named for kind, named in kept.items() if named}


def _references(part: Any) -> Iterator[str]:
    """Yields the components to which a part of the document refers directly, as `KIND/NAME`, once for each
    reference."""
    match part:
        case str():
            if part.startswith(_COMPONENT):  # also as plain text, in the mapping of a discriminator
                yield part.removeprefix(_COMPONENT)
        case dict():
            for inner in part.values():
                yield from _references(inner)
        case list():
            for inner in part:
                yield from _references(inner)
