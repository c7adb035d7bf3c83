"""Literals of a filter as values of the type with which they are compared, by the conversions of the reference
implementation. None of them is a cast: text is no integer or float (it may be a decimal), and a number no boolean."""

import re
from collections.abc import Callable
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from enum import Enum
from typing import NamedTuple, TypeAlias, cast
from uuid import UUID

from arco_catalog.iceberg import primitives
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.expressions import iso_times
from arco_catalog.iceberg.expressions.expression import Literal
from arco_catalog.iceberg.expressions.values import (
    EXACT,
    Value,
    decimal_scale,
    parse_value,
    rounded_to_float,
    scaled,
)

MAX_FLOAT = (2 - 2**-23) * 2.0**127

_NANOS_A_DAY = 86_400 * 10**9
_TIMESTAMPS = frozenset({"timestamp", "timestamptz"})
_NANO_TIMESTAMPS = frozenset({"timestamp_ns", "timestamptz_ns"})
_DECIMAL = re.compile(r"[+-]?([0-9]{1,80}(\.[0-9]{0,80})?|\.[0-9]{1,80})([eE][+-]?[0-9]{1,2})?")
_HEX = re.compile(r"([0-9a-fA-F]{2})*")


class Beyond(Enum):
    """A literal of a filter that is above or below all values of the type with which it is compared."""

    ABOVE = 1
    BELOW = -1


class Between(NamedTuple):
    """A literal of a filter that is between two neighbouring values of the type with which it is compared; `floor` is
    the lower one."""

    floor: Value


Bound: TypeAlias = Value | Beyond | Between


def convert(literal: Literal, type_name: str) -> Bound:
    """Returns a literal as a value of the type, or its place beyond or between the values of the type. Raises
    `BadRequest` for one that the type has no conversion for, that is no value of the type which it states, or that
    would be a time of more than 64 bits."""
    base = primitives.base_name(type_name)
    if literal.type is None:
        kind, value = _KINDS[type(literal.value)], cast(Value, literal.value)
    else:
        kind, value = primitives.base_name(literal.type), parse_value(literal.type, literal.value)
    try:
        converted = _CONVERSIONS.get(kind, _never)(value, base, type_name)
    except InvalidOperation:  # the scale of the type is greater than any number of digits that `EXACT` has
        converted = None
    if converted is None:
        shown = f"{str(literal.value)[:100]} ({literal.type or kind})"
        raise BadRequest(f"Invalid value for conversion to type {type_name} in a filter: {shown}")
    return converted


def _never(value: Value, base: str, type_name: str) -> None:
    """Returns None: literals of this type have no conversion."""
    return None


def _from_boolean(value: Value, base: str, type_name: str) -> Bound | None:
    """Returns a boolean if the type to convert to is boolean; None for any other type."""
    return value if base == "boolean" else None


def _from_integer(value: Value, base: str, type_name: str) -> Bound | None:
    """Returns an integer as a value of the type, or on which side of the type's values it is. For a timestamp of any
    unit the integer counts microseconds; for one in nanoseconds it is multiplied, and fails if that exceeds 64 bits.
    None if there is no conversion."""
    number = cast(int, value)
    if base in ("int", "date"):
        return _within(number, -(2**31), 2**31 - 1)
    if base == "long" or base == "time" or base in _TIMESTAMPS:
        return number
    if base in _NANO_TIMESTAMPS:
        return _long(number * 1000, type_name)
    if base == "float":
        return rounded_to_float(float(number))
    if base == "double":
        return float(number)
    return scaled(number, decimal_scale(type_name)) if base == "decimal" else None


def _from_float(value: Value, base: str, type_name: str) -> Bound | None:
    """Returns a floating-point number as a value of the type, rounded if the type is less exact, or on which side of
    the floats it is. None if there is no conversion."""
    number = cast(float, value)
    if base == "float":
        within = _within(number, -MAX_FLOAT, MAX_FLOAT)
        return within if isinstance(within, Beyond) else rounded_to_float(number)
    if base == "double":
        return number
    return scaled(number, decimal_scale(type_name)) if base == "decimal" else None


def _from_text(value: Value, base: str, type_name: str) -> Bound | None:
    """Returns the value of the type in a text, such as a date in ISO 8601; for a decimal between two values a `Between`
    with the lower one, for a date beyond 32 bits a `Beyond`. None if there is no conversion, also for a malformed
    number, UUID or hexadecimal text. Fails for a malformed date or time, and for a timestamp of more than 64 bits."""
    read = _TEXTS.get(base)
    return None if read is None else read(cast(str, value), type_name)


def _from_decimal(value: Value, base: str, type_name: str) -> Bound | None:
    """Returns a decimal in the scale of another decimal type, or if it is between two values of that, a `Between` with
    the lower one; None for any other type."""
    if base != "decimal":
        return None
    exact, step = cast(Decimal, value), Decimal(1).scaleb(-decimal_scale(type_name))
    floor = exact.quantize(step, rounding=ROUND_FLOOR, context=EXACT)
    return floor if floor == exact else Between(floor)


