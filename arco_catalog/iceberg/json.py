"""Reads and writes JSON exactly: unknown fields, the order of names and integers of up to 308 digits are preserved."""

import json
from typing import TypeAlias, cast

import orjson

from arco_catalog.iceberg.json_pieces import write_in_pieces

JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
JsonObject: TypeAlias = dict[str, JsonValue]

# orjson reads integers beyond 64 bits as floats; the standard library keeps them. A run of digits this long may be one,
# but only where a number can stand: file names in metadata are full of such runs. All that can come before a number is
# made one character, all digits another; looking with a pattern instead would cost four times as much as the parse.
_SHAPE = bytes.maketrans(b"0123456789[, \t\r\n", b"0000000000::::::")
_MAYBE_BEYOND_64_BITS = (b":" + b"0" * 20, b":-" + b"0" * 19)


LARGE_BYTES = 128 << 10
"""orjson (3.13) leaves its results in the buffer that it wrote them to: 4 KB for 200 bytes, 64 KB for 9 KB. A
cache of one would keep the whole buffer, so it is copied, unless it is large: the unwritten part of a large buffer
takes no memory."""


LONG_BYTES = 1 << 20
"""Documents of more bytes are written piece by piece, and read so if a number in them may exceed 64 bits."""


MAX_CALL_BYTES = 8 << 20
MAX_CALL_VALUES = 100_000
"""Documents of more bytes or values are read slice by slice: one call of the parser delays every
other thread until it ends, some 10 ms for so much, and 60 at worst: an object of distinct names."""

_MARKS = (b",", b"[", b"{")
_COUNT_BYTES = 1 << 20
"""Maximum bytes that one call counts in, which takes 1 ms."""


class MalformedJson(ValueError):
    """The bytes to parse are not one JSON document that this catalog accepts."""


def loads(data: bytes) -> JsonValue:
    """Parses one document, in linear time. Raises `MalformedJson` for everything else, also for NaN, for numbers
    beyond the range of a double, for lone surrogates, for strings of more than 8 MiB, and for arrays and objects that
    nest more than 1,024 levels deep."""
    try:
        if _is_long(data):
            from arco_catalog.iceberg.json_slices import read_in_slices  # deferred: its patterns take a millisecond

            return cast(JsonValue, read_in_slices(data, _read))
        return _read(data)
    except (ValueError, RecursionError) as error:
        reason = str(error)
    raise MalformedJson(reason)  # without the traceback, whose frames have all that was parsed


def loads_short(data: bytes) -> JsonValue:
    """Parses a short document without numbers, for which `loads` would take several times as long. Raises
    `MalformedJson` if it is no JSON."""
    try:
        return cast(JsonValue, orjson.loads(data))
    except ValueError as error:
        raise MalformedJson(str(error)) from error


def count_values(data: bytes) -> int:
    """Returns an upper limit of the number of values after the first one in a document, without parsing it: before each
    of these is a comma or a bracket. Commas and brackets inside strings are counted, too."""
    starts = range(0, len(data), _COUNT_BYTES)
    return sum(data.count(mark, start, start + _COUNT_BYTES) for start in starts for mark in _MARKS)


def _is_long(data: bytes) -> bool:
    """Whether a document is parsed in slices: it has too many bytes or values for one call, or is longer than
    `LONG_BYTES` and may have an integer of more than 64 bits."""
    if len(data) > MAX_CALL_BYTES:
        return True
    if len(data) <= MAX_CALL_VALUES:  # each value has a byte at least
        return False
    return count_values(data) > MAX_CALL_VALUES or (len(data) > LONG_BYTES and _may_exceed_64_bits(data))


def _read(data: bytes) -> JsonValue:
    """Parses a document in one call, also with integers of more than 64 bits. Raises `ValueError` if it is no JSON or
    nests more than 1,024 levels deep. `RecursionError` can come only from the standard library, which reads such
    integers, if it allows no such depth."""
    if _may_exceed_64_bits(data):
        orjson.loads(data)  # the stricter judge of what is JSON
        return cast(JsonValue, json.loads(data))
    return cast(JsonValue, orjson.loads(data))


def _may_exceed_64_bits(data: bytes) -> bool:
    """Whether a document may have an integer of more than 64 bits; True also for a float with so many digits before the
    point, and for a text in which a blank, comma, colon or bracket precedes so many."""
    shape = data.translate(_SHAPE)
    return any(run in shape or shape.startswith(run[1:]) for run in _MAYBE_BEYOND_64_BITS)


def dumps(value: JsonValue, *, sort_keys: bool = False) -> bytes:
    """Returns a value as one compact document in UTF-8, with names in their order, or sorted. Integers of more than
    64 bits are written as they are. Raises `ValueError` for one of more than 4,300 digits."""
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS if sort_keys else 0)
    except TypeError:  # an integer beyond 64 bits, or more than 254 levels
        text = json.dumps(
            value,
            sort_keys=sort_keys,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
            check_circular=False,  # a JSON value has no cycles, and to look for them takes more than half of the time
        )
        return text.encode()
    return written if len(written) > LARGE_BYTES else bytes(memoryview(written))


def dumps_long(value: JsonValue, length: int) -> bytes:
    """Returns the result of `dumps` for a value of about this `length` in bytes. A long one is written part by part, so
    that other threads can run."""
    if length <= LONG_BYTES:
        return dumps(value)
    return write_in_pieces(value, lambda part: dumps(cast(JsonValue, part)), weigh=length > MAX_CALL_BYTES)
