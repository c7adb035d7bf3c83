"""Spilling: moves entries of the registry's index from HEAD into segments, so that commits stay small
(docs/decisions/0010-spilled-index.md).

A commit contains latest edits of the index; older entries are in segments, which are separate objects. When the edits
of one range exceed their limit, the commit that adds the last of them also rewrites the segment to which the largest
part of them belongs. This work is bounded, and serves many edits.

An entry that depends on a transaction is never spilled, so that settling the transaction finds it among the edits.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby
from math import sqrt

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.segments import (
    RANGES,
    Directory,
    KeyRange,
    Ref,
    Segment,
    decode_line,
    encode_line,
    range_of,
    separator,
)
from storage_backends.lazy_dataclass import dataclass

EDITS_A_FLUSH = 16
"""A commit flushes one group of edits, and one more for each so many edits of its own, so that flushes keep up with
group commits."""
FULL_AT_ROOT = 6
"""The square root of the number of segments at which the buffer has its maximum size."""
PIECES = 8
"""The approximate maximum of full segments that one flush writes. Further edits stay embedded until the next flush."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of spilling in bytes: of the index changes in one range before some are flushed (`least` while there
    are few segments, growing to `embedded`), and of a segment before it is split."""

    embedded: int = 64 << 10
    segment: int = 256 << 10
    least: int = 32 << 10

    def buffer(self, segments: int) -> int:
        """Returns the bytes of edits at which a range with this number of segments flushes some: at least `least` and
        at most `embedded`.

        Every registry commit writes all of the buffer, so a small buffer saves bytes with each commit. A flush rewrites
        one segment for the edits that belong to it; with a small buffer and many segments these are few. The sum of
        both costs is least if the buffer grows with the square root of the number of segments, as it does between these
        two limits.
        """
        return min(self.embedded, max(self.least, int(self.embedded * sqrt(segments) / FULL_AT_ROOT)))


@dataclass(frozen=True, slots=True)
class Spilling:
    """What a registry commit that may spill needs: the limits, and a source of ids for new segments.

    The ids must be fresh. With names that follow from the content, a writer could refer to an object that a collection
    is about to delete as garbage.
    """

    limits: Limits
    fresh_id: Callable[[], str]


@dataclass(slots=True)
class _Group:
    """Edits of the registry's index that belong to one segment; `ref` is None if that segment does not exist yet."""

    range: str
    ref: Ref | None
    lines: list[tuple[str, bytes | None]] = field(default_factory=list)
    size: int = 0

    def add(self, key: str, line: bytes | None) -> None:
        """Adds an edit of the registry's index to this group, and its bytes to the group's size; without a `line` the
        edit removes the key."""
        self.lines.append((key, line))
        self.size += len(key if line is None else line)


@dataclass(frozen=True, slots=True)
class _Flush:
    """The result of moving one group of edits of the index from HEAD into segments: the keys of these edits, the
    segments that are replaced, and the new ones."""

    taken: Sequence[str]
    gone: Sequence[Ref]
    made: Sequence[tuple[Ref, Segment]]


