"""The sequencer: enters the changes of a catalog into its event feed (docs/design/events.md).

A step reads the end of the feed, then HEAD, then the listing of pointers, and appends what is new. All that it plans
follows from what it reads; what it remembers of the step before, it checks. So it may be killed anywhere and run twice.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from arco_catalog.iceberg.errors import CatalogError, InternalError
from arco_catalog.iceberg.json import MalformedJson
from arco_catalog.operations.feed import read_segment
from arco_catalog.planning.feed import Chain, drops, gap_record, merge, position_after
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.feed import FeedRecord
from arco_catalog.state.feed_cursors import FeedCursor, FeedCursors, moved_by
from arco_catalog.state.fields import optional_text
from arco_catalog.state.listing import list_pages
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.upkeep.feed.append import LostSegment, append
from arco_catalog.upkeep.feed.beginning import begin
from arco_catalog.upkeep.feed.commit_chain import NewCommits, new_commits, next_commits
from arco_catalog.upkeep.feed.feed_end import FeedEnd, FeedSetBack, read_end
from arco_catalog.upkeep.feed.registry_chain import new_operations
from storage_backends import StoreDenied

AT_ONCE = 16
"""Chains of entities that are walked concurrently."""
MAX_ENTITIES = 200
"""Entities with commits that one step enters at most."""
MAX_RECORDS = 5_000
"""The number of records of entities from which one step reads no others."""
MAX_KEPT = 100_000
"""The number of files that have not entered from which no others are searched for, until they have: some 25 MB. A step
may exceed it by what the chains that are walked concurrently have."""
CATCH_UP = 100
"""The number of segments of other sequencers after which the cursors are stored, also while more are read."""
MAX_STEPS = 1_000
"""Steps of one run at most."""
PAUSE_SHARE = 0.5
"""The share of a session's time that is left when long searches pause, and the run ends."""


class Sequencer:
    """Enters the changes of one catalog into its event feed, step by step. It remembers the end of the feed between
    steps; a new one reads it from the store."""

    def __init__(self) -> None:
        self._feed: FeedEnd | None = None
        self._steps = 0
        self._run_since = 0
        self._pause_ms = 0
        self._in_vain: dict[str, int] = {}
        """The tables and views of which nothing could enter when they were tried last, and in which step that was."""

    async def run(self, session: Session, stats: FeedStats) -> None:
        """Makes steps until all that was found and can enter has, another sequencer makes a segment first, or half of
        the session's time is over, but `MAX_STEPS` at most; adds the counts to `stats`, and `is_end` for the first
        case. Raises `StoreError`, and `CatalogError` for records of the feed or the registry that can't be read; the
        next run then reads the end of the feed again."""
        self._pause_ms, self._run_since = int(session.deadline.left_ms() * PAUSE_SHARE), self._steps + 1
        for _ in range(MAX_STEPS):
            stats.is_end = False
            try:
                stats.is_end = await self._step(session, stats)
            except LostSegment:
                stats.lost_segments += 1
                return
            except FeedSetBack:
                self._feed = None
                continue
            except BaseException:
                self._feed = None
                raise
            if stats.is_end or session.deadline.left_ms() <= self._pause_ms:
                return

    async def _step(self, session: Session, stats: FeedStats) -> bool:
        """Makes one step: appends new records, and stores the cursors. Returns whether it entered all that it found and
        that can enter; also true for a catalog without a HEAD. A feed without a segment begins at HEAD. Later, once all
        operations have entered, it begins for tables and views that have no beginning, or begins again after a gap or
        lost cursors. Raises as `run` does, `LostSegment`, and `FeedSetBack`."""
        self._steps += 1
        feed = await self._read(session)
        head = await session.state.head()
        if head.id is None:
            return True
        if feed.last is None:
            is_end = await begin(session, feed, head, stats)
        else:
            operations = await new_operations(session, head, feed.last.registry, feed.tail)
            if operations.is_all:
                end = position_after(operations.records, feed.last.registry)
                is_end = await self._enter(session, feed, operations.records, stats)
                if not (feed.has_begun and feed.is_complete) and feed.last.registry.is_at(end):
                    is_end &= await begin(session, feed, head, stats)
            else:  # tables wait until all operations have entered that may have created them
                await append(session, feed, operations.records, stats)
                is_end = False
        await feed.write_cursors(session)
        return is_end

    async def _read(self, session: Session) -> FeedEnd:
        """Returns the end of the feed, which it remembers, after taking in the segments that have followed since;
        stores the cursors whenever these are many. Raises `InternalError` if a segment does not follow the one before,
        and `FeedSetBack` if that is because a restore has removed the one that it remembers."""
        feed = self._feed = self._feed or await read_end(session)
        feed.seen = ""
        read = 0
        while (segment := await read_segment(session.state, feed.next)) is not None:
            session.check_deadline()
            if segment.previous != (None if feed.last is None else feed.last.id):
                await feed.check_stored(session)
                raise InternalError(
                    f"The segments of the event feed do not follow each other at {segment.first}, so no new events "
                    "enter the feed: run `arco fsck`"
                )
            feed.rest.clear()
            feed.add(segment)
            feed.seen = segment.id
            read += 1
            if read % CATCH_UP == 0:
                await feed.write_cursors(session)
        return feed

    async def _enter(self, session: Session, feed: FeedEnd, operations: Sequence[FeedRecord], stats: FeedStats) -> bool:
        """Enters new operations of the registry, the commits of a limited number of tables and views with pointers that
        have moved, and a gap for a dropped one that has no pointer any more. Notes where every one goes on, and which
        were tried in vain. Returns whether these are all that can enter now."""
        cursors, gone = await _moved(session, feed.cursors, operations)
        moved = self._in_order(cursors, operations)
        dropped = drops(operations).keys() & cursors.keys()
        feed.forget_others(moved)
        is_full = feed.kept >= MAX_KEPT
        if is_full:
            moved = [each for each in moved if feed.keeps(each)]
        found = {entity: NewCommits(Chain(entity, [gap_record(entity, 0)])) for entity in gone}
        tried: list[str] = []
        for batch in batches(moved[:MAX_ENTITIES], AT_ONCE):
            left_over = feed.kept + sum(len(new.rest) for new in found.values())
            if _count(found) >= MAX_RECORDS or (left_over >= MAX_KEPT and not is_full):
                break
            commits = await gather(*(self._commits(session, feed, each, cursors[each], stats) for each in batch))
            found |= {entity: new for entity, new in zip(batch, commits, strict=True) if new is not None}
            tried += batch
        waiting = [Chain(entity, [], has_more=True) for entity in dropped.difference(tried)]
        planned = merge(operations, [*(new.chain for new in found.values()), *waiting])
        await append(session, feed, planned, stats)
        for entity, new in found.items():
            _note(feed, entity, new)
        for entity in tried:
            if entity in found and (found[entity].chain.records or found[entity].version):
                self._in_vain.pop(entity, None)
            else:
                self._in_vain[entity] = self._steps
        is_left = any(self._in_vain.get(each, 0) < self._run_since for each in moved[len(tried) :])
        has_more = is_left or feed.rest or feed.searches or len(planned) < len(operations) + _count(found)
        return not has_more

    def _in_order(self, moved: Mapping[str, FeedCursor], operations: Sequence[FeedRecord]) -> Sequence[str]:
        """Returns the entities of `moved` in the order in which a step tries them: first those of the operations, which
        may drop them, and last those of which nothing could enter, from the one that was tried the longest ago on.
        Forgets vain tries of entities that are not in `moved`."""
        self._in_vain = {each: step for each, step in self._in_vain.items() if each in moved}
        names = {record.entity for record in operations}
        names |= {optional_text(record.details, "replaced") for record in operations}
        return sorted(moved, key=lambda each: (each not in names, self._in_vain.get(each, 0), each))

    async def _commits(
        self, session: Session, feed: FeedEnd, entity: str, cursor: FeedCursor, stats: FeedStats
    ) -> NewCommits | None:
        """Returns the commits of an entity that enter the feed next: the rest of its last ones, or those by a paused or
        a new search; a search that pauses is remembered in `feed`. None if the entity has no pointer or is not created
        yet, or if they can't be read, which is noted in `stats`."""
        rest, search = feed.rest.pop(entity, None), feed.searches.pop(entity, None)
        try:
            if rest is not None:
                return await next_commits(session, entity, rest)
            if search is not None:
                new: NewCommits | None = await search.commits(session, self._pause_ms)
            else:
                new = await new_commits(session, entity, cursor, feed.tail, self._pause_ms)
        except (CatalogError, MalformedJson, StoreDenied) as error:
            stats.fails(f"{entity}: {error}")
            return None
        if new is not None and new.search is not None:
            feed.searches[entity] = new.search
        return new


