"""Decodes the values of Avro's binary encoding from bytes in memory, and skips those that a reader does not need (Avro
specification, "Binary Encoding").

A function for each type is composed from those of the types inside it, once a file, by a schema that `avro_schema` has
checked. Skipping is most of the work: an entry of a manifest has hundreds of numbers, of which a reader needs some ten.
So a run of numbers is skipped by a regular expression, which takes some 15 ns a number. Its quantifiers are possessive,
because an encoding has one reading: none of them ever steps back.

The functions take the data and a position in it, and return the position behind the value. They raise `Unreadable`,
`IndexError`, `struct.error` or `ValueError` for a value that is corrupt or goes on beyond the data.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from struct import Struct
from typing import Final, TypeAlias

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.avro_schema import Unreadable
from arco_catalog.state.fields import integer, objects, text

Read: TypeAlias = Callable[[bytes, int], tuple[object, int]]
"""Returns the value at a position, and the position behind it."""
ReadFields: TypeAlias = Callable[[bytes, int], tuple[dict[str, object], int]]
"""Returns the values of a row of fields at a position, and the position behind the last."""
Skip: TypeAlias = Callable[[bytes, int], int]
"""Returns the position behind the value at a position."""

Match: TypeAlias = Callable[[bytes, int], re.Match[bytes] | None]

MAX_ITEMS: Final = 100_000
"""Items of an array or map that is decoded."""
LONG: Final = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
"""The pattern of a number."""
_SHORT_LENGTHS: Final = (8, 4, 16, *(each for each in range(64) if each not in (4, 8, 16)))
"""Lengths of bytes that take one byte themselves, the lengths of bounds in manifests first."""
SHORT_BYTES: Final = b"(?:%b)" % b"|".join(re.escape(bytes([2 * each])) + b".{%d}" % each for each in _SHORT_LENGTHS)
"""The pattern of text or bytes that have at most 63 bytes."""
_PATTERNS: Final[Mapping[str, bytes]] = {"null": b"", "boolean": b".", "float": b".{4}", "double": b".{8}"} | {
    **dict.fromkeys(("int", "long"), LONG),
    **dict.fromkeys(("string", "bytes"), SHORT_BYTES),
}
"""Patterns of the values of simple types. The last two match short values, of text and bytes."""
_LARGE_STEP: Final = 64
"""Items of an array that are skipped at a time; an array of fewer is skipped at once."""
_LONGEST_PATTERN: Final = 2 << 10
"""Bytes of a pattern. One of a type with many fields would take long to compile, and much memory."""
_FIRST: Final = 0
_SECOND: Final = 2
"""The bytes before a value of the first and of the second type of a union."""
_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")


def read_long(data: bytes, place: int) -> tuple[int, int]:
    """Reads a number, of Avro's types int and long."""
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


def encode_long(value: int) -> bytes:
    """Returns the encoding of a number, of Avro's types int and long."""
    left = value << 1 ^ value >> 63
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


def read_bytes(data: bytes, place: int) -> tuple[bytes, int]:
    """Reads a value of Avro's type bytes."""
    length, start = read_long(data, place)
    end = start + length
    if not start <= end <= len(data):
        raise Unreadable(f"an Avro value of {length:,} bytes goes on beyond its record")
    return data[start:end], end


def read_text(data: bytes, place: int) -> tuple[str, int]:
    """Reads a string. Raises `UnicodeDecodeError`, a `ValueError`, too."""
    found, end = read_bytes(data, place)
    return found.decode(), end


def skip_bytes(data: bytes, place: int) -> int:
    """Skips a value of bytes or text."""
    length, start = read_long(data, place)
    if length < 0:
        raise Unreadable("an Avro value has a negative length")
    return start + length


def _read_null(data: bytes, place: int) -> tuple[None, int]:
    return None, place


def _read_boolean(data: bytes, place: int) -> tuple[bool, int]:
    return data[place] != 0, place + 1


def _read_float(data: bytes, place: int) -> tuple[float, int]:
    [value] = _FLOAT.unpack_from(data, place)
    return value, place + 4


def _read_double(data: bytes, place: int) -> tuple[float, int]:
    [value] = _DOUBLE.unpack_from(data, place)
    return value, place + 8


_READERS: Final[Mapping[str, Read]] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": read_long,
    "long": read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": read_bytes,
    "string": read_text,
}


def reader_of(schema: JsonValue, part: JsonValue = None) -> Read:
    """Returns the function that reads values of a type, written out as `check_schema` returns it: a record as a dict, a
    value of a logical type as that of the type below it. Of a record it reads the fields in `part`, a part of the
    schema, and skips the others; it reads all fields if that is None."""
    if isinstance(schema, list):
        return _union_reader([reader_of(each) for each in schema])
    match _name(schema), schema:
        case "record", dict():
            return _record_reader(schema, part if isinstance(part, dict) else schema)
        case "array", dict():
            return _array_reader(reader_of(schema["items"]))
        case "map", dict():
            return _map_reader(reader_of(schema["values"]))
        case "fixed", dict():
            return fixed_reader(integer(schema, "size"))
        case name, _:
            return _READERS[name]


