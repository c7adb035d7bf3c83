"""Typed reads of stored JSON. A record without a required field is an internal error, never the client's."""

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads


def parse_record(body: bytes, where: str, newest: int = 1) -> JsonObject:
    """Returns the JSON object of a stored record. Raises `InternalError` if it is not a JSON object whose `version` is
    1 to `newest`; the error names `where` it is saved."""
    try:
        document = loads(body)
    except MalformedJson as error:
        raise InternalError(f"The record {where} is not JSON") from error
    version = document.get("version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > newest:
        raise InternalError(
            f"The record {where} has version {version}, and this program reads versions up to {newest}: use a newer "
            "version of the program"
        )
    if not isinstance(document, dict) or version not in range(1, newest + 1):
        raise InternalError(
            f"The record {where} has a format that this version of the program cannot read: it is damaged"
        )
    return document


def text(document: JsonObject, name: str) -> str:
    """Returns the string in the required field `name` of a stored document. Raises `InternalError` if it is missing or
    has another type."""
    value = document.get(name)
    if not isinstance(value, str):
        raise InternalError(f"a stored record is invalid: the field {name!r} is missing or not a string")
    return value


def integer(document: JsonObject, name: str) -> int:
    """Returns the integer in the required field `name` of a stored document; a boolean is returned, too. Raises
    `InternalError` if it is missing or has another type."""
    value = document.get(name)
    if not isinstance(value, int):
        raise InternalError(f"a stored record is invalid: the field {name!r} is missing or not an integer")
    return value


def optional_text(document: JsonObject, name: str) -> str | None:
    """Returns the string in the field `name` of a document, None if it is missing or has another type."""
    value = document.get(name)
    return value if isinstance(value, str) else None


def mapping(document: JsonObject, name: str) -> JsonObject:
    """Returns the JSON object in the field `name` of a document, an empty one if it is missing or has another type."""
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def sequence(document: JsonObject, name: str) -> list[JsonValue]:
    """Returns the array in the field `name` of a document, an empty one if it is missing or has another type."""
    value = document.get(name)
    return value if isinstance(value, list) else []


def objects(document: JsonObject, name: str) -> list[JsonObject]:
    """Returns the JSON objects in the array in the field `name` of a document, without items of other types; empty if
    the field is missing or is no array."""
    return [item for item in sequence(document, name) if isinstance(item, dict)]


def texts(document: JsonObject, name: str) -> tuple[str, ...]:
    """Returns the strings in the array in the field `name` of a document, without items of other types; empty if the
    field is missing or is no array."""
    value = document.get(name)
    return tuple(item for item in value if isinstance(item, str)) if value and isinstance(value, list) else ()


def string_map(document: JsonObject, name: str) -> dict[str, str]:
    """Returns the JSON object of strings in the field `name` of a stored document, empty if the field is missing.
    Raises `InternalError` if it has another type."""
    value = document.get(name, {})
    if value == {}:
        return {}
    if not isinstance(value, dict):
        raise InternalError(f"a stored record is invalid: the field {name!r} is not a JSON object")
    strings = {key: item for key, item in value.items() if isinstance(item, str)}
    if len(strings) != len(value):
        raise InternalError(
            f"a stored record is invalid: the JSON object in the field {name!r} has a value that is not a string"
        )
    return strings
