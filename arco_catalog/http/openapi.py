"""`GET /openapi.json`: what this server serves, as a document (docs/decisions/0054).

The document of all routes is made ahead (`python -m tools.openapi`) and lies beside this module, where nothing reads it
before it is asked for. What one server serves of it depends on how the server was started, and on nothing else.
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
"""A server that is deployed anew may serve something else."""
_PARAMETER = re.compile(r"\{[^}]*\}")
_COMPONENT = "#/components/"
_KEY = {"$ref": "#/components/parameters/idempotency-key"}


async def get(context: RequestContext) -> Response:
    """The OpenAPI document of this server. It is for everybody, since it tells nothing of what is stored."""
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
    """How the one catalog of a server reads keys, by its cached HEAD; with several, as the server's variables have
    it."""
    variables = service.options.key_policy
    catalogs = [*service.warehouses.values()]
    return catalogs[0].key_settings(variables).policy if len(catalogs) == 1 else variables


@lru_cache(8)  # of one app it is always the same
def _served(
    endpoints: tuple[str, ...], base_path: str, dialect: Dialect | None, authenticated: bool
) -> tuple[bytes, str]:
    """The document as it is sent, and its tag."""
    body = dumps(served(endpoints, base_path, dialect, authenticated=authenticated))
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def served(
    endpoints: Iterable[str],
    base_path: str = "",
    dialect: Dialect | None = Dialect.ICEBERG,
    *,
    authenticated: bool = True,
) -> JsonObject:
    """The part of the document that is about these endpoints. `base_path` is what comes before them; without a
    `dialect` no idempotency keys are taken; where nobody is `authenticated` no security is asked for."""
    whole = _whole()
    wanted = {_nameless(endpoint) for endpoint in endpoints}
    paths: dict[str, Any] = {}
    for path, item in whole["paths"].items():
        kept = {method: each for method, each in item.items() if _nameless(f"{method.upper()} {path}") in wanted}
        if dialect is None:
            kept = {method: _without_key(each) for method, each in kept.items()}
        if kept:
            paths[path] = kept
    components: dict[str, Any] = {**referred(paths, whole["components"])}
    if dialect is Dialect.POLARIS and "parameters" in components:
        components["parameters"] = {name: _of_polaris(name, each) for name, each in components["parameters"].items()}
    document = {**whole, "servers": [{"url": base_path or "/"}], "paths": paths}
    if authenticated:
        schemes = whole["components"]["securitySchemes"]
        security = [{"OAuth2": ["catalog"]}, {"BearerAuth": []}]
        return {**document, "security": security, "components": {**components, "securitySchemes": schemes}}
    return {**document, "components": components}


def _without_key(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    """An operation where no idempotency keys are taken."""
    parameters = [each for each in operation.get("parameters", []) if each != _KEY]
    return {**operation, "parameters": parameters} if "parameters" in operation else operation


def _of_polaris(name: str, parameter: JsonObject) -> JsonObject:
    """A parameter as the Polaris dialect has it: keys need be no UUIDs."""
    if name != "idempotency-key":
        return parameter
    schema: JsonObject = {"type": "string", "pattern": "^[a-zA-Z0-9][a-zA-Z0-9_.-]*$", "minLength": 1, "maxLength": 255}
    return {**parameter, "schema": schema}


@cache
def _whole() -> Mapping[str, Any]:
    document = loads(FILE.read_bytes())
    assert isinstance(document, dict)
    return document


def _nameless(endpoint: str) -> str:
    """An endpoint whatever its parameters are called: the specification of management has names of its own."""
    return _PARAMETER.sub("{}", endpoint)


def referred(part: Any, components: Mapping[str, Any]) -> Mapping[str, Any]:
    """The components that a part refers to, and those that these refer to, in the order in which they are given."""
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