def _name(schema: JsonValue) -> str:
    return schema if isinstance(schema, str) else text(schema, "type") if isinstance(schema, dict) else ""


def _union_reader(branches: Sequence[Read]) -> Read:
    def read(data: bytes, place: int) -> tuple[object, int]:
        branch, start = read_branch(data, place)
        return branches[branch](data, start)

    return _optional_reader(branches[1], read) if len(branches) == 2 and branches[0] is _read_null else read


def _optional_reader(read_value: Read, otherwise: Read) -> Read:
    """Returns the function that reads a value that may be null. Nearly all unions are of null and one type, in this
    order, and most values are null."""

    def read(data: bytes, place: int) -> tuple[object, int]:
        branch = data[place]
        if branch == _FIRST:
            return None, place + 1
        return read_value(data, place + 1) if branch == _SECOND else otherwise(data, place)

    return read


def read_branch(data: bytes, place: int) -> tuple[int, int]:
    """Reads which branch of a union the value behind it has."""
    branch, start = read_long(data, place)
    if branch < 0:
        raise Unreadable("an Avro union has a branch below zero")
    return branch, start


def _record_reader(schema: JsonObject, part: JsonObject) -> Read:
    parts = dict(named_fields(part))
    fields = named_fields(schema)
    return fields_reader(fields, {name: reader_of(of, parts[name]) for name, of in fields if name in parts})


def named_fields(record: JsonObject) -> Sequence[tuple[str, JsonValue]]:
    """Returns the names and types of a record's fields, in order."""
    return [(text(each, "name"), each["type"]) for each in objects(record, "fields")]


def fields_reader(fields: Sequence[tuple[str, JsonValue]], readers: Mapping[str, Read]) -> ReadFields:
    """Returns the function that reads a row of fields, of which it reads the ones that have readers, and skips
    the others."""
    steps: list[tuple[str | None, Read]] = []
    for is_read, group in groupby(fields, lambda field: field[0] in readers):
        if is_read:
            steps += [(name, readers[name]) for name, _ in group]
        else:
            steps.append((None, _skipping_reader(skipper_of_all([of for _, of in group]))))

    def read(data: bytes, place: int) -> tuple[dict[str, object], int]:
        found: dict[str, object] = {}
        for name, step in steps:
            value, place = step(data, place)
            if name is not None:
                found[name] = value
        return found, place

    return read


def _skipping_reader(skip: Skip) -> Read:
    return lambda data, place: (None, skip(data, place))


def _array_reader(read_item: Read) -> Read:
    def read(data: bytes, place: int) -> tuple[object, int]:
        found: list[object] = []
        count, place = read_count(data, place)
        while count:
            for _ in range(checked_items(count + len(found)) - len(found)):
                item, place = read_item(data, place)
                found.append(item)
            count, place = read_count(data, place)
        return found, place

    return read


def _map_reader(read_value: Read) -> Read:
    def read(data: bytes, place: int) -> tuple[object, int]:
        found: dict[str, object] = {}
        total = 0
        count, place = read_count(data, place)
        while count:
            total = checked_items(total + count)
            for _ in range(count):
                key, place = read_text(data, place)
                found[key], place = read_value(data, place)
            count, place = read_count(data, place)
        return found, place

    return read


def checked_items(items: int) -> int:
    """Returns this number of items. Raises `Unreadable` if a reader takes no array or map of so many."""
    if items > MAX_ITEMS:
        raise Unreadable(f"an Avro array or map has more than {MAX_ITEMS:,} items")
    return items


def read_count(data: bytes, place: int) -> tuple[int, int]:
    """Reads the number of items in the next block of an array or map, 0 at its end."""
    count, place = read_long(data, place)
    if count < 0:  # then the size of the items follows
        count = -count
        _, place = read_long(data, place)
    return count, place


def fixed_reader(size: int) -> Read:
    """Returns the function that reads a value of so many bytes."""

    def read(data: bytes, place: int) -> tuple[bytes, int]:
        end = place + size
        if end > len(data):
            raise Unreadable(f"an Avro value of {size:,} bytes goes on beyond its record")
        return data[place:end], end

    return read


def skipper_of(schema: JsonValue) -> Skip:
    """Returns the function that skips values of a type, written out as `check_schema` returns it."""
    pattern = _pattern(schema)
    if pattern is not None and len(pattern) <= _LONGEST_PATTERN:
        return _pattern_skipper(pattern, _plain_skipper(schema))
    return _plain_skipper(schema)