def spill(index: Index, edits: int, spilling: Spilling) -> Steps[tuple[Index, list[Segment]]]:
    """Moves groups of edits of the index into segments, for a commit of `edits` edits, if ranges of keys have too many:
    at most one group, and one more for each `EDITS_A_FLUSH` edits, and none beyond the excess. Returns the index after
    it, and the segments to write before the commit becomes HEAD; the same index and none if no range has too many. It
    needs the segments that it rewrites."""
    sizes = Counter(range_of(ref.first) for ref in index.directory.refs)
    buffers = {start: spilling.limits.buffer(sizes[start]) for start in RANGES}
    chosen = _largest(_groups(index, spilling.limits, buffers), buffers, 1 + edits // EDITS_A_FLUSH)
    if not chosen:
        return index, []
    busy = {group.ref for group in chosen if group.ref is not None}
    yield Needs(segments=[*busy])
    flushes: list[_Flush] = []
    for group in chosen:
        flushes.append((yield from _flush(index, group, busy, spilling)))
        busy.update(flushes[-1].gone)
    taken = {key for flush in flushes for key in flush.taken}
    gone = {ref for flush in flushes for ref in flush.gone}
    made = [new for flush in flushes for new in flush.made]
    directory = _normalise([*(ref for ref in index.directory.refs if ref not in gone), *(ref for ref, _ in made)])
    rest = {key: entry for key, entry in index.edits.items() if key not in taken}
    return Index(rest, directory, index.segment_lookup), [segment for _, segment in made]


def _flush(index: Index, group: _Group, busy: Collection[Ref], spilling: Spilling) -> Steps[_Flush]:
    """Returns the segments that replace the one to which a group of edits belongs, after the edits are merged into it,
    with the keys of the edits and the replaced segments. If the result is small, it is merged with the neighbour that
    `_neighbour` finds, unless there is none or it is `busy`. Nothing is stored."""
    lines = _merged(index.loaded(group.ref), group.lines)
    gone = [] if group.ref is None else [group.ref]
    neighbour = _neighbour(index.directory, group.ref, lines, spilling.limits.segment)
    if neighbour is not None and neighbour not in busy:
        yield Needs(segments=[neighbour])
        lines = _merged(index.loaded(neighbour), list(lines.items()))
        gone.append(neighbour)
    first = min((ref.first for ref in gone), default=group.range)
    made: list[tuple[Ref, Segment]] = []
    for piece in cut([lines[key] for key in sorted(lines)], spilling.limits.segment):
        if made:
            first = separator(decode_line(made[-1][1].lines[-1])[0], decode_line(piece[0])[0])
        segment = Segment(spilling.fresh_id(), piece)
        made.append((Ref.of(segment, first), segment))
    return _Flush([key for key, _ in group.lines], gone, made)


def is_pending(entry: JsonObject | None) -> bool:
    """Whether an entry of the index has a field `transaction`, so that it stays embedded in HEAD; False for None, a
    removed one."""
    return entry is not None and "transaction" in entry


def _groups(index: Index, limits: Limits, buffers: Mapping[str, int]) -> Iterator[_Group]:
    """Iterates over the edits of each range that exceeds its buffer, without those that depend on a transaction,
    grouped by the segment to which they belong. A group has at most about the bytes of `PIECES` segments; more edits
    are left out. Edits that depend on a transaction do not count towards the buffer."""
    ends: list[str | None] = [*RANGES[1:], None]
    for start, end in zip(RANGES, ends, strict=True):
        everything = index.edited_in(KeyRange(start, end, None))
        pending: JsonObject = {key: index.edits[key] for key in everything if not is_pending(index.edits[key])}
        if len(dumps(pending)) <= buffers[start]:
            continue
        for key_range in index.directory.key_ranges(start, end):
            group = _Group(start, key_range.ref)
            for key in index.edited_in(key_range):
                if group.size > PIECES * limits.segment:
                    break
                if key in pending:
                    entry = index.edits[key]
                    group.add(key, None if entry is None else encode_line(key, entry))
            if group.lines:
                yield group


def _largest(groups: Iterator[_Group], buffers: Mapping[str, int], limit: int) -> list[_Group]:
    """Returns the groups of edits to flush, the largest first and at most `limit` of them: from each range the largest
    groups, until the edits that stay fit into the range's buffer."""
    chosen: list[_Group] = []
    by_range = sorted(
        groups, key=lambda group: (group.range, -group.size, "" if group.ref is None else group.ref.first)
    )
    for start, members in groupby(by_range, key=lambda group: group.range):
        largest = list(members)
        excess = sum(group.size for group in largest) - buffers[start]
        for group in largest:
            if excess > 0:
                chosen.append(group)
                excess -= group.size
    return sorted(chosen, key=lambda group: -group.size)[:limit]


def _merged(base: Segment | None, edits: Sequence[tuple[str, bytes | None]]) -> dict[str, bytes]:
    """Returns the lines of a segment (None: an empty one) after some edits, by key, in no order; an edit without a line
    removes the key."""
    lines = {} if base is None else {decode_line(line)[0]: line for line in base.lines}
    for key, line in edits:
        if line is None:
            lines.pop(key, None)
        else:
            lines[key] = line
    return lines


def _neighbour(directory: Directory, ref: Ref | None, lines: dict[str, bytes], limit: int) -> Ref | None:
    """Returns the segment next to that of `ref` with which it can be merged because it became small: both together have
    at most three quarters of the limit. None if the segment is not small, is empty or new, or has no such neighbour.
    `lines` are the contents of the segment now."""
    size = sum(map(len, lines.values()))
    if ref is None or not lines or size > limit // 4:
        return None
    return next((beside for beside in directory.beside(ref) if beside.size + size <= limit * 3 // 4), None)


def cut(lines: Sequence[bytes], limit: int) -> list[list[bytes]]:
    """Splits the lines of a segment, in their order, into pieces of about equal size, none much above `limit` bytes.
    Returns no piece for no lines."""
    total = sum(map(len, lines))
    count = -(-total // limit)
    pieces: list[list[bytes]] = [[] for _ in range(count)]
    before = 0
    for line in lines:
        pieces[before * count // total].append(line)
        before += len(line)
    return [piece for piece in pieces if piece]


def _normalise(refs: Sequence[Ref]) -> Directory:
    """Returns a directory in which the first segment of each range begins where the range does, so that it covers the
    keys before its own first one."""
    ordered = sorted(refs, key=lambda ref: ref.first)
    for place, ref in enumerate(ordered):
        start = range_of(ref.first)
        if place == 0 or range_of(ordered[place - 1].first) != start:
            ordered[place] = replace(ref, first=start)
    return Directory(ordered)
