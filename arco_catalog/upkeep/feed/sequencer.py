"""The sequencer: enters the changes of a catalog into its event feed (docs/design/events.md).

A step reads the end of the feed, then HEAD, then the listing of pointers, and appends what is new. All that it plans
follows from what it reads; what it remembers of the step before, it checks. So it may be killed anywhere and run twice.
"""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from arco_catalog.iceberg.errors import CatalogError, InternalError
from arco_catalog.iceberg.json import MalformedJson
from arco_catalog.operations.feed import read_segment
from arco_catalog.planning.feed import (
    entity_record,
    fit,
    gap_record,
    merge,
    numbered,
    position_after,
    registry_record,
)
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.feed import FeedRecord, FeedSegment
from arco_catalog.state.feed_cursors import FeedCursor, FeedCursors, after, entities_of
from arco_catalog.state.fields import optional_text
from arco_catalog.state.listing import list_pages
from arco_catalog.state.registry import RegistryState
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.upkeep.feed.beginning import PresentFile, existing_entities, present_file
from arco_catalog.upkeep.feed.commit_chain import (
    NewCommits,
    new_commits,
    next_commits,
)
from arco_catalog.upkeep.feed.feed_end import FeedEnd, read_end
from arco_catalog.upkeep.feed.registry_chain import NOWHERE, new_operations, position_of
from storage_backends import Applied, StoreDenied

AT_ONCE = 16
"""Chains of entities that are walked concurrently."""
MAX_ENTITIES = 200
"""Entities with commits that one step enters at most."""
MAX_RECORDS = 5_000
"""The number of records of entities from which one step reads no others."""
CATCH_UP = 100
"""The number of segments of other sequencers after which the cursors are stored, also while more are read."""
MAX_STEPS = 1_000
"""Steps of one run at most."""
PAUSE_SHARE = 0.5
"""The share of a session's time that is left when long searches pause, and the run ends."""


