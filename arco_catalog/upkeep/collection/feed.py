"""Deletes old segments of the event feed (docs/design/events.md#rule-11)."""

from arco_catalog.planning.collection import Kind, is_older
from arco_catalog.state.feed import FIRST_NUMBER
from arco_catalog.state.feed_cursors import SHARDS, FeedCursors, read_shard
from arco_catalog.state.feed_floor import raise_feed_floor
from arco_catalog.upkeep.collection.run import Run
from storage_backends import Listed


async def collect_feed(run: Run) -> None:
    """Deletes the segments of the event feed before the first that is needed, once the floor of the feed has been
    raised; a dry run only counts them. A segment stays while the one after it is younger than the retention of
    receipts, or the stored cursors do not include that one."""
    listed: dict[int, Listed] = {}
    now_ms = 0
    async for entries, page_ms in run.pages(run.paths.feed_segments):
        now_ms = page_ms
        for each in entries:
            first = run.paths.read_feed_segment(each.key)
            if first is not None:
                listed[first] = each
    included = await _included(run) if listed else FIRST_NUMBER
    kept = FIRST_NUMBER
    for first in sorted(listed):
        if first > included or not is_older(listed[first].written_ms, now_ms, run.retention.receipts_ms):
            break
        kept = first
    old = [listed[first] for first in sorted(listed) if first < kept]
    if old and run.delete:
        run.check_may_continue()
        await raise_feed_floor(run.session.state, kept)
    await run.collect(Kind.FEED_SEGMENT, old)


async def _included(run: Run) -> int:
    """Returns the number of the first record of the last segment that all stored cursors include."""
    shards = await run.each(range(SHARDS), lambda number: read_shard(run.session.state, number))
    return FeedCursors([*shards]).first
