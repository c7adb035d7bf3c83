"""Partition transforms of values (table spec, "Partition Transforms"), and the types of their results."""

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias, cast

from arco_catalog.iceberg import primitives
from arco_catalog.iceberg.expressions.iso_times import year_month_day
from arco_catalog.iceberg.expressions.values import EXACT, Value, decimal_scale
from arco_catalog.iceberg.transforms import can_transform, canonical, parameter_of

Transform: TypeAlias = Callable[[Value], Value]

ORDER_PRESERVING = frozenset({"identity", "truncate", "year", "month", "day", "hour"})
TIMES = frozenset({"year", "month", "day", "hour"})

_FIRST_YEAR = 1970
_UNITS_A_SECOND = {"timestamp": 10**6, "timestamptz": 10**6, "timestamp_ns": 10**9, "timestamptz_ns": 10**9}
_BITS = {"int": 32, "long": 64}
_LONG = struct.Struct("<q")


def transform_name(transform: str) -> str:
    """Returns the name of a transform without its parameter, for example `bucket` for `bucket[16]`. One with a
    parameter that is not valid, or that it does not have, is unknown: it has a name that no transform has."""
    name = canonical(transform)
    if parameter_of(name):
        return name.partition("[")[0]
    return f"{name}[]" if name in ("bucket", "truncate") else name


def result_type(transform: str, source_type: str) -> str:
    """Returns the type of a transform's results. That of an unknown transform counts as string."""
    match transform_name(transform):
        case "year" | "month" | "hour" | "bucket":
            return "int"
        case "day":
            return "date"
        case "identity" | "truncate" | "void":
            return source_type
    return "string"


def transform_function(transform: str, source_type: str) -> Transform | None:
    """Returns the function that computes a transform of values of a type that are not null. None if it is unknown, has
    no valid parameter, is `void`, or does not accept the type."""
    name = transform_name(transform)
    base = primitives.base_name(source_type)
    if not base or not can_transform(transform, source_type):
        return None
    if name in ("bucket", "truncate"):
        parameter = parameter_of(transform)
        return _bucket(source_type, parameter) if name == "bucket" else _truncate(source_type, parameter)
    if name in TIMES:
        return _time_transform(name, base)
    return (lambda value: value) if name == "identity" else None


def _bucket(source_type: str, buckets: int) -> Transform:
    """Returns the transform `bucket[buckets]` of a type: the number of the bucket from 0 on, by the Murmur3 hash."""
    to_bytes = _hashed_bytes(source_type)
    return lambda value: (murmur3(to_bytes(value)) & 0x7FFFFFFF) % buckets


def _hashed_bytes(source_type: str) -> Callable[[Value], bytes]:
    """Returns the function that returns the bytes of a value of the type that `bucket` hashes."""
    base = primitives.base_name(source_type)
    if base == "string":
        return lambda value: cast(str, value).encode()
    if base in ("uuid", "fixed", "binary"):
        return lambda value: cast(bytes, value)
    if base == "decimal":
        scale = decimal_scale(source_type)
        return lambda value: _signed_bytes(unscaled(cast(Decimal, value), scale))
    if base in ("timestamp_ns", "timestamptz_ns"):  # hashed as the timestamp in microseconds is
        return lambda value: _LONG.pack(cast(int, value) // 1000)
    return lambda value: _LONG.pack(cast(int, value))


def unscaled(value: Decimal, scale: int) -> int:
    """Returns a decimal of this scale as an integer without the point: 1.25 of scale 2 as 125."""
    return int(value.scaleb(scale, EXACT))


def _signed_bytes(number: int) -> bytes:
    """Returns a number in as few bytes of two's complement as it needs."""
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def _truncate(source_type: str, width: int) -> Transform:
    """Returns the transform `truncate[width]` of a type: an integer, or the unscaled integer of a decimal, rounded down
    to a multiple of the width (12.34 to 12.30 for 10), or the first `width` characters or bytes. An integer that falls
    below the type's least wraps around."""
    base = primitives.base_name(source_type)
    if base == "decimal":
        scale = decimal_scale(source_type)
        return lambda value: _truncated_decimal(unscaled(cast(Decimal, value), scale), width, scale)
    if base in _BITS:
        bits = _BITS[base]
        return lambda value: _wrapped(cast(int, value) - cast(int, value) % width, bits)
    return lambda value: cast(str, value)[:width]  # of bytes, too


def wrapped_value(transform: str, source_type: str) -> int | None:
    """Returns the value of a partition field for the least numbers of its source's type where truncation leads below
    them, and wraps around; None if it does not."""
    apply, bits = transform_function(transform, source_type), _BITS.get(source_type)
    if apply is None or bits is None or transform_name(transform) != "truncate":
        return None
    least = -(1 << (bits - 1))
    wrapped = cast(int, apply(least))
    return None if wrapped == least else wrapped


def _truncated_decimal(number: int, width: int, scale: int) -> Decimal:
    """Returns the decimal with this unscaled number, truncated to a multiple of `width`."""
    return Decimal(number - number % width).scaleb(-scale, EXACT)


def _wrapped(number: int, bits: int) -> int:
    """Returns a number as the reference implementation stores it: below the least of its type it wraps around."""
    return number if number >= -(1 << (bits - 1)) else number + (1 << bits)


def _time_transform(name: str, base: str) -> Transform:
    """Returns the transform `year`, `month`, `day` or `hour` of a date or timestamp type: a number since 1970, rounded
    down."""
    if base == "date":
        return lambda days: _of_days(name, cast(int, days))
    units_an_hour = _UNITS_A_SECOND[base] * 3600
    if name == "hour":
        return lambda value: cast(int, value) // units_an_hour
    return lambda value: _of_days(name, cast(int, value) // (units_an_hour * 24))


def _of_days(name: str, days: int) -> int:
    """Returns the year, month or day, as a number from 1970 on, in which the day with this number is; `name` is the
    transform."""
    if name == "day":
        return days
    year, month, _ = year_month_day(days)
    return year - _FIRST_YEAR if name == "year" else (year - _FIRST_YEAR) * 12 + month - 1


def murmur3(data: bytes) -> int:
    """Returns the 32-bit Murmur3 hash of the bytes with seed 0, as a number that is not negative."""
    value = 0
    whole = len(data) // 4 * 4
    for (block,) in struct.iter_unpack("<I", data[:whole]):
        value ^= _mixed(block)
        value = (_rotated(value, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    value ^= _mixed(int.from_bytes(data[whole:], "little")) ^ len(data)
    value = ((value ^ value >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
    value = ((value ^ value >> 13) * 0xC2B2AE35) & 0xFFFFFFFF
    return value ^ value >> 16


def _mixed(block: int) -> int:
    """Returns a block of four bytes, as a number, as Murmur3 mixes it."""
    return (_rotated((block * 0xCC9E2D51) & 0xFFFFFFFF, 15) * 0x1B873593) & 0xFFFFFFFF


def _rotated(value: int, bits: int) -> int:
    """Returns a number of 32 bits, rotated to the left."""
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF
