"""The API's own description, as tests read it, and answers held to it."""

from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]

from tools.support.asgi_client import Answer
from tools.support.environment import PROJECT

FILE: Path = PROJECT / "docs/delegation-service.openapi.yaml"
DOCUMENT: dict[str, Any] = yaml.safe_load(FILE.read_text())
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


def operation(method: str, path: str) -> dict[str, Any]:
    """The operation of a route in the file."""
    found: dict[str, Any] = DOCUMENT["paths"][path][method.lower()]
    return found


def conforms(answer: Answer, method: str, path: str) -> Answer:
    """The answer, if the file describes it: its status, and every field of its body."""
    described = operation(method, path)["responses"][str(answer.status)]
    if "$ref" in described:
        described = DOCUMENT["components"]["responses"][described["$ref"].rpartition("/")[2]]
    reference = described["content"]["application/json"]["schema"]["$ref"]
    schema = {"$ref": reference, "components": {"schemas": _closed(SCHEMAS)}}
    Draft202012Validator(schema, format_checker=FormatChecker()).validate(answer.json)
    return answer


def _closed(schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas with nothing allowed that they do not name."""
    return {
        name: {**schema, "additionalProperties": False} if "properties" in schema else schema
        for name, schema in schemas.items()
    }
