"""Values of primitive types, their binary form in bounds, and their JSON form (table spec, "Single-value
serialization").

A date is the days since 1970; a time or timestamp is in microseconds, one of a type with `_ns` in nanoseconds; a
decimal has the scale of its type; UUIDs, fixed and binary values are bytes. Python's operators compare values of one
type in Iceberg's order: text by code point, bytes without sign.
"""

import math
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from functools import lru_cache
from typing import TypeAlias, cast
from uuid import UUID

from arco_catalog.iceberg import primitives
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.expressions import iso_times
from arco_catalog.iceberg.json import JsonValue

Value: TypeAlias = bool | int | float | Decimal | str | bytes

Decoder: TypeAlias = Callable[[bytes], Value | None]

EXACT = Context(prec=400)
"""Enough digits for every float and every decimal that a request may have, at any scale of a type."""

_MAX_DECIMAL_BYTES = 16
_INT, _LONG = struct.Struct("<i"), struct.Struct("<q")
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_MICROS_A_DAY = 86_400_000_000
_NANOS_A_DAY = _MICROS_A_DAY * 1000


def decode_bound(type_name: str, data: bytes) -> Value | None:
    """Returns the value of this type in a bound, also if the bound was written before the type was promoted. None if
    the bytes have no value of the type, or NaN, which no bound may be, and for every type that is not decoded, such as
    `geometry`: nothing follows from such a bound."""
    return bound_decoder(type_name)(data)


@lru_cache(maxsize=1024)
def bound_decoder(type_name: str) -> Decoder:
    """Returns the function that decodes bounds of a type as `decode_bound` does."""
    base = primitives.base_name(type_name)
    if base == "decimal":
        scale = decimal_scale(type_name)
        return _decimal_decoder(scale) if scale <= EXACT.prec else _undecodable
    return _DECODERS.get(base, _undecodable)


def decimal_scale(type_name: str) -> int:
    """Returns the digits after the point of the values of a decimal type."""
    return int(type_name.rpartition(",")[2].rstrip(" )"))


def scaled(value: Decimal | int | float, scale: int) -> Decimal:
    """Returns a number as a decimal with this many digits after the point, rounded half up; a float by its shortest
    decimal form."""
    exact = value if isinstance(value, Decimal) else Decimal(repr(value))
    return exact.quantize(Decimal(1).scaleb(-scale), rounding="ROUND_HALF_UP", context=EXACT)


def value_json(type_name: str, value: Value | None) -> JsonValue:
    """Returns the JSON form of a value of this type, null for None. Numbers that JSON lacks are written as text, as the
    reference implementation does. A value of a type without a JSON form is null."""
    if value is None:
        return None
    base = primitives.base_name(type_name)
    write = _WRITERS.get(base)
    if write is not None:
        return write(value)
    return format(scaled(cast(Decimal, value), decimal_scale(type_name)), "f") if base == "decimal" else None


def parse_value(type_name: str, value: JsonValue) -> Value:
    """Returns the value of this type that a JSON value stands for. Raises `BadRequest` for a value or type that has
    none."""
    base = primitives.base_name(type_name)
    if base in ("float", "double") and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        value = float(value)
    if base not in _PARSERS or not primitives.is_default(type_name, value):
        raise BadRequest(
            f"Cannot parse a literal of a filter as a value of the data-type {type_name}: {str(value)[:100]}"
        )
    return _PARSERS[base](value)


def rounded_to_float(value: float) -> float:
    """Returns the nearest value of type float. Raises `OverflowError` for a number beyond the largest."""
    return cast(float, _FLOAT.unpack(_FLOAT.pack(value))[0])


def _undecodable(_: bytes) -> None:
    """Returns None: bounds of this type are not decoded."""
    return None


def _decode_long(data: bytes) -> int | None:
    """Returns a number of 8 bytes, or of 4 if it was an int at that time; None for another length."""
    if len(data) == 8:
        return cast(int, _LONG.unpack(data)[0])
    return _decode_int(data)


def _decode_int(data: bytes) -> int | None:
    """Returns a number of 4 bytes; None for another length."""
    return cast(int, _INT.unpack(data)[0]) if len(data) == 4 else None


