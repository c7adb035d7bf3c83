"""The Iceberg REST specification as the fuzzer reads it: what can be asked, and which answers it allows.

`openapi.json` is an extract of the specification without its prose, kept so that tests need nothing else.
`python -m tests.fuzz.specification SPEC.yaml` writes it anew.
"""

import json
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import requests
import schemathesis
import yaml
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tools.support.asgi_client import Answer

EXTRACT = Path(__file__).with_name("openapi.json")

Operation: TypeAlias = Any
"""schemathesis calls it `APIOperation[...]`, generic over types of its own."""

PROSE = ("description", "summary", "example", "examples")


def read(specification: Path) -> object:
    """The OpenAPI document."""
    document: object = yaml.load(specification.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return document


def extract(document: object) -> object:
    """The document without what only people read; statuses are names, as in JSON."""
    match document:
        case dict():
            return {str(name): extract(inner) for name, inner in document.items() if not _is_prose(name, inner)}
        case list():
            return [extract(inner) for inner in document]
        case _:
            return document


def _is_prose(name: object, value: object) -> bool:
    return name in PROSE and not (isinstance(value, dict) and ("type" in value or "$ref" in value))  # a field's name


def in_lines(document: object, levels: int = 3) -> str:
    """JSON with a line for each path and each component."""
    if not isinstance(document, dict) or levels == 0:
        return json.dumps(document, ensure_ascii=False)
    lines = [f"{json.dumps(name)}: {in_lines(inner, levels - 1)}" for name, inner in document.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def _corrected(document: Any) -> Any:
    """The document without its slips. Some responses are described as a bare `ErrorModel`, which is what stands in the
    `error` of all the others, and which no server sends and no client reads. A type is "one of" two that both take
    `variant`, a default value "one of" several that all take 1."""
    match document:
        case {"oneOf": [{"$ref": str(first)}, *_]} if first.endswith(("/VariantType", "/BooleanTypeValue")):
            return {"anyOf": document["oneOf"]}
        case {"schema": {"$ref": "#/components/schemas/ErrorModel"}}:
            return {**document, "schema": {"$ref": "#/components/schemas/IcebergErrorResponse"}}
        case dict():
            return {name: _corrected(inner) for name, inner in document.items()}
        case list():
            return [_corrected(inner) for inner in document]
        case _:
            return document


@lru_cache
def operations() -> Mapping[str, Operation]:
    """Every operation of the specification, by method and path."""
    schema = schemathesis.openapi.from_dict(_corrected(json.loads(EXTRACT.read_text())))
    found: list[Operation] = [*schema.get_all_operations()]
    return {operation.label: operation for operation in (each.ok() for each in found)}


EVERYWHERE = {
    404: "there is no warehouse, namespace or route of that name",
    406: "the catalog does not do this",
    413: "the body is larger than the server takes",
    415: "the body is said to be something else than JSON",
}
"""Statuses beyond the specification's that any operation may answer, in the default shape of errors."""
KEY_REUSED = 422
"""What a request may be answered whose idempotency key was another's (docs/design/idempotency.md#duplicates)."""


def violations(label: str, answer: Answer, *, keyed: bool) -> str | None:
    """What the specification says against an answer to this operation; None if nothing. `keyed`: whether the request
    had an idempotency key."""
    operation = operations()[label]
    case = operation.Case(path_parameters=dict.fromkeys(re.findall("{(.*?)}", label), "x"))
    prepared = requests.Request(operation.method, f"http://fuzz{case.formatted_path}").prepare()
    headers = {name: [value] for name, value in answer.headers.items()}
    response = schemathesis.Response(answer.status, headers, answer.body, prepared, 0.0, False)
    checks = [response_headers_conformance]
    if operation.method.upper() != "HEAD":  # which describes a body that no server may send
        checks += [content_type_conformance, response_schema_conformance]
    if answer.status not in EVERYWHERE and not (keyed and answer.status == KEY_REUSED):
        checks.append(status_code_conformance)
    try:
        case.validate_response(response, checks=checks)
    except FailureGroup as failures:
        return "\n".join(f"{type(failure).__name__}: {failure}" for failure in failures.exceptions)
    return None


if __name__ == "__main__":
    EXTRACT.write_text(in_lines(extract(read(Path(sys.argv[1])))) + "\n")
