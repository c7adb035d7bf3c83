"""Decodes the values of Avro's binary encoding from bytes in memory (Avro specification, "Binary Encoding").

A function for each type is composed from those of the types inside it, once a file, by a schema that `avro_schema` has
checked. They raise as the functions of `avro_values` do.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Final, TypeAlias

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.avro_skippers import Skippers
from arco_catalog.state.avro_values import (
    READERS,
    Read,
    Skip,
    checked_items,
    fixed_reader,
    named_fields,
    read_branch,
    read_count,
    read_null,
    read_text,
    type_name,
)
from arco_catalog.state.fields import integer

ReadFields: TypeAlias = Callable[[bytes, int], tuple[dict[str, object], int]]
"""Returns the values of a row of fields at a position, and the position behind the last."""

_FIRST: Final = 0
_SECOND: Final = 2
"""The bytes before a value of the first and of the second type of a union."""


def reader_of(schema: JsonValue, part: JsonValue = None, skippers: Skippers | None = None) -> Read:
    """Returns the function that reads values of a type, written out as `check_schema` returns it: a record as a dict, a
    value of a logical type as that of the type below it. Of a record it reads the fields in `part`, a part of the
    schema, and skips the others by the skippers of the file; it reads all fields if that is None, and of records in a
    union, array or map."""
    if isinstance(schema, list):
        return _union_reader([reader_of(each) for each in schema])
    match type_name(schema), schema:
        case "record", dict():
            return _record_reader(schema, part if isinstance(part, dict) else schema, skippers or Skippers())
        case "array", dict():
            return _array_reader(reader_of(schema["items"]))
        case "map", dict():
            return _map_reader(reader_of(schema["values"]))
        case "fixed", dict():
            return fixed_reader(integer(schema, "size"))
        case name, _:
            return READERS[name]


def _union_reader(branches: Sequence[Read]) -> Read:
    """Returns the function that reads a value of an Avro union by the reader of the branch that the data names. It
    raises `IndexError` for a branch that the union does not have."""

    def read(data: bytes, place: int) -> tuple[object, int]:
        branch, start = read_branch(data, place)
        return branches[branch](data, start)

    return _optional_reader(branches[1], read) if len(branches) == 2 and branches[0] is read_null else read


def _optional_reader(read_value: Read, otherwise: Read) -> Read:
    """Returns the function that reads a value of a union of null and one type, in this order; `otherwise` reads it if
    the branch is neither 0 nor 1, or takes more than one byte. Nearly all unions are such, and most values are null."""

    def read(data: bytes, place: int) -> tuple[object, int]:
        branch = data[place]
        if branch == _FIRST:
            return None, place + 1
        return read_value(data, place + 1) if branch == _SECOND else otherwise(data, place)

    return read


def _record_reader(schema: JsonObject, part: JsonObject, skippers: Skippers) -> Read:
    """Returns the function that reads an Avro record of this schema as a dict of the fields that are in `part`, also by
    name, and skips the others."""
    parts = dict(named_fields(part))
    fields = named_fields(schema)
    readers = {name: reader_of(of, parts[name], skippers) for name, of in fields if name in parts}
    return fields_reader(fields, readers, skippers)


def fields_reader(
    fields: Sequence[tuple[str, JsonValue]], readers: Mapping[str, Read], skippers: Skippers
) -> ReadFields:
    """Returns the function that reads a row of Avro fields as a dict: the fields that have `readers`, by these; it
    skips the others."""
    steps: list[tuple[str | None, Read]] = []
    for is_read, group in groupby(fields, lambda field: field[0] in readers):
        if is_read:
            steps += [(name, readers[name]) for name, _ in group]
        else:
            steps.append((None, _skipping_reader(skippers.of_all([of for _, of in group]))))

    def read(data: bytes, place: int) -> tuple[dict[str, object], int]:
        found: dict[str, object] = {}
        for name, step in steps:
            value, place = step(data, place)
            if name is not None:
                found[name] = value
        return found, place

    return read


def _skipping_reader(skip: Skip) -> Read:
    """Returns a reader that skips a value by `skip`, and returns None with the position behind it."""
    return lambda data, place: (None, skip(data, place))


def _array_reader(read_item: Read) -> Read:
    """Returns the function that reads an Avro array as a list of values, by `read_item`; more than `MAX_ITEMS` are an
    error."""

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
    """Returns the function that reads an Avro map as a dict of values, by `read_value`; more than `MAX_ITEMS` are an
    error. Of two values with one key the last counts."""

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
