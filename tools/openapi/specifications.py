"""Reads the specifications by which the catalog's API is made, without their prose.

Extracts of them are kept beside this module, so that nothing else is needed. They are written anew by
`python -m tools.openapi.specifications ICEBERG.yaml POLARIS`, where `POLARIS` is the folder of Apache Polaris's own.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from tools.support.environment import PROJECT

Json: TypeAlias = dict[str, Any]
"""A part of a document: as many shapes as the specification of OpenAPI has."""

FOLDER = Path(__file__).with_name("specifications")
ICEBERG, POLARIS, MANAGEMENT = (FOLDER / f"{name}.json" for name in ("iceberg", "polaris", "management"))
_UNKNOWN = PROJECT / "no-such-file"
ICEBERG_SOURCE = Path(os.environ.get("ARCO_REST_SPECIFICATION") or _UNKNOWN)
POLARIS_SOURCE = Path(os.environ.get("ARCO_POLARIS_SPECIFICATIONS") or _UNKNOWN)
"""The specifications themselves are not in the repository: where the variables name them, a test holds the extracts to
them."""

POLARIS_FILES = ("generic-tables-api", "policy-apis", "notifications-api", "semantic-models-api")
MANAGEMENT_BASE = "/api/management/v1"
METHODS = ("get", "head", "post", "put", "delete")
PROSE = ("description", "summary", "example", "examples")
COMPONENTS = ("parameters", "headers", "responses", "schemas")
_EXAMPLE = re.compile(r".*/examples/.*")
_ELSEWHERE = re.compile(r"^[^#]+(?=#/components/)")


@dataclass(frozen=True)
class Operation:
    """One operation of a specification, with the parameters of its path among its own."""

    path: str
    described: Json


def read(file: Path) -> Json:
    """An OpenAPI document."""
    document: Json = yaml.load(file.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
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
    if name not in PROSE:
        return False
    is_field = isinstance(value, dict) and ("type" in value or not _EXAMPLE.fullmatch(value.get("$ref", "/examples/")))
    return not is_field


def extract_polaris(folder: Path) -> Json:
    """Apache Polaris's own catalog APIs as one document, which refers to components of Iceberg's as to its own."""
    whole: Json = {"paths": {}, "components": {}}
    for name in POLARIS_FILES:
        document: Any = extract(read(folder / "polaris-catalog-apis" / f"{name}.yaml"))
        whole["paths"] |= document["paths"]
        for kind in COMPONENTS:
            whole["components"].setdefault(kind, {}).update(document.get("components", {}).get(kind, {}))
    return modern(whole)


def extract_management(folder: Path) -> Json:
    """Its management API, with the paths at which it is served."""
    document: Any = extract(read(folder / "polaris-management-service.yml"))
    paths = {f"{MANAGEMENT_BASE}{path}": item for path, item in document["paths"].items()}
    return modern({"paths": paths, "components": {"schemas": document["components"]["schemas"]}})


def modern(document: Json) -> Json:
    """Convert a document of OpenAPI 3.0 to 3.1, where null is a type, with references to the document itself."""
    return {name: _modern(part) for name, part in document.items()}


def _modern(part: Any) -> Any:
    match part:
        case {"nullable": nullable, **rest}:
            return _modern({**rest, "type": [rest["type"], "null"]} if nullable and "type" in rest else rest)
        case {"$ref": str(reference)}:
            return {"$ref": _ELSEWHERE.sub("", reference)}
        case dict():
            return {name: _modern(inner) for name, inner in part.items()}
        case list():
            return [_modern(inner) for inner in part]
        case _:
            return part


def in_lines(document: object, levels: int = 3) -> str:
    """JSON with a line for each path and each component."""
    if not isinstance(document, dict) or levels == 0:
        return json.dumps(document, ensure_ascii=False)
    lines = [f"{json.dumps(name)}: {in_lines(inner, levels - 1)}" for name, inner in document.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def corrected(document: Any) -> Any:
    """A document without its slips. Some responses are described as a bare `ErrorModel`, which is what stands in the
    `error` of all the others, and which no server sends and no client reads. A type is "one of" two that both take
    `variant`, a default value "one of" several that all take 1."""
    match document:
        case {"oneOf": [{"$ref": str(first)}, *_]} if first.endswith(("/VariantType", "/BooleanTypeValue")):
            return {"anyOf": document["oneOf"]}
        case {"schema": {"$ref": "#/components/schemas/ErrorModel"}}:
            return {**document, "schema": {"$ref": "#/components/schemas/IcebergErrorResponse"}}
        case dict():
            return {name: corrected(inner) for name, inner in document.items()}
        case list():
            return [corrected(inner) for inner in document]
        case _:
            return document


@cache
def documents() -> tuple[Json, ...]:
    """The extracts as they are kept, Iceberg's first."""
    return tuple(json.loads(file.read_text()) for file in (ICEBERG, POLARIS, MANAGEMENT))


def nameless(endpoint: str) -> str:
    """An endpoint whatever its parameters are called, which specifications and routes do not agree on."""
    return re.sub(r"\{[^}]*\}", "{}", endpoint)


@cache
def operations() -> Mapping[str, Operation]:
    """Every operation of the specifications, by its nameless endpoint."""
    return {nameless(f"{method.upper()} {each.path}"): each for method, each in _operations()}


def _operations() -> Iterator[tuple[str, Operation]]:
    for document in documents():
        for path, item in document["paths"].items():
            for method in METHODS:
                if method in item:
                    parameters = [*item.get("parameters", ()), *item[method].get("parameters", ())]
                    yield method, Operation(path, {**item[method], "parameters": parameters})


@cache
def components() -> Mapping[str, Json]:
    """The components of all specifications by kind and name. Raises `ValueError` if two mean different things by one
    name."""
    found: dict[str, Json] = {kind: {} for kind in COMPONENTS}
    for document in documents():
        for kind in COMPONENTS:
            for name, component in document["components"].get(kind, {}).items():
                if found[kind].setdefault(name, component) != component:
                    raise ValueError(f"two specifications differ in {kind}/{name}")
    return found


def main(iceberg: Path, polaris: Path) -> None:
    """Writes the extracts."""
    extracts = {ICEBERG: extract(read(iceberg)), POLARIS: extract_polaris(polaris)}
    for file, document in {**extracts, MANAGEMENT: extract_management(polaris)}.items():
        file.write_text(in_lines(document) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
