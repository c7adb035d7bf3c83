"""Spilling: keeps small what every commit embeds of the registry's index (docs/decisions/0010-spilled-index.md).

A commit embeds recent edits; older entries are in segments, objects of their own. When the edits of one range outgrow
their limit, the commit that adds the last of them also rewrites one segment, the one that most of them belong in. That
is a bounded piece of work, paid once for many edits.

An entry that depends on a transaction is never spilled: whoever settles it finds it among the edits.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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

EDITS_A_FLUSH = 16
"""For each so many edits a commit may flush once more: group commits must not outrun the flushes."""
FULL_AT_ROOT = 6
"""The root of the number of segments from which on the buffer is as large as it may be."""
PIECES = 8
"""Full segments that one flush writes at most, roughly; what is left stays embedded until the next."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes: of one range's edits before some are flushed, at most and while there are few segments (`least`), and of a
    segment before it is split."""

    embedded: int = 64 << 10
    segment: int = 256 << 10
    least: int = 32 << 10

    def buffer(self, segments: int) -> int:
        """How many bytes of edits a range with so many segments keeps before it flushes some.

        Every registry commit holds the whole buffer, so a small one saves bytes with each commit; a flush rewrites one
        segment for the edits that are meant for it, which are the fewer the smaller the buffer and the more the
        segments. Both together are least where the buffer grows as the root of the number of segments.
        """
        return min(self.embedded, max(self.least, int(self.embedded * sqrt(segments) / FULL_AT_ROOT)))


@dataclass(frozen=True, slots=True)
class Spilling:
    """What a registry commit that may spill needs: limits, and ids for new segments.

    The ids are fresh, always. Were a segment called by its content, a writer could come to rely on an object that the
    collector has just found to be garbage.
    """

    limits: Limits
    fresh_id: Callable[[], str]


@dataclass(slots=True)
class _Group:
    """Edits that belong in one segment. `ref` is None if there is no segment for them yet."""

    range: str
    ref: Ref | None
    lines: list[tuple[str, bytes | None]] = field(default_factory=list)
    size: int = 0

    def add(self, key: str, line: bytes | None) -> None:
        self.lines.append((key, line))
        self.size += len(key if line is None else line)


@dataclass(frozen=True, slots=True)
class _Flush:
    """What became of one group: the edits that are taken over, the segments that are gone, and the new ones."""

    taken: Sequence[str]
    gone: Sequence[Ref]
    made: Sequence[tuple[Ref, Segment]]


def spill(index: Index, edits: int, spilling: Spilling) -> Steps[tuple[Index, list[Segment]]]:
    """The index after what a commit of so many edits flushes, and the segments to write before it becomes HEAD. It
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
    """Merges a group into its segment, and what becomes small with a neighbour that is not `busy` either."""
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
    """Whether what an entry means depends on a transaction: then it stays embedded."""
    return entry is not None and "transaction" in entry


def _groups(index: Index, limits: Limits, buffers: Mapping[str, int]) -> Iterator[_Group]:
    """The edits of each range that has outgrown its limit, grouped by the segment that they belong in."""
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


def _largest(groups: Iterator[_Group], buffers: Mapping[str, int], most: int) -> list[_Group]:
    """The groups to flush: of each range, the largest ones until what is left is within the limit."""
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
    return sorted(chosen, key=lambda group: -group.size)[:most]


def _merged(base: Segment | None, edits: Sequence[tuple[str, bytes | None]]) -> dict[str, bytes]:
    lines = {} if base is None else {decode_line(line)[0]: line for line in base.lines}
    for key, line in edits:
        if line is None:
            lines.pop(key, None)
        else:
            lines[key] = line
    return lines


def _neighbour(directory: Directory, ref: Ref | None, lines: dict[str, bytes], limit: int) -> Ref | None:
    """The segment next to one that has become small, if both together are no more than three quarters of a full one."""
    size = sum(map(len, lines.values()))
    if ref is None or not lines or size > limit // 4:
        return None
    return next((beside for beside in directory.beside(ref) if beside.size + size <= limit * 3 // 4), None)


def cut(lines: Sequence[bytes], limit: int) -> list[list[bytes]]:
    """Splits lines into pieces of about equal size, none much above `limit` bytes. Returns no piece for no lines."""
    total = sum(map(len, lines))
    count = -(-total // limit)
    pieces: list[list[bytes]] = [[] for _ in range(count)]
    before = 0
    for line in lines:
        pieces[before * count // total].append(line)
        before += len(line)
    return [piece for piece in pieces if piece]


def _normalise(refs: Sequence[Ref]) -> Directory:
    """A directory in which the first segment of a range begins where the range does: keys before it are its own too."""
    ordered = sorted(refs, key=lambda ref: ref.first)
    for place, ref in enumerate(ordered):
        start = range_of(ref.first)
        if place == 0 or range_of(ordered[place - 1].first) != start:
            ordered[place] = replace(ref, first=start)
    return Directory(ordered)
