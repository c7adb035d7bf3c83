"""Examines the event feed: its segments, each of which must follow the one before it, the cursors and the floor
(docs/design/events.md)."""

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.operations.feed import read_segment
from arco_catalog.state.feed import FeedSegment
from arco_catalog.state.feed_cursors import CursorShard
from arco_catalog.state.feed_floor import read_feed_floor
from arco_catalog.state.listing import list_objects
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination, Findings
from arco_catalog.upkeep.fsck.findings import Finding


async def examine_feed(examination: Examination) -> Findings:
    """Examines the objects of the event feed, and yields the findings. Segments before the floor are not examined: an
    interrupted collection left them. A floor that can't be read is a finding, and then all segments are examined, from
    the first one that is there."""
    state, paths = examination.session.state, examination.paths
    try:
        floor: int | None = await read_feed_floor(state)
    except InternalError as error:
        yield Finding(Code.FEED_UNREADABLE, paths.feed_floor, error.message)
        floor = None
    numbers: list[int] = []
    async for each in list_objects(state, f"{paths.state}/feed/"):
        first = paths.read_feed_segment(each.key)
        if first is not None:
            numbers.append(first)
        elif each.key.startswith(paths.all_feed_cursors) and each.key.endswith(".json"):
            examination.look_at_one()
            try:
                CursorShard.parse(each.key, await state.read(each.key))
            except InternalError as error:
                yield Finding(Code.FEED_UNREADABLE, each.key, error.message)
        elif each.key != paths.feed_floor:
            yield Finding(Code.OBJECT_UNKNOWN, each.key, "no object of the catalog has such a key")
    async for finding in _segments(examination, sorted(number for number in numbers if number >= (floor or 0)), floor):
        yield finding


async def _segments(examination: Examination, numbers: list[int], floor: int | None) -> Findings:
    """Examines the segments that begin with these numbers, in ascending order. Yields findings for a segment that can't
    be read, for a missing one before another, from `floor` on, or for None from the first of these on, and for one that
    names another predecessor."""
    before: FeedSegment | None = None
    expected = floor
    for number in numbers:
        examination.look_at_one()
        key = examination.paths.feed_segment(number)
        try:
            segment = await read_segment(examination.session.state, number)
        except InternalError as error:
            yield Finding(Code.FEED_UNREADABLE, key, error.message)
            before, expected = None, None
            continue
        if segment is None:
            continue  # deleted since
        if expected is not None and number != expected:
            yield Finding(
                Code.FEED_GAP,
                examination.paths.feed_segment(expected),
                f"this segment of the event feed is missing, and {key} is the next one",
            )
        elif before is not None and segment.previous != before.id:
            yield Finding(
                Code.FEED_GAP,
                key,
                "this segment of the event feed follows another one than that which is stored before it",
            )
        before, expected = segment, segment.next
