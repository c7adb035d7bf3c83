"""Skips values of Avro's binary encoding that a reader does not need.

Skipping is most of the work: an entry of a manifest has hundreds of numbers, of which a reader needs some ten. So a run
of numbers is skipped by a regular expression, which takes some 15 ns a number. Its quantifiers are possessive, because
an encoding has one reading: none of them ever steps back.

To compile an expression takes a microsecond for each of its bytes, and writers of files choose the types. So the
expressions of one file have a budget; what is beyond it is skipped value by value.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final, TypeAlias

from arco_catalog.iceberg.json import JsonValue
from arco_catalog.state.avro_values import (
    READERS,
    Skip,
    fixed_reader,
    read_branch,
    read_count,
    skip_bytes,
    type_name,
)
from arco_catalog.state.fields import integer, objects

Match: TypeAlias = Callable[[bytes, int], re.Match[bytes] | None]

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
"""Bytes of the pattern of a type, or of a run of types."""
MAX_PATTERN_BYTES: Final = 64 << 10
"""Bytes of all patterns that are compiled for one file. The usual manifest has 5,000."""
_EACH_BYTES: Final = 100
"""Bytes of a pattern whose compilation takes as long as what each one takes besides its length."""
_SECOND: Final = 2
"""The byte before a value of the second type of a union."""


class Patterns:
    """The compiled patterns of one file: they have `MAX_PATTERN_BYTES` at most, of which each takes `_EACH_BYTES`
    besides its own."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, int, bytes], Match] = {}
        self._left = MAX_PATTERN_BYTES

    def compiled(self, pattern: bytes, times: int = 1, end: bytes = b"") -> Match | None:
        """Returns the function that matches a pattern so many times, and these bytes behind that; None if it is not
        compiled yet and would exceed the bytes of patterns that one file may have."""
        key = pattern, times, end
        found = self._known.get(key)
        size = len(pattern) + _EACH_BYTES
        if found is None and size <= self._left:
            self._left -= size
            found = self._known[key] = _compiled(*key)
        return found


@lru_cache(256)
def _compiled(pattern: bytes, times: int, end: bytes) -> Match:
    """Returns the function that matches a pattern `times` times in a row, and then the bytes `end`."""
    return re.compile(b"(?:%b){%d}+%b" % (pattern, times, re.escape(end)), re.DOTALL).match


class Skippers:
    """Makes the functions that skip values of the types of one file. The types are written out as `check_schema`
    returns them."""

    def __init__(self) -> None:
        self.patterns = Patterns()

    def of(self, schema: JsonValue) -> Skip:
        """Returns the function that skips encoded values of an Avro type: by one regular expression if the type has a
        pattern, and part by part if it has none, where that does not match, or if the file has too many patterns."""
        pattern = _pattern(schema)
        plain = self._plain(schema)
        return plain if pattern is None else self._matching(pattern, plain)

    def of_all(self, schemas: Sequence[JsonValue]) -> Skip:
        """Returns the function that skips encoded values of these Avro types, one after the other. It skips a run of
        types that have patterns by one regular expression, where `_run` can."""
        skips: list[Skip] = []
        for regular, group in groupby(schemas, lambda each: _pattern(each) is not None):
            run = [*group]
            skips += [self._run(run)] if regular and len(run) > 1 else map(self.of, run)
        return skips[0] if len(skips) == 1 else _sequence_skipper(skips)

    def _run(self, schemas: Sequence[JsonValue]) -> Skip:
        """Returns the function that skips values of these types, which all have patterns, by one regular expression; or
        one after the other if that is too long or the file has too many patterns, or where it does not match."""
        plain = _sequence_skipper([self.of(each) for each in schemas])
        pattern = _joined([_pattern(each) for each in schemas])
        return plain if pattern is None else self._matching(pattern, plain)

    def _matching(self, pattern: bytes, plain: Skip) -> Skip:
        """Returns a skipper that matches the pattern, and uses `plain` where this does not match. Returns `plain`
        itself if the file has too many patterns."""
        match = self.patterns.compiled(pattern)
        if match is None:
            return plain

        def skip(data: bytes, place: int) -> int:
            found = match(data, place)
            return plain(data, place) if found is None else found.end()

        return skip

    def _plain(self, schema: JsonValue) -> Skip:
        """Returns the skipper of an Avro type by the skippers of the types inside it, which may match patterns. That of
        a record may still match a pattern of all fields."""
        if isinstance(schema, list):
            return _union_skipper([self.of(each) for each in schema])
        match type_name(schema), schema:
            case "record", dict():
                return self.of_all([each["type"] for each in objects(schema, "fields")])
            case "array", dict():
                return self._items(schema["items"])
            case "map", dict():
                return self._items({"type": "record", "fields": [{"type": "string"}, {"type": schema["values"]}]})
            case "fixed", dict():
                read_fixed = fixed_reader(integer(schema, "size"))
                return lambda data, place: read_fixed(data, place)[1]
            case (("string" | "bytes"), _):
                return skip_bytes
            case name, _:
                read = READERS[name]
                return lambda data, place: read(data, place)[1]

    def _items(self, schema: JsonValue) -> Skip:
        """Returns the function that skips an Avro array, or a map as an array of entries, with items of this type: many
        items at once by a regular expression if the type has a pattern, and one by one otherwise, where that does not
        match, or if the file has too many patterns."""
        skip_one, pattern = self._plain(schema), _pattern(schema)
        if pattern is None:
            return _counting_skipper(skip_one)
        compiled = self.patterns.compiled
        whole: list[Match | None] = [None] * _LARGE_STEP

        def skip_items(data: bytes, place: int, count: int) -> int:
            while count:
                step = min(count, _LARGE_STEP)
                match = compiled(pattern, step)
                found = None if match is None else match(data, place)
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
                    match = whole[count] = compiled(pattern, count, b"\0" if count else b"")
                if match is not None and (found := match(data, place + 1)) is not None:
                    return found.end()
            count, place = read_count(data, place)
            while count:
                place = skip_items(data, place, count)
                count, place = read_count(data, place)
            return place

        return skip


