"""Segments: immutable, ordered runs of older index entries, each an object of its own, and the directory of them.

A segment is one JSON document with one entry a line, so that a lookup bisects lines and parses a dozen of them instead
of the whole; what is kept in memory is the bytes. Segments never cross from one range of keys into another
(docs/design/registry.md#index; docs/decisions/0010-spilled-index.md).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from heapq import merge

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, dumps, loads, loads_short
from storage_backends.lazy_dataclass import dataclass

RANGES = ("", "namespace\n", "relation\n")
"""Where each range of keys begins. The first has holds on locations, and all other kinds of entries that sort before
"namespace"; the second has namespaces; the last has tables, views, tombstones and all that sort after them."""

_HEADER = b'{"version":1,"entries":['
_NUMBERED = re.compile(r"-[0-9A-HJKMNP-TV-Z]{26}/$")


def range_of(key: str) -> str:
    """Returns the first string of the range of index keys in `RANGES` that `key` is in. It stands for the range."""
    return RANGES[bisect_right(RANGES, key) - 1]


def separator(before: str, key: str) -> str:
    """Returns the shortest beginning of `key` that sorts after `before`, the key in front of it. A segment begins
    there, so a level that begins with `key` begins with the segment."""
    same = next((place for place, letter in enumerate(before) if key[place : place + 1] != letter), len(before))
    return key[: same + 1]


def encode_line(key: str, entry: JsonObject) -> bytes:
    """Returns the line of a segment that has a key and its entry."""
    return dumps([key, entry], sort_keys=True)


def decode_line(line: bytes) -> tuple[str, JsonObject]:
    """Reads the key and entry in a line of a segment of the registry's index. Raises `InternalError` if it is
    corrupt."""
    try:
        match loads(line):
            case [str(key), dict(entry)]:
                return key, entry
    except MalformedJson as error:
        raise InternalError("a line in a segment of the registry's index is not JSON") from error
    raise InternalError("a line in a segment of the registry's index is not a pair of a key and an entry")


def key_of(line: bytes) -> str:
    """Reads the key in a line of a segment of the registry's index, without parsing its entry if possible. Raises
    `InternalError` if the part that it parses is corrupt."""
    end = line.find(b'",{')
    if end < 1 or line[end - 1 : end] == b"\\":  # the quote may be one of the key's own
        return decode_line(line)[0]
    try:
        key = loads_short(line[1 : end + 1])
    except MalformedJson as error:
        raise InternalError("a line in a segment of the registry's index is not JSON") from error
    if not isinstance(key, str):
        raise InternalError("a line in a segment of the registry's index is not a pair of a key and an entry")
    return key


@dataclass(frozen=True)
class Segment:
    """One segment: entries of the registry's index in the order of their keys; each of `lines` has a key and the
    entry."""

    id: str
    lines: Sequence[bytes]

    @classmethod
    def parse(cls, segment: str, body: bytes, where: str) -> "Segment":
        """Reads a stored segment of the registry's index; its lines are not parsed yet. Raises `InternalError` if its
        first or last line is not that of a segment."""
        header, *lines = body.split(b"\n")
        if header != _HEADER or not lines or not lines.pop().startswith(b"]"):
            raise InternalError(
                f"The segment {where} of the registry's index is damaged, or has a format that this version of the "
                "program cannot read"
            )
        return cls(segment, [line.removesuffix(b",") for line in lines])

    @property
    def body(self) -> bytes:
        """The bytes by which the segment of index entries is stored."""
        return b"%b\n%b\n]}" % (_HEADER, b",\n".join(self.lines))

    @cached_property
    def size(self) -> int:
        """Roughly the bytes that the segment's entries take in the store: the lines, with one byte each for the
        separators, which have two."""
        return sum(map(len, self.lines)) + len(self.lines)

    def get(self, key: str) -> JsonObject | None:
        """Returns the entry of a key in this segment, None if there is none."""
        try:
            place = bisect_left(self.lines, key, key=key_of)
            if place == len(self.lines):
                return None
            found, entry = decode_line(self.lines[place])
        except InternalError as error:
            raise self._damaged(error) from error
        return entry if found == key else None

    def get_all(self, keys: Collection[str]) -> Mapping[str, JsonObject]:
        """Returns the entries in this segment of those of these keys that exist. Few keys are searched one by one, many
        in one pass."""
        if len(keys) * len(self.lines).bit_length() < len(self.lines):
            found = ((key, self.get(key)) for key in keys)
            return {key: entry for key, entry in found if entry is not None}
        wanted = {*keys}
        try:
            return {key: entry for key, entry in map(decode_line, self.lines) if key in wanted}
        except InternalError as error:
            raise self._damaged(error) from error

    def scan(
        self, low: str, high: str | None = None, selects: Callable[[str], bool] | None = None
    ) -> Iterator[tuple[str, JsonObject]]:
        """Iterates over the keys in this segment from `low` on and before `high` (None: to the end), and their entries,
        in order; with `selects` only over the keys that it selects. The entries of others are not parsed."""
        try:
            end = len(self.lines) if high is None else bisect_left(self.lines, high, key=key_of)
            for place in range(bisect_left(self.lines, low, key=key_of), end):
                line = self.lines[place]
                if selects is None or selects(key_of(line)):
                    yield decode_line(line)
        except InternalError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: InternalError) -> InternalError:
        """Returns the error about a line of this segment of the index, with the segment's id."""
        return InternalError(f"{error.message} (segment {self.id})")


