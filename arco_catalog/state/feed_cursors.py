"""The cursors of the event feed: for each table or view the last metadata file that has entered, up to a segment. They
follow from the segments; they save reading these again (docs/design/events.md#rule-7).

A shard of the cursors is stored after the last segment that it includes. A lost one is restored from the segments that
are left.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import field, replace
from functools import partial
from typing import Self

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.access import State
from arco_catalog.state.compare_and_swap import update_until_applied
from arco_catalog.state.feed import FIRST_NUMBER, FeedRecord, FeedSegment
from arco_catalog.state.fields import integer, mapping, objects, optional_text, parse_record, text
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.worker_threads import off_loop
from storage_backends import Applied, Found, Version
from storage_backends.lazy_dataclass import dataclass

SHARDS = 16
"""The number of objects with cursors."""
MAX_BEHIND = 10_000
"""How many records less than the newest segment a stored shard includes at most."""
MAX_SEGMENTS_BEHIND = 100
"""How many segments less than the newest one a stored shard includes at most: a new process reads so many."""
CURSOR_BYTES = 200
"""The size of a cursor in a stored shard, to decide whether a thread makes its JSON."""
CREATES = frozenset({"create-table", "create-view", "register-table", "register-view"})
"""Operations that make a new table or view."""
DROPS = frozenset({"drop-table", "drop-view"})
"""Operations that drop a table or view."""
_LAYS_NAMES = "lay-names"
"""The kind of the operation by which a transaction places the names of its new tables."""


@dataclass(frozen=True, slots=True)
class FeedCursor:
    """How much of a table or view has entered: up to `file`, None if nothing has. `is_restored` is whether a restore
    set it back there, so that later commits of its chain may have entered before. `version` is that of the pointer
    at which all of its chain had entered, empty if it is not known. `transaction` is the one that may create the table,
    until something has entered; None if the table or view exists for certain."""

    file: MetadataFile | None = None
    version: str = ""
    transaction: str | None = None
    is_restored: bool = False


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """The place of a segment of the event feed: the number of its first record, and the one after its last."""

    first: int
    next: int


@dataclass
class CursorShard:
    """A part of the cursors of the event feed, by entities, that includes the segments up to the one at `up_to`, None
    before the first. `stored` is the number of the first record that the stored shard does not include,
    `segments_behind` how many segments came since that was stored, and `is_changed` whether the cursors have changed
    since, another process was first to write the shard, or the one in the store was lost."""

    by_entity: dict[str, FeedCursor] = field(default_factory=dict)
    up_to: SegmentPlace | None = None
    stored: int = FIRST_NUMBER
    is_changed: bool = False
    segments_behind: int = 0

    @classmethod
    def parse(cls, key: str, found: Found | None) -> Self:
        """Reads a shard of the cursors of the event feed; an empty one if it does not exist. Raises `InternalError` if
        it is corrupt."""
        if found is None:
            return cls()
        document = parse_record(found.body, key)
        place, cursors = mapping(document, "up_to"), mapping(document, "cursors")
        up_to = SegmentPlace(integer(place, "first"), integer(place, "next"))
        return cls({entity: _parsed(mapping(cursors, entity)) for entity in cursors}, up_to, up_to.next)

    @property
    def next(self) -> int:
        """The number of the first record of the event feed that the cursors of this shard do not include;
        `FIRST_NUMBER` if they include none."""
        return FIRST_NUMBER if self.up_to is None else self.up_to.next

    @property
    def first(self) -> int:
        """The number of the first record of the last segment of the event feed that the cursors of this shard include;
        `FIRST_NUMBER` if they include none."""
        return FIRST_NUMBER if self.up_to is None else self.up_to.first

    @property
    def body(self) -> bytes:
        """The bytes by which the shard of cursors of the event feed is stored."""
        document: JsonObject = {
            "version": 1,
            "up_to": {"first": self.first, "next": self.next},
            "cursors": {entity: _to_json(cursor) for entity, cursor in self.by_entity.items()},
        }
        return dumps(document, sort_keys=True)

    @property
    def is_behind(self) -> bool:
        """Whether the shard must be written: it includes a segment, and its cursors have changed, or the stored shard
        is `MAX_BEHIND` records or `MAX_SEGMENTS_BEHIND` segments behind."""
        is_late = self.next - self.stored >= MAX_BEHIND or self.segments_behind >= MAX_SEGMENTS_BEHIND
        return self.up_to is not None and (self.is_changed or is_late)

    def set(self, entity: str, cursor: FeedCursor) -> None:
        """Sets the cursor of a table or view in memory, and marks the shard as changed if the cursor was another
        one."""
        if self.by_entity.get(entity) != cursor:
            self.by_entity[entity] = cursor
            self.is_changed = True

    def forget(self, entities: Collection[str]) -> None:
        """Removes the cursors of entities from memory, and marks the shard as changed if it had one."""
        for entity in entities:
            self.is_changed |= self.by_entity.pop(entity, None) is not None


@dataclass
class FeedCursors:
    """All cursors of a feed, in shards."""

    shards: list[CursorShard]

    def get(self, entity: str) -> FeedCursor | None:
        """Returns the cursor of a table or view; None if no record of the feed that is known has set it, such as its
        beginning or creation, or it was forgotten."""
        return self.shards[shard_of(entity)].by_entity.get(entity)

    def set(self, entity: str, cursor: FeedCursor) -> None:
        """Sets the cursor of a table or view, up to which file it has entered the feed, in memory; `write` stores
        it."""
        self.shards[shard_of(entity)].set(entity, cursor)

    @property
    def first(self) -> int:
        """The number of the first record of the last segment that all shards of the cursors include; `FIRST_NUMBER` if
        a shard includes none."""
        return min(shard.first for shard in self.shards)

    def add(self, segment: FeedSegment) -> None:
        """Moves the cursors of tables and views by the records of a segment of the feed, except in shards that include
        them already. All shards then include the segment. `write` stores them."""
        for record in segment.records:
            for entity, cursor in moved_by(record, self.get):
                if self.shards[shard_of(entity)].next <= record.number:
                    self.set(entity, cursor)
        for shard in self.shards:
            if shard.next < segment.next:
                shard.up_to = SegmentPlace(segment.first, segment.next)
                shard.segments_behind += 1

    @property
    def are_behind(self) -> bool:
        """Whether a shard is behind, so that `write` tries to store it."""
        return any(shard.is_behind for shard in self.shards)

    async def write(self, state: State) -> None:
        """Stores the shards that differ from the stored ones, and those of which the stored one is `MAX_BEHIND` records
        or `MAX_SEGMENTS_BEHIND` segments behind, unless the one in the store includes more, or another process
        writes it at the same time: the next call then retries. Raises `StoreError`, `CommitStateUnknown`, and
        `InternalError` if a stored shard is corrupt."""
        for number, shard in enumerate(self.shards):
            if shard.is_behind:
                await _write(state, number, shard)


async def read_shard(state: State, number: int) -> CursorShard:
    """Reads a shard of the cursors of the event feed; an empty one if it does not exist. Raises `InternalError` if it
    is corrupt, and `StoreError`."""
    return (await _stored(state, state.paths.feed_cursors(number)))[0]


async def _stored(state: State, key: str) -> tuple[CursorShard, Version | None]:
    """Reads a shard of the cursors, and its version; an empty shard and None if it does not exist. Raises as
    `read_shard` does."""
    found = await state.read(key)
    if found is None:
        return CursorShard(), None
    return await off_loop(len(found.body), partial(CursorShard.parse, key, found)), found.version


async def _write(state: State, number: int, shard: CursorShard) -> None:
    """Stores a shard of the cursors, unless the stored one includes more records, and notes in it up to where the store
    has it. Where another process writes at the same time, the shard counts as changed, and the next write stores it.
    Raises as `FeedCursors.write` does."""
    key = state.paths.feed_cursors(number)
    stored, version = await _stored(state, key)
    if stored.next <= shard.next:
        body = await off_loop(CURSOR_BYTES * len(shard.by_entity), lambda: shard.body)
        if not isinstance(await state.swap(key, body, version), Applied):
            shard.is_changed = True
            return
    shard.stored, shard.is_changed, shard.segments_behind = max(shard.next, stored.next), False, 0


async def forget_cursors(state: State, number: int, entities: Collection[str]) -> None:
    """Removes the cursors of entities that no longer exist from the shard `number`, unless it has none of them. Raises
    `StoreError`, and `InternalError` if the shard is corrupt."""

    def mutate(stored: CursorShard) -> CursorShard | None:
        stored.forget(entities)
        return stored if stored.is_changed else None

    key = state.paths.feed_cursors(number)
    await update_until_applied(state, key, partial(CursorShard.parse, key), mutate, lambda ours: ours.body)


def entities_of(record: FeedRecord) -> Iterator[str]:
    """Yields the tables and views of which a record of the feed moves the cursors: that of a record with a metadata
    file, the one that an operation creates, and the new tables of a transaction that places their names."""
    if record.kind != "operation":
        if record.entity is not None and record.file is not None:
            yield record.entity
        return
    if record.details.get("kind") in CREATES and record.entity is not None:
        yield record.entity
    if record.details.get("kind") == _LAYS_NAMES:
        for table in objects(record.details, "tables"):
            entity = optional_text(table, "entity")
            if entity is not None:
                yield entity


def dropped_by(record: FeedRecord) -> Iterator[str]:
    """Yields the tables and views that a record of the feed drops or replaces: as a rule one or none."""
    entity, replaced = record.entity, optional_text(record.details, "replaced")
    if record.kind == "operation" and entity is not None and record.details.get("kind") in DROPS:
        yield entity
    if record.kind == "operation" and replaced is not None:
        yield replaced


def moved_by(record: FeedRecord, get: Callable[[str], FeedCursor | None]) -> Iterator[tuple[str, FeedCursor]]:
    """Yields the tables and views of which a record of the feed moves the cursors, with the cursors after it, by the
    ones before it, which `get` returns. The drop of a table proves that the transaction which made it has committed:
    without that, the table had no name that could be dropped."""
    for entity in entities_of(record):
        yield entity, _after(record, get(entity))
    for entity in dropped_by(record):
        known = get(entity)
        if known is not None and known.transaction is not None:
            yield entity, replace(known, transaction=None)


def _after(record: FeedRecord, known: FeedCursor | None) -> FeedCursor:
    """Returns the cursor of a table or view after a record: at the file of the record; after an operation that creates
    it, the cursor `known` if something has entered or the table exists for certain, else an empty one, which
    names the transaction if that may yet create the table."""
    if record.kind != "operation":
        return FeedCursor(record.file, is_restored=record.kind == "restored")
    if known is not None and (known.file is not None or known.transaction is None):
        return known
    laid = record.details.get("kind") == _LAYS_NAMES
    return FeedCursor(transaction=optional_text(record.details, "transaction") if laid else None)


def shard_of(entity: str) -> int:
    """Returns the number, below `SHARDS`, of the shard of the event feed's cursors with that of an entity."""
    return hashlib.sha256(entity.encode()).digest()[0] % SHARDS


def _to_json(cursor: FeedCursor) -> JsonObject:
    """Returns the JSON of a cursor of the event feed."""
    stored: JsonObject = {"version": cursor.version}
    if cursor.file is not None:
        stored |= {"metadata_location": cursor.file.location, "metadata_ms": cursor.file.ms}
    if cursor.is_restored:
        stored["restored"] = True
    return stored if cursor.transaction is None else {**stored, "transaction": cursor.transaction}


def _parsed(stored: JsonObject) -> FeedCursor:
    """Reads a cursor of the event feed from its JSON. Raises `InternalError` without a version, for a metadata file
    without the time of it, and if one of these three has another type."""
    file = None
    if "metadata_location" in stored:
        file = MetadataFile(text(stored, "metadata_location"), integer(stored, "metadata_ms"))
    return FeedCursor(
        file, text(stored, "version"), optional_text(stored, "transaction"), stored.get("restored") is True
    )