def _sequence_skipper(skips: Sequence[Skip]) -> Skip:
    """Returns the function that skips one Avro value by each of `skips`, in their order."""

    def skip(data: bytes, place: int) -> int:
        for each in skips:
            place = each(data, place)
        return place

    return skip


def _union_skipper(branches: Sequence[Skip]) -> Skip:
    """Returns the function that skips a value of an Avro union by the skipper of the branch that the data names."""

    def skip(data: bytes, place: int) -> int:
        branch, start = read_branch(data, place)
        return branches[branch](data, start)

    if len(branches) != 2:
        return skip
    second = branches[1]
    return lambda data, place: second(data, place + 1) if data[place] == _SECOND else skip(data, place)


def _counting_skipper(skip_one: Skip) -> Skip:
    """Returns the skipper of an Avro array or map, which skips item by item with `skip_one`."""

    def skip(data: bytes, place: int) -> int:
        count, place = read_count(data, place)
        while count:
            for _ in range(count):
                place = skip_one(data, place)
            count, place = read_count(data, place)
        return place

    return skip


def _pattern(schema: JsonValue) -> bytes | None:
    """Returns a pattern that matches values of an Avro type from their first byte to the last, or some of them and no
    others; None if the type has none, or a long one."""
    if isinstance(schema, list):
        return _union_pattern([_pattern(each) for each in schema])
    match type_name(schema), schema:
        case "record", dict():
            return _joined([_pattern(each["type"]) for each in objects(schema, "fields")])
        case "fixed", dict():
            return b".{%d}" % integer(schema, "size")
        case name, _:
            return _PATTERNS.get(name)


def _joined(parts: Sequence[bytes | None]) -> bytes | None:
    """Returns the joined pattern of values of some Avro types, one behind the other, given the patterns of the types;
    None if it is long, or one has none."""
    known = [each for each in parts if each is not None]
    if len(known) < len(parts) or sum(map(len, known)) > _LONGEST_PATTERN:
        return None
    return b"".join(known)


def _union_pattern(branches: Sequence[bytes | None]) -> bytes | None:
    """Returns a regular expression for the values of an Avro union, from the expressions of the branches; None if a
    branch has none, or if it has more than 64 branches."""
    found = [re.escape(bytes([2 * number])) + (each or b"") for number, each in enumerate(branches)]
    return None if None in branches or len(found) > 0x40 else b"(?:" + b"|".join(found) + b")"
