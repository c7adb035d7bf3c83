"""Typed reads of stored JSON. A record that lacks what it must have is our own fault, never the client's."""

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads


def parse_record(body: bytes, where: str, newest: int = 1) -> JsonObject:
    """One stored record. Raises `InternalError` if it is not a JSON object of a version that this code reads, of which
    `newest` is the last."""
    try:
        document = loads(body)
    except MalformedJson as error:
        raise InternalError(f"{where} is not JSON") from error
    if not isinstance(document, dict) or document.get("version") not in range(1, newest + 1):
        raise InternalError(f"{where} has a format that this version cannot read")
    return document


def text(document: JsonObject, name: str) -> str:
    """A string that must be there."""
    value = document.get(name)
    if not isinstance(value, str):
        raise InternalError(f"a stored record lacks {name!r}")
    return value


def integer(document: JsonObject, name: str) -> int:
    """An integer that must be there."""
    value = document.get(name)
    if not isinstance(value, int):
        raise InternalError(f"a stored record lacks {name!r}")
    return value


def optional_text(document: JsonObject, name: str) -> str | None:
    """A string, None if the field is missing or is something else."""
    value = document.get(name)
    return value if isinstance(value, str) else None


def mapping(document: JsonObject, name: str) -> JsonObject:
    """An object, empty if the field is missing or is something else."""
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def sequence(document: JsonObject, name: str) -> list[JsonValue]:
    """An array, empty if the field is missing or is something else."""
    value = document.get(name)
    return value if isinstance(value, list) else []


def texts(document: JsonObject, name: str) -> tuple[str, ...]:
    """The strings in an array, empty if the field is missing or is something else."""
    value = document.get(name)
    return tuple(item for item in value if isinstance(item, str)) if value and isinstance(value, list) else ()


def string_map(document: JsonObject, name: str) -> dict[str, str]:
    """An object of strings, empty if the field is missing. Raises `InternalError` if it is something else."""
    value = document.get(name, {})
    if value == {}:
        return {}
    if not isinstance(value, dict):
        raise InternalError(f"a stored record has {name!r} that is no object")
    strings = {key: item for key, item in value.items() if isinstance(item, str)}
    if len(strings) != len(value):
        raise InternalError(f"a stored record has {name!r} with something that is no string")
    return strings