async def _moved(
    session: Session, cursors: FeedCursors, operations: Sequence[FeedRecord]
) -> tuple[Mapping[str, FeedCursor], Collection[str]]:
    """Lists all pointers. Returns the cursors of the tables and views of which commits may not have entered, as they
    are after these operations, and the tables and views that these operations drop and whose pointers a collection has
    deleted before that."""
    changed: dict[str, FeedCursor] = {}

    def cursor_of(entity: str) -> FeedCursor | None:
        return changed.get(entity) or cursors.get(entity)

    for record in operations:
        changed.update(moved_by(record, cursor_of))
    moved: dict[str, FeedCursor] = {}
    gone = {entity for entity in drops(operations) if cursor_of(entity) is not None}
    prefix = session.state.paths.pointers
    async with aclosing(list_pages(session.state, prefix)) as pages:
        async for page in pages:
            for listed in page.entries:
                entity = listed.key.removeprefix(prefix).removesuffix(".json")
                cursor = cursor_of(entity)
                gone.discard(entity)
                if cursor is not None and cursor.version != listed.version:
                    moved[entity] = cursor
    return moved, gone


def _note(feed: FeedEnd, entity: str, new: NewCommits) -> None:
    """Notes in `feed` which files of an entity enter next, or the version of the pointer at which all have entered.
    Notes nothing if the entity has no cursor, or some of the records in `new` have not entered."""
    cursor = feed.cursors.get(entity)
    files = [record.file for record in new.chain.records if record.file is not None]
    if cursor is None or (files and cursor.file != files[-1]):
        return
    if new.rest:
        feed.rest[entity] = new.rest
    if new.version:
        feed.cursors.set(entity, replace(cursor, version=new.version))


def _count(found: Mapping[str, NewCommits]) -> int:
    """Returns the number of records in the chains of tables and views that were found."""
    return sum(len(new.chain.records) for new in found.values())