class LostSegment(Exception):
    """Another sequencer has made the segment first: what this one planned is void."""


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
        the session's time is over. Raises `StoreError`, and `CatalogError` for records of the feed or the registry that
        can't be read."""
        self._pause_ms, self._run_since = int(session.deadline.left_ms() * PAUSE_SHARE), self._steps + 1
        for _ in range(MAX_STEPS):
            stats.is_end = False
            try:
                stats.is_end = await self.step(session, stats)
            except LostSegment:
                stats.lost_segments += 1
                return
            except BaseException:
                self._feed = None
                raise
            if stats.is_end or session.deadline.left_ms() <= self._pause_ms:
                return

    async def step(self, session: Session, stats: FeedStats) -> bool:
        """Makes one step, and returns whether it entered all that it found and that can enter. Raises as `run` does,
        and `LostSegment`."""
        self._steps += 1
        feed = await self._read(session)
        head = await session.state.head()
        if head.id is None:
            return True
        if feed.last is None:
            is_end = await self._begin(session, feed, head, stats)
        else:
            operations = await new_operations(session, head, feed.last.registry, feed.tail)
            if not operations.is_all:  # tables wait until all operations have entered that may have created them
                await self._append(session, feed, operations.records, stats)
                is_end = False
            elif feed.last.begun and feed.is_complete:
                is_end = await self._enter(session, feed, operations.records, stats)
            else:
                await self._append(session, feed, operations.records, stats)
                is_end = await self._begin(session, feed, head, stats)
        await feed.write_cursors(session)
        return is_end

    async def _read(self, session: Session) -> FeedEnd:
        """Returns the feed up to its last segment."""
        feed, self._feed = self._feed, None
        if feed is None:
            feed = await read_end(session)
        read = 0
        while (segment := await read_segment(session.state, feed.next)) is not None:
            session.check_deadline()
            if segment.previous != (None if feed.last is None else feed.last.id):
                raise InternalError(
                    f"The segments of the event feed do not follow each other at {segment.first}: run `arco fsck`"
                )
            feed.rest.clear()
            feed.add(segment)
            read += 1
            if read % CATCH_UP == 0:
                await feed.write_cursors(session)
        self._feed = feed
        return feed

    async def _begin(self, session: Session, feed: FeedEnd, head: RegistryState, stats: FeedStats) -> bool:
        """Enters the present file of each table and view of HEAD that has no cursor, with which the feed has begun;
        after a gap if its cursor was lost with segments that are deleted. Returns whether the next step can't enter
        more, because a transaction is undecided."""
        position = position_of(head) if feed.last is None else feed.last.registry
        is_lost = feed.last is not None and not feed.is_complete
        unknown, is_decided = await existing_entities(session, head, feed.cursors)
        if not (is_decided or unknown or feed.last is None):
            return True
        records = [registry_record("begin", position, head.at_ms)]
        present: dict[str, PresentFile] = {}
        for batch in batches(unknown, AT_ONCE):
            files = await gather(*(present_file(session, entity) for entity in batch))
            present |= {entity: file for entity, file in zip(batch, files, strict=True) if file is not None}
            if len(present) >= MAX_RECORDS:
                await self._append_present(session, feed, records, present, stats, is_lost=is_lost, begun=None)
                records, present = [registry_record("begin", position, head.at_ms)], {}
        await self._append_present(session, feed, records, present, stats, is_lost=is_lost, begun=is_decided)
        feed.is_complete |= is_decided
        return not is_decided

    async def _append_present(
        self,
        session: Session,
        feed: FeedEnd,
        first: Sequence[FeedRecord],
        present: Mapping[str, PresentFile],
        stats: FeedStats,
        *,
        is_lost: bool,
        begun: bool | None,
    ) -> None:
        """Appends the `first` records and the present files of entities, and notes the versions of their pointers."""
        records = [*first]
        for entity, found in present.items():
            if is_lost:
                records.append(gap_record(entity, found.file.ms))
            records.append(entity_record("begin", entity, found.file))
        await self._append(session, feed, records, stats, begun=begun)
        for entity, found in present.items():
            cursor = feed.cursors.get(entity)
            if cursor is not None and cursor.file == found.file:
                feed.cursors.set(entity, replace(cursor, version=found.version))

    async def _enter(self, session: Session, feed: FeedEnd, operations: Sequence[FeedRecord], stats: FeedStats) -> bool:
        """Enters the operations of the registry, and the commits of tables and views."""
        created = _created(feed.cursors, operations)
        moved = self._in_order(await self._moved(session, feed.cursors, created), operations)
        feed.forget_others(moved)
        found: dict[str, NewCommits] = {}
        tried: list[str] = []
        for batch in batches(moved[:MAX_ENTITIES], AT_ONCE):
            if sum(len(new.chain.records) for new in found.values()) >= MAX_RECORDS:
                break
            commits = await gather(*(self._commits(session, feed, each, created.get(each), stats) for each in batch))
            found |= {entity: new for entity, new in zip(batch, commits, strict=True) if new is not None}
            tried += batch
        planned = merge(operations, [new.chain for new in found.values()])
        await self._append(session, feed, planned, stats)
        for entity, new in found.items():
            self._note(feed, entity, new)
        in_vain = {
            each for each in tried if each not in found or not (found[each].chain.records or found[each].version)
        }
        self._in_vain = {each: step for each, step in self._in_vain.items() if each not in tried}
        self._in_vain |= dict.fromkeys(in_vain, self._steps)
        is_left = any(self._in_vain.get(each, 0) < self._run_since for each in moved[len(tried) :])
        has_begun = feed.last is None or feed.last.begun
        has_more = is_left or feed.rest or feed.searches or len(planned) < _count(operations, found)
        return has_begun and not has_more

    def _in_order(self, moved: Sequence[str], operations: Sequence[FeedRecord]) -> Sequence[str]:
        """Returns entities in the order in which a step tries them: first those of the operations, which may drop them,
        and last those of which nothing could enter, from the one that was tried the longest ago on."""
        known = {*moved}
        self._in_vain = {each: step for each, step in self._in_vain.items() if each in known}
        names = {record.entity for record in operations}
        names |= {optional_text(record.details, "replaced") for record in operations}
        return sorted(moved, key=lambda each: (each not in names, self._in_vain.get(each, 0), each))

    async def _moved(self, session: Session, cursors: FeedCursors, created: Mapping[str, FeedCursor]) -> Sequence[str]:
        """Lists all pointers. Returns the tables and views of which commits may not have entered."""
        moved: list[str] = []
        prefix = session.state.paths.pointers
        async with aclosing(list_pages(session.state, prefix)) as pages:
            async for page in pages:
                for listed in page.entries:
                    entity = listed.key.removeprefix(prefix).removesuffix(".json")
                    cursor = created.get(entity) or cursors.get(entity)
                    if cursor is not None and cursor.version != listed.version:
                        moved.append(entity)
        return moved

    async def _commits(
        self, session: Session, feed: FeedEnd, entity: str, created: FeedCursor | None, stats: FeedStats
    ) -> NewCommits | None:
        """Returns the commits of an entity that enter next; None if there are none, or none that can be read."""
        cursor = created or feed.cursors.get(entity)
        assert cursor is not None
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

    def _note(self, feed: FeedEnd, entity: str, new: NewCommits) -> None:
        """Notes what has entered of an entity, if all of it has."""
        cursor = feed.cursors.get(entity)
        files = [record.file for record in new.chain.records if record.file is not None]
        if cursor is None or (files and cursor.file != files[-1]):
            return
        if new.rest:
            feed.rest[entity] = new.rest
        if new.version:
            feed.cursors.set(entity, replace(cursor, version=new.version))

    async def _append(
        self,
        session: Session,
        feed: FeedEnd,
        records: Sequence[FeedRecord],
        stats: FeedStats,
        *,
        begun: bool | None = None,
    ) -> None:
        """Appends records to the feed, in as many segments as they need. `begun` is whether the feed has begun with
        them; None if they change nothing about that. Raises `LostSegment` if another sequencer appends, too."""
        left = [*records]
        was_begun = feed.last is not None and feed.last.begun
        while left:
            session.check_deadline()
            taken = numbered(fit(left), feed.next)
            del left[: len(taken)]
            was_begun = was_begun and not any(record.kind == "gap" and record.entity is None for record in taken)
            is_begun = was_begun or (begun is True and not left)
            await self._create(session, feed, taken, is_begun)
            now_ms = session.runtime.now_ms()
            stats.segments += 1
            stats.records += len(taken)
            stats.gaps += sum(record.kind == "gap" for record in taken)
            ages = [now_ms - record.at_ms for record in taken if record.kind in ("commit", "operation")]
            stats.lag_ms = max(stats.lag_ms, *ages, 0)

    async def _create(self, session: Session, feed: FeedEnd, records: Sequence[FeedRecord], is_begun: bool) -> None:
        """Creates the next segment, which gives its numbers out."""
        last = feed.last
        segment = FeedSegment(
            id=session.runtime.ulid(),
            previous=None if last is None else last.id,
            previous_first=None if last is None else last.first,
            first=feed.next,
            registry=position_after(records, NOWHERE if last is None else last.registry),
            begun=is_begun,
            entered_ms=session.runtime.now_ms(),
            records=records,
        )
        key = session.state.paths.feed_segment(segment.first)
        outcome = await session.state.swap(key, segment.body, None)
        if not isinstance(outcome, Applied):
            there = await read_segment(session.state, segment.first)
            if there is None or there.id != segment.id:  # else an earlier sending of this write was applied
                raise LostSegment
        feed.add(segment)


def _created(cursors: FeedCursors, operations: Sequence[FeedRecord]) -> dict[str, FeedCursor]:
    """Returns the cursors of tables and views that these operations create, and that the feed does not have yet."""
    created: dict[str, FeedCursor] = {}
    for record in operations:
        for entity in entities_of(record):
            created[entity] = after(record, entity, created.get(entity) or cursors.get(entity))
    return created


def _count(operations: Sequence[FeedRecord], found: Mapping[str, NewCommits]) -> int:
    """Returns the number of records that were found."""
    return len(operations) + sum(len(new.chain.records) for new in found.values())
