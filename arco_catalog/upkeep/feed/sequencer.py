"""The sequencer: enters the changes of a catalog into its event feed (docs/design/events.md).

A step reads the end of the feed, then HEAD, then the listing of pointers, and appends what is new. All that it plans
follows from what it reads; what it remembers of the step before, it checks. So it may be killed anywhere and run twice.
"""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from arco_catalog.iceberg.errors import CatalogError, InternalError
from arco_catalog.iceberg.json import MalformedJson
from arco_catalog.operations.feed import read_segment
from arco_catalog.planning.feed import entity_record, fit, merge, numbered, position_after, registry_record
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.decisions import decide, read_decision, resolve_for_read
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.feed import FIRST_NUMBER, FeedRecord, FeedSegment
from arco_catalog.state.feed_cursors import SHARDS, FeedCursor, FeedCursors, after, entities_of, read_shard
from arco_catalog.state.feed_floor import read_feed_floor
from arco_catalog.state.fields import optional_text, text
from arco_catalog.state.listing import list_pages
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.transaction import committed
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.upkeep.feed.commit_chain import NewCommits, new_commits, next_commits
from arco_catalog.upkeep.feed.registry_chain import NOWHERE, new_operations, position_of
from storage_backends import Applied

AT_ONCE = 16
"""Chains of entities that are walked concurrently."""
MAX_ENTITIES = 200
"""Entities with commits that one step enters at most."""
MAX_STEPS = 1_000
"""Steps of one run at most."""


class LostSegment(Exception):
    """Another sequencer has made the segment first: what this one planned is void."""


@dataclass
class FeedEnd:
    """What a sequencer remembers of a feed: the cursors, which include all segments up to the last one. `rest` has, by
    entities, the files of long chains that enter next."""

    cursors: FeedCursors
    last: FeedSegment | None
    rest: dict[str, Sequence[MetadataFile]] = field(default_factory=dict)
    is_complete: bool = True
    """Whether the cursors follow from all segments: no shard was lost after its segments were deleted."""

    def add(self, segment: FeedSegment) -> None:
        """Takes in the next segment."""
        self.cursors.add(segment)
        self.last = segment

    @property
    def next(self) -> int:
        """The number of the next record."""
        return FIRST_NUMBER if self.last is None else self.last.next

    @property
    def tail(self) -> int:
        """The number of the first record of the last segment."""
        return FIRST_NUMBER if self.last is None else self.last.first