def _decode_timestamp(units_a_day: int) -> Decoder:
    """Returns the decoder of a timestamp of 8 bytes, or of a date of 4 as the first moment of that day; the decoder
    returns None for another length."""

    def decode(data: bytes) -> int | None:
        if len(data) == 8:
            return cast(int, _LONG.unpack(data)[0])
        days = _decode_int(data)  # written when the column was a date
        return None if days is None else days * units_a_day

    return decode


def _decode_float(data: bytes) -> float | None:
    """Returns a float of 4 bytes; None for NaN or another length."""
    return _unless_nan(_FLOAT.unpack(data)[0]) if len(data) == 4 else None


def _decode_double(data: bytes) -> float | None:
    """Returns a double of 8 bytes, or a float of 4; None for NaN or another length."""
    return _unless_nan(_DOUBLE.unpack(data)[0]) if len(data) == 8 else _decode_float(data)


def _unless_nan(value: float) -> float | None:
    """Returns the number; None for NaN."""
    return None if math.isnan(value) else value


def _decode_text(data: bytes) -> str | None:
    """Returns the text of bytes in UTF-8; None if they are no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _decimal_decoder(scale: int) -> Decoder:
    """Returns the decoder of decimals with this scale, which returns None for no byte and for more than 16."""

    def decode(data: bytes) -> Decimal | None:
        if not 0 < len(data) <= _MAX_DECIMAL_BYTES:
            return None
        return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, EXACT)

    return decode


_DECODERS: dict[str, Decoder] = {
    "boolean": lambda data: data != b"\x00" if len(data) == 1 else None,
    "int": _decode_int,
    "date": _decode_int,
    "long": _decode_long,
    "time": _decode_long,
    "timestamp": _decode_timestamp(_MICROS_A_DAY),
    "timestamptz": _decode_long,
    "timestamp_ns": _decode_timestamp(_NANOS_A_DAY),
    "timestamptz_ns": _decode_long,
    "float": _decode_float,
    "double": _decode_double,
    "string": _decode_text,
    "uuid": lambda data: data if len(data) == 16 else None,
    "fixed": bytes,
    "binary": bytes,
}


def _float_json(value: Value) -> JsonValue:
    """Returns a number as a JSON number; NaN and the infinities as texts."""
    number = float(value)
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _hex(value: Value) -> JsonValue:
    """Returns bytes as hexadecimal digits in upper case."""
    return cast(bytes, value).hex().upper()


_WRITERS: dict[str, Callable[[Value], JsonValue]] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": _float_json,
    "double": _float_json,
    "date": lambda value: iso_times.date_text(cast(int, value)),
    "time": lambda value: iso_times.time_text(cast(int, value) * 1000),
    "timestamp": lambda value: iso_times.timestamp_text(cast(int, value) * 1000),
    "timestamptz": lambda value: iso_times.timestamp_text(cast(int, value) * 1000) + "+00:00",
    "timestamp_ns": lambda value: iso_times.timestamp_text(cast(int, value)),
    "timestamptz_ns": lambda value: iso_times.timestamp_text(cast(int, value)) + "+00:00",
    "string": str,
    "uuid": lambda value: str(UUID(bytes=cast(bytes, value))),
    "fixed": _hex,
    "binary": _hex,
}

_PARSERS: dict[str, Callable[[JsonValue], Value]] = {
    "boolean": lambda value: cast(bool, value),
    "int": lambda value: cast(int, value),
    "long": lambda value: cast(int, value),
    "float": lambda value: rounded_to_float(cast(float, value)),
    "double": lambda value: cast(float, value),
    "decimal": lambda value: Decimal(cast(str, value)),
    "date": lambda value: iso_times.parse_date(cast(str, value)),
    "time": lambda value: iso_times.parse_time(cast(str, value)) // 1000,
    "timestamp": lambda value: iso_times.parse_timestamp(cast(str, value), zoned=False) // 1000,
    "timestamptz": lambda value: iso_times.parse_timestamp(cast(str, value), zoned=True) // 1000,
    "timestamp_ns": lambda value: iso_times.parse_timestamp(cast(str, value), zoned=False),
    "timestamptz_ns": lambda value: iso_times.parse_timestamp(cast(str, value), zoned=True),
    "string": lambda value: cast(str, value),
    "uuid": lambda value: UUID(cast(str, value)).bytes,
    "fixed": lambda value: bytes.fromhex(cast(str, value)),
    "binary": lambda value: bytes.fromhex(cast(str, value)),
}
