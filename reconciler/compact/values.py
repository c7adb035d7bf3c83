"""Values of JSON documents that others wrote: what is not of its type is taken for absent, not for an error."""

from collections.abc import Mapping

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.fields import integer

MAX_LONG = 2**63 - 1
FIRST_TIME_MS, LAST_TIME_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999. Arrow and Iceberg reach further, but not all who read a table do: Python does not."""


def text_of(value: JsonValue) -> str | None:
    """A text."""
    return value if isinstance(value, str) else None


def long_of(value: JsonValue) -> int | None:
    """An integer, which summaries of snapshots write as text, that a column can hold."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    return value if type(value) is int and -MAX_LONG <= value <= MAX_LONG else None


def int_of(value: JsonValue) -> int | None:
    """An integer of 32 bits."""
    found = long_of(value)
    return found if found is not None and -(2**31) <= found < 2**31 else None


def time_of(value: object) -> int | None:
    """Milliseconds since 1970 that a column can hold."""
    return value if type(value) is int and FIRST_TIME_MS <= value <= LAST_TIME_MS else None


def required_long(record: JsonObject, name: str) -> int:
    """An integer that a record must tell, and a column can hold. Raises `InternalError`."""
    found = long_of(integer(record, name))
    if found is None:
        raise InternalError(f"a stored record has no integer of 64 bits in {name!r}")
    return found


def required_time(record: JsonObject, name: str) -> int:
    """A time that a record must tell. Raises `InternalError`."""
    at_ms = time_of(integer(record, name))
    if at_ms is None:
        raise InternalError(f"a stored record has no time in {name!r}: the years 1 to 9999 are, in milliseconds")
    return at_ms


def nearest_time(ms: int) -> int:
    """The time nearest to one by a sender's word that a column can hold."""
    return min(max(ms, FIRST_TIME_MS), LAST_TIME_MS)


def object_of(value: JsonValue) -> JsonObject:
    """An object, empty if it is none."""
    return value if isinstance(value, dict) else {}


def objects_of(value: JsonValue) -> list[JsonObject]:
    """The objects of a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def texts_of(value: JsonValue) -> list[str]:
    """The texts of a list."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def longs_of(value: JsonValue) -> list[int]:
    """The integers of a list."""
    return [each for each in map(long_of, value) if each is not None] if isinstance(value, list) else []


def properties_of(value: JsonValue) -> Mapping[str, str]:
    """A map of texts."""
    return {name: each for name, each in object_of(value).items() if isinstance(each, str)}


def namespace_of(value: JsonValue) -> str | None:
    """The levels of a namespace, joined by dots; None for none."""
    return ".".join(texts_of(value)) if isinstance(value, list) else None