class Sequencer:
    """Enters the changes of one catalog into its event feed, step by step. It remembers the end of the feed between
    steps; a new one reads it from the store."""

    def __init__(self) -> None:
        self._feed: FeedEnd | None = None
        self._failed: frozenset[str] = frozenset()

    async def run(self, session: Session, stats: FeedStats) -> None:
        """Makes steps until all that was found has entered, another sequencer makes a segment first, or the session's
        time is nearly over. Raises `StoreError`, and `CatalogError` for records of the feed or the registry that can't
        be read."""
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
            if stats.is_end:
                return

    async def step(self, session: Session, stats: FeedStats) -> bool:
        """Makes one step, and returns whether it entered all that it found. Raises as `run` does, and `LostSegment`."""
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
        await feed.cursors.write(session.state)
        return is_end

    async def _read(self, session: Session) -> FeedEnd:
        """Returns the feed up to its last segment."""
        feed, self._feed = self._feed, None
        if feed is None:
            feed = await read_end(session)
        while (segment := await read_segment(session.state, feed.next)) is not None:
            session.check_deadline()
            if segment.previous != (None if feed.last is None else feed.last.id):
                raise InternalError(
                    f"The segments of the event feed do not follow each other at {segment.first}: run `arco fsck`"
                )
            feed.rest.clear()
            feed.add(segment)
        self._feed = feed
        return feed

    async def _begin(self, session: Session, feed: FeedEnd, head: RegistryState, stats: FeedStats) -> bool:
        """Enters the present file of each table and view of HEAD that has no cursor, with which the feed has begun.
        Returns False: the next step enters commits, or begins again if a transaction was undecided."""
        position = position_of(head) if feed.last is None else feed.last.registry
        records = [registry_record("begin", position, head.at_ms)]
        unknown, is_decided = await existing_entities(session, head, feed.cursors)
        for batch in batches(unknown, AT_ONCE):
            files = await gather(*(_present_file(session, entity) for entity in batch))
            pairs = zip(batch, files, strict=True)
            records += [entity_record("begin", entity, file) for entity, file in pairs if file is not None]
        await self._append(session, feed, records, stats, begun=is_decided)
        feed.is_complete |= is_decided
        return False

    async def _enter(self, session: Session, feed: FeedEnd, operations: Sequence[FeedRecord], stats: FeedStats) -> bool:
        """Enters the operations of the registry, and the commits of tables and views."""
        created = _created(feed.cursors, operations)
        moved = await self._moved(session, feed.cursors, created)
        found: dict[str, NewCommits] = {}
        for batch in batches(moved[:MAX_ENTITIES], AT_ONCE):
            commits = await gather(*(self._commits(session, feed, each, created.get(each), stats) for each in batch))
            found |= {entity: new for entity, new in zip(batch, commits, strict=True) if new is not None}
        planned = merge(operations, [new.chain for new in found.values()])
        await self._append(session, feed, planned, stats)
        for entity, new in found.items():
            self._note(feed, entity, new)
        has_begun = feed.last is None or feed.last.begun
        return has_begun and len(moved) <= MAX_ENTITIES and not feed.rest and len(planned) == _count(operations, found)

    async def _moved(self, session: Session, cursors: FeedCursors, created: Mapping[str, FeedCursor]) -> Sequence[str]:
        """Lists all pointers. Returns the tables and views of which commits may not have entered, those last that could
        not be read in the step before."""
        moved: list[str] = []
        prefix = session.state.paths.pointers
        async with aclosing(list_pages(session.state, prefix)) as pages:
            async for page in pages:
                for listed in page.entries:
                    entity = listed.key.removeprefix(prefix).removesuffix(".json")
                    cursor = created.get(entity) or cursors.get(entity)
                    if cursor is not None and cursor.version != listed.version:
                        moved.append(entity)
        return sorted(moved, key=lambda entity: (entity in self._failed, entity))

    async def _commits(
        self, session: Session, feed: FeedEnd, entity: str, created: FeedCursor | None, stats: FeedStats
    ) -> NewCommits | None:
        """Returns the commits of an entity that enter next; None if there are none, or none that can be read."""
        cursor = created or feed.cursors.get(entity)
        assert cursor is not None
        try:
            if entity in feed.rest:
                return await next_commits(session, entity, feed.rest[entity])
            new = await new_commits(session, entity, cursor, feed.tail)
        except (CatalogError, MalformedJson) as error:
            self._failed |= {entity}
            stats.fails(f"{entity}: {error}")
            return None
        self._failed -= {entity}
        return new

    def _note(self, feed: FeedEnd, entity: str, new: NewCommits) -> None:
        """Notes what has entered of an entity, if all of it has."""
        cursor = feed.cursors.get(entity)
        files = [record.file for record in new.chain.records if record.file is not None]
        if cursor is None or (files and cursor.file != files[-1]):
            return
        feed.rest.pop(entity, None)
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


async def read_end(session: Session) -> FeedEnd:
    """Reads the cursors, and the last segment that all of them include. Raises `InternalError` if the feed is corrupt,
    and `StoreError`."""
    state = session.state
    floor = await read_feed_floor(state)
    cursors = FeedCursors([*await gather(*(read_shard(state, number) for number in range(SHARDS)))])
    lost = [shard for shard in cursors.shards if shard.next < floor]
    for shard in lost:
        shard.is_changed = True
    first = max(floor, cursors.first)
    segment = await read_segment(state, first)
    if segment is None and (first > FIRST_NUMBER or any(shard.up_to is not None for shard in cursors.shards)):
        raise InternalError(
            f"The segment {state.paths.feed_segment(first)} of the event feed is missing: restore it from a backup"
        )
    feed = FeedEnd(cursors, None, is_complete=not lost)
    if segment is not None:
        feed.add(segment)
    return feed


async def existing_entities(session: Session, head: RegistryState, cursors: FeedCursors) -> tuple[Sequence[str], bool]:
    """Returns the tables and views, live or dropped, that HEAD has and the feed does not, and whether these are all: no
    transaction that creates some is undecided. Aborts those without a valid lease."""
    found: list[str] = []
    ended: dict[str, bool | None] = {}
    for kind in ("relation\n", "tombstone\n"):
        async with aclosing(entries_in(session.state, head.index, kind)) as entries:
            async for _, entry in entries:
                transaction, entity = optional_text(entry, "transaction"), text(entry, "entity")
                if not has_pointer(entry) or cursors.get(entity) is not None:
                    continue
                if transaction is not None and transaction not in ended:
                    ended[transaction] = await _outcome(session, transaction)
                if transaction is None or ended[transaction]:
                    found.append(entity)
    return found, None not in ended.values()


async def _outcome(session: Session, transaction: str) -> bool | None:
    """Whether a transaction has committed; None if it is undecided and its lease is not over."""
    decision = await read_decision(session.state, transaction)
    if decision is not None and decision.expired and await decide(session.state, session.runtime, decision, "aborted"):
        return False
    return committed(decision)


async def _present_file(session: Session, entity: str) -> MetadataFile | None:
    """Returns the metadata file that is current; None for an entity without a pointer."""
    pointer = await session.state.pointer(entity)
    return None if pointer is None else (await resolve_for_read(session.state, pointer)).metadata


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