@dataclass(frozen=True, slots=True)
class Ref:
    """An item of the directory of segments: a segment that covers all keys from `first` up to the next item's, or to
    the end of its range. The first item of a range begins where the range does.

    `shallowest` is the least depth of the segment's locations that do not end in an entity's id; None if there are
    none. `later` are elements of the stored item that this version of the program does not know.
    """

    id: str
    first: str
    size: int
    shallowest: int | None
    later: Sequence[JsonValue] = field(default=(), compare=False)

    @classmethod
    def of(cls, segment: Segment, first: str) -> "Ref":
        """Returns the directory's item for a new segment that covers the keys from `first` on."""
        return cls(segment.id, first, segment.size, shallowest(segment))

    def to_json(self) -> list[JsonValue]:
        """Returns the JSON of the directory's item for a segment."""
        return [self.id, self.first, self.size, self.shallowest, *self.later]

    @classmethod
    def parse(cls, item: JsonValue) -> "Ref":
        """Reads the directory's item for a segment from its JSON. Raises `InternalError`."""
        match item:
            case [str(segment), str(first), int(size), (None | int()) as depth, *later]:
                return cls(segment, first, size, depth, later)
        raise InternalError(
            "an item in HEAD's list of the registry's segments is damaged, or has a format that this version of the "
            "program cannot read"
        )


def depth(key: str) -> int:
    """Returns the number of slashes in the key of a hold, by which the depths of locations are compared."""
    return key.count("/")


def numbered(place: str) -> bool:
    """Whether a location, with a slash at its end, ends in an entity's id, as default ones do."""
    return _NUMBERED.search(place) is not None


def shallowest(segment: Segment) -> int | None:
    """Returns the least depth of the locations in a segment, except for locations that end in an entity's id; None if
    there are no others."""
    keys = [key for key in map(key_of, segment.lines) if key.startswith("location\n")]
    return min((depth(key) for key in keys if not numbered(key.rpartition("\n")[0])), default=None)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A range of index keys from `low` on and before `high` (None: to the end), which at most one segment covers."""

    low: str
    high: str | None
    ref: Ref | None


class Directory:
    """The directory of the index: references to all segments of one state of the index, in the order of their keys."""

    __slots__ = ("_firsts", "refs")

    def __init__(self, refs: Sequence[Ref] = ()) -> None:
        self.refs = tuple(refs)
        self._firsts = [ref.first for ref in self.refs]

    def covering(self, key: str) -> Ref | None:
        """Returns the item of the only segment of the index that may contain a key: the last one in the key's range
        that begins at or before the key. None if there is none."""
        place = bisect_right(self._firsts, key) - 1
        if place < 0 or range_of(self._firsts[place]) != range_of(key):
            return None
        return self.refs[place]

    def beside(self, ref: Ref) -> Iterator[Ref]:
        """Iterates over the neighbours of a segment of the index that are in the same range: the next one, then the
        previous one."""
        place = bisect_left(self._firsts, ref.first)
        for neighbour in (place + 1, place - 1):
            if 0 <= neighbour < len(self.refs) and range_of(self.refs[neighbour].first) == range_of(ref.first):
                yield self.refs[neighbour]

    def key_ranges(self, low: str, high: str | None) -> Iterator[KeyRange]:
        """Iterates over the index keys from `low` on and before `high` (None: to the end), split where another segment
        or range begins, each range with the segment that covers it. It is lazy, because one page of a listing needs few
        of them."""
        ranges = [start for start in RANGES if start > low and (high is None or start < high)]
        last = len(self._firsts) if high is None else bisect_left(self._firsts, high)
        segments = (self._firsts[place] for place in range(bisect_right(self._firsts, low), last))
        for cut in merge(ranges, segments):
            if cut != low:  # a segment may begin where its range does
                yield KeyRange(low, cut, self.covering(low))
                low = cut
        yield KeyRange(low, high, self.covering(low))
