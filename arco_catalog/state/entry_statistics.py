"""Reads the statistics in an entry of a manifest: maps from the ids of columns to counts or bounds, of the columns that
a reader needs. In Avro they are arrays of pairs, because the keys of its maps are texts."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar

from arco_catalog.iceberg.json import JsonValue
from arco_catalog.state.avro_schema import Unreadable
from arco_catalog.state.avro_skippers import LONG, SHORT_BYTES, Match, Patterns
from arco_catalog.state.avro_values import (
    Read,
    Skip,
    encode_long,
    named_fields,
    read_branch,
    read_bytes,
    read_count,
    read_long,
    skip_bytes,
    skip_long,
)

T = TypeVar("T")


MAX_COLUMNS: Final = 10_000
"""Columns of which an entry has statistics."""
MAX_MATCHED: Final = 64
"""Columns that are found by one regular expression."""
MAX_WHOLE: Final = 64
"""Pairs that are matched at once."""


def counts_reader(schema: JsonValue, columns: Collection[int] | None, patterns: Patterns) -> Read:
    """Returns the function that reads the counts of these `columns`, of all if that is None, as a dict by column id; it
    returns None for null. A `schema` of anything but an array of pairs of column id and count, or a union of that and
    null, is an error."""
    return _optional(schema, ("int", "long"), _pairs_reader(columns, read_long, skip_long, LONG, patterns))


def bounds_reader(schema: JsonValue, columns: Collection[int] | None, patterns: Patterns) -> Read:
    """Returns the function that reads the bounds of these `columns`, of all if that is None, as a dict by column id; it
    returns None for null. A `schema` of anything but an array of pairs of column id and bytes, or a union of that and
    null, is an error."""
    return _optional(schema, ("bytes",), _pairs_reader(columns, read_bytes, skip_bytes, SHORT_BYTES, patterns))


def _optional(schema: JsonValue, values: Collection[str], read: Read) -> Read:
    """Returns the function that reads, by `read`, values of a type that is an array of pairs of column id and one of
    the types in `values`, or a union of null and that. Raises `Unreadable` for another type."""
    branches = schema if isinstance(schema, list) else [schema]
    for each in branches:
        if not _is_pairs(each, values) and not (each == "null" and isinstance(schema, list)):
            raise Unreadable("the schema of the manifest's entries has statistics of an unknown form")
    if not isinstance(schema, list):
        return read

    def read_optional(data: bytes, place: int) -> tuple[object, int]:
        branch, place = read_branch(data, place)
        return (None, place) if branches[branch] == "null" else read(data, place)

    return read_optional


def _is_pairs(schema: JsonValue, values: Collection[str]) -> bool:
    """Whether a type is an array of pairs of a column id and a value of one of these types."""
    if not isinstance(schema, dict) or schema.get("type") != "array":
        return False
    item = schema["items"]
    if not isinstance(item, dict) or item.get("type") != "record":
        return False
    found = named_fields(item)
    return [name for name, _ in found] == ["key", "value"] and found[0][1] == "int" and found[1][1] in values


def _pairs_reader(
    columns: Collection[int] | None,
    read_value: Callable[[bytes, int], tuple[T, int]],
    skip: Skip,
    value: bytes,
    patterns: Patterns,
) -> Read:
    """Returns the function that reads an array of pairs as a dict of the values of these columns, of all for None; more
    than `MAX_COLUMNS` pairs are an error. Few columns are found by regular expressions: `value` is the pattern of a
    short value. Otherwise `skip` skips the values of other columns."""

    def read(data: bytes, place: int) -> tuple[object, int]:
        found: dict[int, T] = {}
        total = 0
        count, place = read_count(data, place)
        while count:
            total += count
            if total > MAX_COLUMNS:
                raise Unreadable(f"an entry of the manifest has statistics of more than {MAX_COLUMNS:,} columns")
            for _ in range(count):
                key, place = read_long(data, place)
                if columns is None or key in columns:
                    found[key], place = read_value(data, place)
                else:
                    place = skip(data, place)
            count, place = read_count(data, place)
        return found, place

    if columns is None or len(columns) > MAX_MATCHED:
        return read
    keys = b"".join(re.escape(encode_long(each)) + b"()|" for each in sorted(columns)) + LONG
    return _matching_reader(sorted(columns), read_value, b"(?:%b)%b" % (keys, value), read, patterns)


def _matching_reader(
    columns: Sequence[int],
    read_value: Callable[[bytes, int], tuple[T, int]],
    pattern: bytes,
    otherwise: Read,
    patterns: Patterns,
) -> Read:
    """Returns the function that reads values of some columns by regular expressions, one for each number of pairs:
    `pattern`, repeated. Its groups are empty: they are where the values of these columns begin. What none of them
    matches is read `otherwise`: many pairs, long bounds, corrupt ones, and what is beyond the file's patterns."""
    whole: list[Match | None] = [None] * MAX_WHOLE
    numbered = [*enumerate(columns, 1)]

    def read(data: bytes, place: int) -> tuple[object, int]:
        size = data[place]
        if size & 0x81 or size >= 2 * MAX_WHOLE:  # a size below zero, or of more bytes than one
            return otherwise(data, place)
        pairs = size >> 1
        compiled = whole[pairs]
        if compiled is None:
            compiled = whole[pairs] = patterns.compiled(pattern, pairs, b"\0" if pairs else b"")
        if compiled is None or (match := compiled(data, place + 1)) is None:
            return otherwise(data, place)
        found: dict[int, T] = {}
        for group, column in numbered:
            start = match.start(group)
            if start >= 0:
                found[column], _ = read_value(data, start)
        return found, match.end()

    return read
