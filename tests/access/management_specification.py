"""The parts of Polaris's specification of the management API that tests use: its operations and answers.

`management.json` is an extract of it, kept so that tests need nothing else.
`python -m tests.access.management_specification polaris-management-service.yml` writes it anew.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

EXTRACT = Path(__file__).with_name("management.json")
SPECIFICATION = Path(
    os.environ.get("ARCO_MANAGEMENT_SPECIFICATION") or EXTRACT.with_name("polaris-management-service.yml")
)
"""The specification itself is not in the repository: where the variable names it, tests hold the extract to it."""


@dataclass(frozen=True)
class Operation:
    """One operation: its name, the statuses that are described, and the schema of the body of its 2xx answer."""

    name: str
    statuses: list[int]
    answer: str | None


@dataclass(frozen=True)
class Schema:
    """An object: the fields that it must have, the types of those that it may have, and with `chosen_by` the schemas
    that a field's value chooses among. A type is one of JSON, `list of` another, or the name of a schema; `values` are
    those of an enumeration."""

    required: list[str]
    fields: dict[str, str]
    chosen_by: str | None
    choices: dict[str, str]
    values: list[str]


@dataclass(frozen=True)
class Specification:
    """Operations by method and path, with parameters as `{}`, and schemas by name."""

    operations: dict[str, Operation]
    schemas: dict[str, Schema]

    def faults(self, document: Any, kind: str, at: str = "answer") -> Iterator[str]:
        """What is wrong with a document that should be of a type."""
        item = kind.removeprefix("list of ")
        if item != kind:
            if not isinstance(document, list):
                yield f"{at} is no list"
                return
            for place, each in enumerate(document):
                yield from self.faults(each, item, f"{at}[{place}]")
            return
        schema = self.schemas.get(kind)
        if schema is None or schema.values:
            if type(document) is not _TYPES.get(kind, str) or (schema is not None and document not in schema.values):
                yield f"{at} is no {kind}: {document!r}"
            return
        if not isinstance(document, dict):
            yield f"{at} is no object"
            return
        if schema.chosen_by is not None:
            chosen = schema.choices.get(document.get(schema.chosen_by, ""))
            if chosen is None:
                yield f"{at}.{schema.chosen_by} chooses nothing: {document.get(schema.chosen_by)!r}"
            elif chosen != kind:
                yield from self.faults(document, chosen, at)
            return
        for name in {*schema.required} - {*document}:
            yield f"{at}.{name} is missing"
        for name, value in document.items():
            if name not in schema.fields:
                yield f"{at}.{name} is not described"
            else:
                yield from self.faults(value, schema.fields[name], f"{at}.{name}")


_TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict}


def without_names(path: str) -> str:
    """A path template whose parameters have no names."""
    return re.sub(r"\{[^}]*\}", "{}", path)


def extract(specification: Path) -> Specification:
    """Reads the OpenAPI document."""
    document = yaml.load(specification.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    schemas = document["components"]["schemas"]
    operations = {
        f"{method.upper()} {without_names(path)}": _operation(operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in ("get", "post", "put", "delete")
    }
    return Specification(operations, {name: _schema(schema, schemas) for name, schema in schemas.items()})


def _operation(operation: Mapping[str, Any]) -> Operation:
    success = next(response for status, response in operation["responses"].items() if status < 300)
    schema = success.get("content", {}).get("application/json", {}).get("schema")
    answer = None if schema is None else _type(schema)
    return Operation(operation["operationId"], [*operation["responses"]], answer)


def _schema(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Schema:
    required: list[str] = []
    fields: dict[str, str] = {}
    for part in (*(_resolved(each, schemas) for each in schema.get("allOf", ())), schema):
        required += [name for name in part.get("required", ()) if name not in required]
        fields |= {name: _type(field) for name, field in part.get("properties", {}).items()}
    chooser = schema.get("discriminator", {})
    choices = {value: reference.rpartition("/")[2] for value, reference in chooser.get("mapping", {}).items()}
    return Schema(required, fields, chooser.get("propertyName"), choices, schema.get("enum", []))


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return found


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema.get("type", "object"))


def known() -> Specification:
    """The extract as it is kept."""
    stored = json.loads(EXTRACT.read_text())
    return Specification(
        {name: Operation(**fields) for name, fields in stored["operations"].items()},
        {name: Schema(**fields) for name, fields in stored["schemas"].items()},
    )


def sources() -> dict[str, Specification]:
    """The extract, and the specification itself where it is at hand."""
    found = {"extract": known()}
    if SPECIFICATION.exists():
        found["specification"] = extract(SPECIFICATION)
    return found


def _needed(specification: Specification) -> Specification:
    """Returns the specification without schemas that no answer uses."""
    waiting = [operation.answer for operation in specification.operations.values() if operation.answer]
    needed: dict[str, Schema] = {}
    while waiting:
        name = waiting.pop().removeprefix("list of ")
        schema = specification.schemas.get(name)
        if schema is not None and name not in needed:
            needed[name] = schema
            waiting += [*schema.fields.values(), *schema.choices.values()]
    return Specification(specification.operations, dict(sorted(needed.items())))


def _lines(entries: Mapping[str, Operation | Schema]) -> str:
    return ",\n".join(f"    {json.dumps(name)}: {json.dumps(asdict(entry))}" for name, entry in entries.items())


if __name__ == "__main__":
    written = _needed(extract(Path(sys.argv[1])))
    EXTRACT.write_text(
        f'{{\n  "operations": {{\n{_lines(written.operations)}\n  }},\n'
        f'  "schemas": {{\n{_lines(written.schemas)}\n  }}\n}}\n'
    )
