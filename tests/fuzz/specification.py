"""The specifications as the fuzzer reads them, Iceberg's and Polaris's of a catalog's API and Polaris's of management:
the possible requests, and which answers they allow."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import requests
import schemathesis
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tools.openapi.document import document
from tools.openapi.specifications import MANAGEMENT_BASE, Json, components, corrected, documents
from tools.support.asgi_client import Answer

Operation: TypeAlias = Any
"""schemathesis calls it `APIOperation[...]`, generic over types of its own."""


@lru_cache
def operations() -> Mapping[str, Operation]:
    """Every operation of the two specifications, by method and path, and those beside them that read a catalog, which
    only our own document has: by GET, and those of proposals."""
    (iceberg, polaris, _), ours = documents(), document()
    paths = {**iceberg["paths"], **polaris["paths"]}
    beside = {path: {"get": item["get"]} for path, item in ours["paths"].items() if _is_ours(item.get("get"))}
    beside |= {path: ours["paths"][path] for path in PROPOSED}
    known = {kind: {**ours["components"].get(kind, {}), **components()[kind]} for kind in components()}
    whole = {**iceberg, "paths": {**beside, **paths}, "components": {**iceberg["components"], **known}}
    schema = schemathesis.openapi.from_dict(corrected(whole))
    found: list[Operation] = [*schema.get_all_operations()]
    return {operation.label: operation for operation in (each.ok() for each in found)}


def _is_ours(operation: Json | None) -> bool:
    """Whether an operation is one of our own in a catalog's API."""
    return operation is not None and {"$ref": "#/components/parameters/prefix"} in operation.get("parameters", ())


@lru_cache
def management_operations() -> Mapping[str, Operation]:
    """Every operation of the specification of management, and those of governance, checks and the caller beside them,
    which only our own document has."""
    ours, management = document(), documents()[2]
    beside = {
        path: item for path, item in ours["paths"].items() if path.startswith(GOVERNED) or path in (CHECK, CALLER)
    }
    known = {kind: {**ours["components"].get(kind, {}), **components()[kind]} for kind in components()}
    whole = {**ours, "paths": {**management["paths"], **beside}, "components": known}
    found: list[Operation] = [*schemathesis.openapi.from_dict(corrected(whole)).get_all_operations()]
    return {operation.label: operation for operation in (each.ok() for each in found)}


PROPOSED = ("/v1/{prefix}/resolve", "/v1/{prefix}/events")
GOVERNED = f"{MANAGEMENT_BASE}/catalogs/{{catalog}}/namespaces/"
CHECK = f"{MANAGEMENT_BASE}/catalogs/{{catalog}}/check"
CALLER = f"{MANAGEMENT_BASE}/caller"
UNDESCRIBED = {
    400: "the request is wrong",
    401: "the caller has no (valid) identity",
    403: "the caller may not, which is specified for all operations but a few",
    409: "there is one already, or it has changed",
    429: "too many secrets are checked at once",
}
"""Statuses that any operation of management may answer, which its specification does not list
(docs/decisions/0054-the-openapi-document-is-made-of-routes.md)."""
EVERYWHERE = {
    404: "there is no warehouse, namespace or route of that name",
    406: "the catalog does not do this",
    413: "the body is larger than the server takes",
    415: "the content type of the body is not JSON",
}
"""Statuses beyond the specification's that any operation may answer, in the default shape of errors."""
KEY_REUSED = 422
"""What a request may be answered whose idempotency key was another's (docs/design/idempotency.md#duplicates)."""


def collection_of(label: str, path: str) -> str | None:
    """The collection's operation, where the last name of a path is empty; else None."""
    method, template = label.split(" ")
    collection, _, last = template.rpartition("/")
    if not path.endswith("/") or not last.startswith("{"):
        return None
    return f"{method} {collection}"


def describes(label: str) -> bool:
    """Whether the specifications have this operation."""
    return label in operations() or label in management_operations()


def violations(label: str, answer: Answer, *, keyed: bool) -> str | None:
    """How an answer to this operation violates the specification; None if it does not. `keyed`: whether the request
    had an idempotency key."""
    managed = management_operations().get(label) if MANAGEMENT_BASE in label else None
    operation = operations()[label] if managed is None else managed
    allowed = EVERYWHERE if managed is None else EVERYWHERE | UNDESCRIBED
    case = operation.Case(path_parameters=dict.fromkeys(re.findall("{(.*?)}", label), "x"))
    prepared = requests.Request(operation.method, f"http://fuzz{case.formatted_path}").prepare()
    headers = {name: [value] for name, value in answer.headers.items()}
    response = schemathesis.Response(answer.status, headers, answer.body, prepared, 0.0, False)
    checks = [response_headers_conformance]
    if operation.method.upper() != "HEAD":  # which describes a body that no server may send
        checks += [content_type_conformance, response_schema_conformance]
    if answer.status not in allowed and not (keyed and answer.status == KEY_REUSED):
        checks.append(status_code_conformance)
    try:
        case.validate_response(response, checks=checks)
    except FailureGroup as failures:
        return "\n".join(f"{type(failure).__name__}: {failure}" for failure in failures.exceptions)
    return None
