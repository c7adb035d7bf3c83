"""The end of the event feed, as a sequencer remembers it or reads it (docs/design/events.md#rule-7)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.operations.feed import read_segment
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.feed import FIRST_NUMBER, FeedSegment
from arco_catalog.state.feed_cursors import SHARDS, FeedCursors, entities_of, read_shard
from arco_catalog.state.feed_floor import read_feed_floor
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.upkeep.feed.commit_chain import Search


class FeedSetBack(Exception):
    """A restore beside this process has removed the last segment that it knows: it must read the feed anew."""


@dataclass
class FeedEnd:
    """What a sequencer remembers of a feed: the cursors, which include all segments up to the last one. `rest` has, by
    entities, the files of long chains that enter next."""

    cursors: FeedCursors
    last: FeedSegment | None
    rest: dict[str, Sequence[MetadataFile]] = field(default_factory=dict)
    searches: dict[str, Search] = field(default_factory=dict)
    """Searches that have paused, of entities of which nothing has entered since."""
    seen: str = ""
    """The id of the last segment that this step has created, or has found in the store."""
    is_complete: bool = True
    """Whether the cursors follow from all segments: no shard was lost after its segments were deleted."""

    def add(self, segment: FeedSegment) -> None:
        """Takes in the next segment of the feed: moves the cursors, makes it the last one, and forgets the searches of
        entities that have a record in it."""
        self.cursors.add(segment)
        self.last = segment
        if self.searches:
            self.forget_searches({entity for record in segment.records for entity in entities_of(record)})

    @property
    def kept(self) -> int:
        """The number of files that are remembered because they have not entered."""
        return sum(map(len, self.rest.values())) + sum(search.kept for search in self.searches.values())

    def keeps(self, entity: str) -> bool:
        """Whether files of an entity are remembered because they have not entered."""
        return entity in self.rest or entity in self.searches

    def forget_searches(self, entered: Collection[str]) -> None:
        """Forgets the paused searches of these entities, of which something has entered the feed since."""
        for entity in entered:
            self.searches.pop(entity, None)

    def forget_others(self, moved: Collection[str]) -> None:
        """Forgets the files that were to enter next, and the paused searches, of all but the entities in `moved`: the
        pointers of the others are gone, or did not move."""
        kept = {*moved}
        self.rest = {entity: files for entity, files in self.rest.items() if entity in kept}
        self.searches = {entity: search for entity, search in self.searches.items() if entity in kept}

    async def write_cursors(self, session: Session) -> None:
        """Stores the shards of the cursors of which the stored ones are behind. Does nothing while a lost shard is not
        complete yet: the next process must find it lost, too. Raises `FeedSetBack`, and as `FeedCursors.write` does."""
        if self.is_complete and self.cursors.are_behind:
            await self.check_stored(session)
            await self.cursors.write(session.state)

    async def check_stored(self, session: Session) -> None:
        """Returns if the last segment is stored; does not read it if this step has created or read it. Raises
        `FeedSetBack` if a restore has removed it: what follows it would follow nothing."""
        if self.last is None or self.last.id == self.seen:
            return
        there = await read_segment(session.state, self.last.first)
        if there is None or there.id != self.last.id:
            raise FeedSetBack
        self.seen = self.last.id

    @property
    def has_begun(self) -> bool:
        """Whether each table and view that existed when the feed was started has a beginning in the feed. False once
        the registry's history has a gap, until the tables and views without a cursor have a beginning after that."""
        return self.last is not None and self.last.begun

    @property
    def next(self) -> int:
        """The number of the next record that enters the feed; the first number if the feed has no segment."""
        return FIRST_NUMBER if self.last is None else self.last.next

    @property
    def tail(self) -> int:
        """The number of the first record of the last segment; the first number that a feed has if there is no
        segment."""
        return FIRST_NUMBER if self.last is None else self.last.first


async def read_end(session: Session) -> FeedEnd:
    """Reads the cursors of the event feed, and the last segment that all of them include; later segments are not read.
    Shards that were lost after their segments were deleted are marked, and the result is then not complete. For a feed
    that does not exist the result has no segment. Raises `InternalError` if that segment is missing or the feed is
    corrupt, and `StoreError`."""
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
            f"The segment {state.paths.feed_segment(first)} of the event feed is missing, so no new events enter the "
            "feed: restore it from an older version of the object, or from a backup"
        )
    feed = FeedEnd(cursors, None, is_complete=not lost)
    if segment is not None:
        feed.add(segment)
    return feed
