"""Reads values of JSON documents that clients wrote: a value of another type than expected counts as absent, and is not
an error. Only `required_long` and `required_time`, for the catalog's own records, raise one."""

from collections.abc import Mapping

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.fields import integer

MAX_LONG = 2**63 - 1
FIRST_TIME_MS, LAST_TIME_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999. Arrow and Iceberg allow others, but some readers of a table, such as Python, do not."""


def text_of(value: JsonValue) -> str | None:
    """Returns the value if it is a string, otherwise None."""
    return value if isinstance(value, str) else None


def long_of(value: JsonValue) -> int | None:
    """Returns the value as an integer of 64 bits, without the least one; None for any other value. A string of digits
    counts, too, since summaries of snapshots have their numbers as strings."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    return value if type(value) is int and -MAX_LONG <= value <= MAX_LONG else None


def int_of(value: JsonValue) -> int | None:
    """Returns the value as an integer of 32 bits, as `long_of` reads it; None for any other value."""
    found = long_of(value)
    return found if found is not None and -(2**31) <= found < 2**31 else None


def time_of(value: object) -> int | None:
    """Returns the value if it is an integer of milliseconds since 1970 in the years 1 to 9999, otherwise None."""
    return value if type(value) is int and FIRST_TIME_MS <= value <= LAST_TIME_MS else None


def required_long(record: JsonObject, name: str) -> int:
    """Returns the integer in a record's field. Raises `InternalError` if the field is missing, is not an integer, or
    does not fit into 64 bits."""
    found = long_of(integer(record, name))
    if found is None:
        raise InternalError(
            f"the field {name!r} of a stored record is not an integer of 64 bits, so the record gets no row in a table "
            "of system"
        )
    return found


def required_time(record: JsonObject, name: str) -> int:
    """Returns the time in a record's field, in milliseconds since 1970. Raises `InternalError` if the field is missing,
    is not an integer, or is outside of the years 1 to 9999."""
    at_ms = time_of(integer(record, name))
    if at_ms is None:
        raise InternalError(
            f"the field {name!r} of a stored record is not a time of the years 1 to 9999, in milliseconds since 1970, "
            "so the record gets no row in a table of system"
        )
    return at_ms


def nearest_time(ms: int) -> int:
    """Returns a time in milliseconds since 1970, moved into the years 1 to 9999 if it is outside of them."""
    return min(max(ms, FIRST_TIME_MS), LAST_TIME_MS)


def object_of(value: JsonValue) -> JsonObject:
    """Returns the value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def objects_of(value: JsonValue) -> list[JsonObject]:
    """Returns the elements of a list that are objects; empty if the value is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def texts_of(value: JsonValue) -> list[str]:
    """Returns the elements of a list that are strings; empty if the value is not a list."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def longs_of(value: JsonValue) -> list[int]:
    """Returns the integers in a list as `long_of` reads them, without other elements; empty if the value is not a
    list."""
    return [each for each in map(long_of, value) if each is not None] if isinstance(value, list) else []


def properties_of(value: JsonValue) -> Mapping[str, str]:
    """Returns the fields of an object that are strings; empty if the value is not an object."""
    return {name: each for name, each in object_of(value).items() if isinstance(each, str)}


def namespace_of(value: JsonValue) -> str | None:
    """Returns the levels of a namespace, joined by dots; None if the value is not a list."""
    return ".".join(texts_of(value)) if isinstance(value, list) else None
