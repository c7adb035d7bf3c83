"""Appends records to the event feed, in segments that are created once (docs/design/events.md#rule-1)."""

from collections.abc import Sequence
from functools import partial

from arco_catalog.operations.feed import read_segment
from arco_catalog.planning.feed import fit, numbered, position_after
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.feed import MAX_RECORDS, FeedRecord, FeedSegment
from arco_catalog.state.worker_threads import off_loop
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.upkeep.feed.feed_end import FeedEnd
from arco_catalog.upkeep.feed.registry_chain import NOWHERE
from storage_backends import Applied

RECORD_BYTES = 1_000
"""The size of a record, to decide whether a thread makes its JSON."""


class LostSegment(Exception):
    """Another sequencer has made the segment first: what this one planned is void."""


async def append(
    session: Session, feed: FeedEnd, records: Sequence[FeedRecord], stats: FeedStats, *, begins: bool = False
) -> None:
    """Appends records to the feed, in as many segments as they need, none without records, and counts them in `stats`.
    `begins` is whether the feed has begun with the last one of them; a gap in the registry's history means that it must
    begin again. Raises `StoreError`, and `LostSegment` if another sequencer creates one of the segments first: the ones
    before it remain; and `FeedSetBack`."""
    left = [*records]
    if left:
        await feed.check_stored(session)
    while left:
        session.check_deadline()
        taken = numbered(await off_loop(RECORD_BYTES * min(len(left), MAX_RECORDS), partial(fit, left)), feed.next)
        del left[: len(taken)]
        has_begun = feed.has_begun and not any(record.kind == "gap" and record.entity is None for record in taken)
        await _create(session, feed, taken, has_begun or (begins and not left))
        now_ms = session.runtime.now_ms()
        stats.segments += 1
        stats.records += len(taken)
        stats.gaps += sum(record.kind == "gap" for record in taken)
        ages = [now_ms - record.at_ms for record in taken if record.kind in ("commit", "operation")]
        stats.lag_ms = max(stats.lag_ms, *ages, 0)


async def _create(session: Session, feed: FeedEnd, records: Sequence[FeedRecord], begun: bool) -> None:
    """Creates the next segment with these records, which so have their numbers for good, and adds it to `feed`. Raises
    `LostSegment` if another sequencer has made it, and `StoreError`."""
    last = feed.last
    segment = FeedSegment(
        id=session.runtime.ulid(),
        previous=None if last is None else last.id,
        previous_first=None if last is None else last.first,
        first=feed.next,
        registry=position_after(records, NOWHERE if last is None else last.registry),
        begun=begun,
        entered_ms=session.runtime.now_ms(),
        records=records,
    )
    key = session.state.paths.feed_segment(segment.first)
    body = await off_loop(RECORD_BYTES * len(records), lambda: segment.body)
    outcome = await session.state.swap(key, body, None)
    if not isinstance(outcome, Applied):
        there = await read_segment(session.state, segment.first)
        if there is None or there.id != segment.id:  # else an earlier sending of this write was applied
            raise LostSegment
    feed.add(segment)
    feed.seen = segment.id
