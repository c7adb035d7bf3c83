"""Decodes single values of Avro's binary encoding from bytes in memory (Avro specification, "Binary Encoding").

The functions take the data and a position in it, and return the position behind the value. They raise `Unreadable`,
`IndexError`, `struct.error` or `ValueError` for a value that is corrupt or goes on beyond the data.
"""

from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Final, TypeAlias

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.avro_schema import Unreadable
from arco_catalog.state.fields import objects, text

Read: TypeAlias = Callable[[bytes, int], tuple[object, int]]
"""Returns the value at a position, and the position behind it."""
Skip: TypeAlias = Callable[[bytes, int], int]
"""Returns the position behind the value at a position."""

MAX_ITEMS: Final = 100_000
"""Items of an array or map that is decoded."""
_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")


def read_long(data: bytes, place: int) -> tuple[int, int]:
    """Reads a number, of Avro's types int and long, and returns it with the position behind it. Raises `Unreadable` if
    it has more than 64 bits, and `IndexError` if the data ends within it."""
    byte = data[place]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), place + 1
    value = byte & 0x7F
    for shift in range(7, 70, 7):
        place += 1
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return (value >> 1) ^ -(value & 1), place + 1
    raise Unreadable("an Avro integer has more than 64 bits")


def skip_long(data: bytes, place: int) -> int:
    """Returns the position behind a number of Avro's types int and long. It decodes it, and raises as `read_long`."""
    return read_long(data, place)[1]


def encode_long(value: int) -> bytes:
    """Returns Avro's encoding of a number, of the types int and long: variable length, zig-zag."""
    left = value << 1 ^ value >> 63
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


def read_bytes(data: bytes, place: int) -> tuple[bytes, int]:
    """Reads a value of Avro's type bytes, and returns it with its end. Raises `Unreadable` if it has a negative length
    or the data ends within it, and as `read_long` for the length."""
    length, start = read_long(data, place)
    end = start + length
    if not start <= end <= len(data):
        raise Unreadable(
            f"an Avro value has {length:,} bytes, a number below zero, or beyond the end of its block or of the "
            "longest record that is read"
        )
    return data[start:end], end


def read_text(data: bytes, place: int) -> tuple[str, int]:
    """Reads an Avro string, and returns it with its end. Raises as `read_bytes`, and a `ValueError` for bytes that are
    no UTF-8."""
    found, end = read_bytes(data, place)
    return found.decode(), end


def skip_bytes(data: bytes, place: int) -> int:
    """Returns the position behind a value of bytes or text, even if the data ends before that. Raises `Unreadable` for
    a negative length, and as `read_long` for the length."""
    length, start = read_long(data, place)
    if length < 0:
        raise Unreadable("an Avro value has a negative length")
    return start + length


def read_null(data: bytes, place: int) -> tuple[None, int]:
    """Reads a null, which takes no bytes: returns None and the position as it is."""
    return None, place


def _read_boolean(data: bytes, place: int) -> tuple[bool, int]:
    """Reads an Avro boolean, one byte, and returns it with the position behind it: False for 0, True for any other
    byte. Raises `IndexError` at the end of the data."""
    return data[place] != 0, place + 1


def _read_float(data: bytes, place: int) -> tuple[float, int]:
    """Reads an Avro float, four bytes, and returns it with the position behind it. Raises `struct.error` if the data
    ends before that."""
    [value] = _FLOAT.unpack_from(data, place)
    return value, place + 4


def _read_double(data: bytes, place: int) -> tuple[float, int]:
    """Reads an Avro double, eight bytes, and returns it with the position behind it. Raises `struct.error` if the data
    ends before that."""
    [value] = _DOUBLE.unpack_from(data, place)
    return value, place + 8


READERS: Final[Mapping[str, Read]] = {
    "null": read_null,
    "boolean": _read_boolean,
    "int": read_long,
    "long": read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": read_bytes,
    "string": read_text,
}
"""The functions that read values of primitive types."""


def named_fields(record: JsonObject) -> Sequence[tuple[str, JsonValue]]:
    """Returns the names and types of the fields of an Avro record's schema, in order."""
    return [(text(each, "name"), each["type"]) for each in objects(record, "fields")]


def type_name(schema: JsonValue) -> str:
    """Returns the name of an Avro type that is written out, such as `long` or `record`; of a union it is empty."""
    return schema if isinstance(schema, str) else text(schema, "type") if isinstance(schema, dict) else ""


def read_branch(data: bytes, place: int) -> tuple[int, int]:
    """Reads the number of a union's branch, of which the value follows, and returns it with the position of the value.
    A negative number is an error; one that is too high is returned."""
    branch, start = read_long(data, place)
    if branch < 0:
        raise Unreadable("an Avro value names a branch of its union by a number below zero")
    return branch, start


def checked_items(items: int) -> int:
    """Returns this number of items of an Avro array or map. Raises `Unreadable` if it is more than `MAX_ITEMS`."""
    if items > MAX_ITEMS:
        raise Unreadable(f"an Avro array or map has more than {MAX_ITEMS:,} items")
    return items


def read_count(data: bytes, place: int) -> tuple[int, int]:
    """Reads the number of items in the next block of an Avro array or map, 0 at the end of it, and returns it with the
    position of the first item."""
    count, place = read_long(data, place)
    if count < 0:  # then the size of the items follows
        count = -count
        _, place = read_long(data, place)
    return count, place


def fixed_reader(size: int) -> Read:
    """Returns the function that reads a value of Avro's type fixed, of `size` bytes. The end of the data within them is
    an error."""

    def read(data: bytes, place: int) -> tuple[bytes, int]:
        end = place + size
        if end > len(data):
            raise Unreadable(
                f"an Avro value of {size:,} bytes goes on beyond its block or the longest record that is read"
            )
        return data[place:end], end

    return read