def _from_timestamp(nanos_a_unit: int) -> Callable[[Value, str, str], Bound | None]:
    """Returns the conversion of timestamps of this unit to dates and other timestamps, rounded down, and to None for
    any other type. It fails for nanoseconds that exceed 64 bits."""

    def convert_timestamp(value: Value, base: str, type_name: str) -> Bound | None:
        nanos = cast(int, value) * nanos_a_unit
        if base == "date":
            return nanos // _NANOS_A_DAY
        if base in _TIMESTAMPS:
            return nanos // 1000
        return _long(nanos, type_name) if base in _NANO_TIMESTAMPS else None

    return convert_timestamp


def _from_bytes(value: Value, base: str, type_name: str) -> Bound | None:
    """Returns bytes as a value of type fixed, if they have its length, or binary; None for any other type."""
    data = cast(bytes, value)
    if base == "fixed":
        return data if len(data) == _fixed_length(type_name) else None
    return data if base == "binary" else None


def _equal_types(kind: str) -> Callable[[Value, str, str], Bound | None]:
    """Returns the conversion of a type to itself, which returns None for any other type."""
    return lambda value, base, type_name: value if base == kind else None


def _decimal_text(text: str, type_name: str) -> Bound | None:
    """Returns the decimal in a text as a value of the type, or if it is between two values, a `Between` with the lower
    one; None if the text is no decimal."""
    if _DECIMAL.fullmatch(text) is None:
        return None
    return _from_decimal(Decimal(text), "decimal", type_name)


def _hex_text(text: str, type_name: str) -> Bound | None:
    """Returns bytes in hexadecimal digits as a value of the type; None if the text has other characters, an odd
    number of digits, or another length than a fixed type."""
    if _HEX.fullmatch(text) is None:
        return None
    return _from_bytes(bytes.fromhex(text), primitives.base_name(type_name), type_name)


def _timestamp_text(*, zoned: bool, nanos_a_unit: int) -> Callable[[str, str], Bound | None]:
    """Returns the reader of timestamps in ISO 8601, with an offset or without, as a number of units of `nanos_a_unit`
    nanoseconds, rounded down."""
    return lambda text, type_name: _long(iso_times.parse_timestamp(text, zoned=zoned) // nanos_a_unit, type_name)


def _date_text(text: str, type_name: str) -> Bound:
    """Reads a date in ISO 8601 as days since 1970, or on which side of 32 bits it is."""
    return _within(iso_times.parse_date(text), -(2**31), 2**31 - 1)


def _within(value: float, lowest: float, highest: float) -> Bound:
    """Returns the value, or on which side of the two limits it is."""
    return Beyond.ABOVE if value > highest else Beyond.BELOW if value < lowest else value


def _long(value: int, type_name: str) -> int:
    """Returns a number that fits into 64 bits. Fails for any other."""
    if not -(2**63) <= value < 2**63:
        raise BadRequest(f"Invalid value for conversion to type {type_name} in a filter: it exceeds 64 bits")
    return value


def _fixed_length(type_name: str) -> int:
    """Returns the length in the name of a type `fixed[...]`."""
    return int(type_name.partition("[")[2].strip(" ]"))


_KINDS: dict[type, str] = {bool: "boolean", int: "long", float: "double", str: "string"}

_CONVERSIONS: dict[str, Callable[[Value, str, str], Bound | None]] = {
    "boolean": _from_boolean,
    "int": _from_integer,
    "long": _from_integer,
    "float": _from_float,
    "double": _from_float,
    "string": _from_text,
    "decimal": _from_decimal,
    "date": _equal_types("date"),
    "time": _equal_types("time"),
    "timestamp": _from_timestamp(1000),
    "timestamptz": _from_timestamp(1000),
    "timestamp_ns": _from_timestamp(1),
    "timestamptz_ns": _from_timestamp(1),
    "uuid": _equal_types("uuid"),
    "fixed": _from_bytes,
    "binary": _from_bytes,
}

_TEXTS: dict[str, Callable[[str, str], Bound | None]] = {
    "string": lambda text, type_name: text,
    "date": _date_text,
    "time": lambda text, type_name: iso_times.parse_time(text) // 1000,
    "timestamp": _timestamp_text(zoned=False, nanos_a_unit=1000),
    "timestamptz": _timestamp_text(zoned=True, nanos_a_unit=1000),
    "timestamp_ns": _timestamp_text(zoned=False, nanos_a_unit=1),
    "timestamptz_ns": _timestamp_text(zoned=True, nanos_a_unit=1),
    "uuid": lambda text, type_name: UUID(text).bytes if primitives.UUID.fullmatch(text) else None,
    "decimal": _decimal_text,
    "fixed": _hex_text,
    "binary": _hex_text,
}