def skipper_of_all(schemas: Sequence[JsonValue]) -> Skip:
    """Returns the function that skips values of these types, one after the other."""
    skips: list[Skip] = []
    for regular, group in groupby(schemas, lambda each: _pattern(each) is not None):
        run = [*group]
        skips += [_run_skipper(run)] if regular and len(run) > 1 else map(skipper_of, run)
    return skips[0] if len(skips) == 1 else _sequence_skipper(skips)


def _sequence_skipper(skips: Sequence[Skip]) -> Skip:
    def skip(data: bytes, place: int) -> int:
        for each in skips:
            place = each(data, place)
        return place

    return skip


def _run_skipper(schemas: Sequence[JsonValue]) -> Skip:
    """Returns the function that skips values of these types, which all have patterns, at once."""
    plain = _sequence_skipper([skipper_of(each) for each in schemas])
    pattern = b"".join(_pattern(each) or b"" for each in schemas)
    return _pattern_skipper(pattern, plain) if len(pattern) <= _LONGEST_PATTERN else plain


def _plain_skipper(schema: JsonValue) -> Skip:
    if isinstance(schema, list):
        return _union_skipper([skipper_of(each) for each in schema])
    match _name(schema), schema:
        case "record", dict():
            return skipper_of_all([each["type"] for each in objects(schema, "fields")])
        case "array", dict():
            return items_skipper(schema["items"])
        case "map", dict():
            return items_skipper({"type": "record", "fields": [{"type": "string"}, {"type": schema["values"]}]})
        case (("string" | "bytes"), _):
            return skip_bytes
        case _:
            read = reader_of(schema)
            return lambda data, place: read(data, place)[1]


def _union_skipper(branches: Sequence[Skip]) -> Skip:
    def skip(data: bytes, place: int) -> int:
        branch, start = read_branch(data, place)
        return branches[branch](data, start)

    if len(branches) != 2:
        return skip
    second = branches[1]
    return lambda data, place: second(data, place + 1) if data[place] == _SECOND else skip(data, place)


def _pattern_skipper(pattern: bytes, plain: Skip) -> Skip:
    match = _compiled(pattern, 1, b"")

    def skip(data: bytes, place: int) -> int:
        found = match(data, place)
        return plain(data, place) if found is None else found.end()

    return skip


def items_skipper(schema: JsonValue) -> Skip:
    """Returns the function that skips an array of items of a type."""
    skip_one, pattern = _plain_skipper(schema), _pattern(schema)
    if pattern is None or len(pattern) > _LONGEST_PATTERN:
        return _counting_skipper(skip_one)
    whole: list[Match | None] = [None] * _LARGE_STEP

    def skip_items(data: bytes, place: int, count: int) -> int:
        while count:
            step = min(count, _LARGE_STEP)
            found = _compiled(pattern, step, b"")(data, place)
            if found is not None:
                place = found.end()
            else:
                for _ in range(step):
                    place = skip_one(data, place)
            count -= step
        return place

    def skip(data: bytes, place: int) -> int:
        count = data[place] >> 1
        if data[place] < 0x80 and not data[place] & 1:  # as nearly always: one block, of few items
            match = whole[count]
            if match is None:
                match = whole[count] = _compiled(pattern, count, b"\0" if count else b"")
            if (found := match(data, place + 1)) is not None:
                return found.end()
        count, place = read_count(data, place)
        while count:
            place = skip_items(data, place, count)
            count, place = read_count(data, place)
        return place

    return skip


def _counting_skipper(skip_one: Skip) -> Skip:
    def skip(data: bytes, place: int) -> int:
        count, place = read_count(data, place)
        while count:
            for _ in range(count):
                place = skip_one(data, place)
            count, place = read_count(data, place)
        return place

    return skip


@lru_cache(256)
def _compiled(pattern: bytes, times: int, end: bytes) -> Match:
    """Returns the function that matches a pattern so many times, and these bytes behind that."""
    return re.compile(b"(?:%b){%d}+%b" % (pattern, times, re.escape(end)), re.DOTALL).match


def _pattern(schema: JsonValue) -> bytes | None:
    """Returns a pattern that matches values of a type from their first byte to the last, or some of them and no
    others; None if the type has none."""
    if isinstance(schema, list):
        return _union_pattern([_pattern(each) for each in schema])
    match _name(schema), schema:
        case "record", dict():
            parts = [_pattern(each["type"]) for each in objects(schema, "fields")]
            return None if None in parts else b"".join(each for each in parts if each is not None)
        case "fixed", dict():
            return b".{%d}" % integer(schema, "size")
        case name, _:
            return _PATTERNS.get(name)


def _union_pattern(branches: Sequence[bytes | None]) -> bytes | None:
    if len(branches) > 0x40 or None in branches:
        return None
    found = [re.escape(bytes([2 * number])) + (each or b"") for number, each in enumerate(branches)]
    return b"(?:" + b"|".join(found) + b")"
