"""Searches for another table of the catalog that uses files at the locations of a purge or expiry
(docs/design/purge.md#rule-15)."""

import logging
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.concurrency import for_each
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.age import CLOCK_TOLERANCE_MS
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.fields import integer, mapping, text, texts
from arco_catalog.state.index import name_in
from arco_catalog.state.locations import Location
from arco_catalog.state.purge_progress import MISSING_SINCE, UNREAD
from arco_catalog.state.tombstone import PURGED, Tombstone
from arco_catalog.tasks.execution import Execution, Sessions, TaskFailed
from arco_catalog.upkeep.purge.known_directories import KnownDirectories
from arco_catalog.upkeep.purge.missing import wait_for_missing, with_unread
from arco_catalog.upkeep.purge.other_table import Continuation, OtherTable, TableRead, read_table
from arco_catalog.upkeep.purge.table_files import PartialRead
from arco_catalog.upkeep.reconcile import ListedPointer, list_pointers

CHECKED = "asked"
"""The field of the checkpoint with a `NeighbourCheck`."""
_LOG = logging.getLogger(__name__)
READ_AT_ONCE = 16
"""Tables that are read concurrently."""


@dataclass(frozen=True, slots=True)
class NeighbourCheck:
    """The state of a purge's round that reads the other tables, in the order of their entities: the ones up to the
    entity `after` are read. The round began in the lease with the number `lease` (0 in old checkpoints), which was
    taken at `began_ms`. The first round, without `since_ms`, reads all tables; a later one reads tables with pointers
    that have moved since `since_ms`, the `began_ms` of the round before. Times are by the store's clock. `partial` has
    the tables of which a part is read, by entity."""

    began_ms: int
    lease: int = 0
    since_ms: int | None = None
    after: str = ""
    partial: Mapping[str, PartialRead] = field(default_factory=dict)

    @classmethod
    def parse(cls, checkpoint: JsonObject) -> Self | None:
        """Reads the state of the round from a task's checkpoint; None if no round was started."""
        fields = mapping(checkpoint, CHECKED)
        if not fields:
            return None
        since_ms = integer(fields, "since_ms") if "since_ms" in fields else None
        lease = integer(fields, "lease") if "lease" in fields else 0  # an earlier version did not write it
        stored = mapping(fields, "partial")
        read = {entity: PartialRead.parse(mapping(stored, entity)) for entity in stored}
        return cls(integer(fields, "began_ms"), lease, since_ms, text(fields, "after"), read)

    def to_json(self) -> JsonObject:
        """Returns the state of the round as the checkpoint stores it."""
        since: JsonObject = {} if self.since_ms is None else {"since_ms": self.since_ms}
        read: JsonObject = {entity: each.to_json() for entity, each in self.partial.items()}
        shown: JsonObject = {"partial": read} if read else {}
        return {"began_ms": self.began_ms, "lease": self.lease, "after": self.after, **since, **shown}

    def is_enough(self, lease: int, beginning: int) -> bool:
        """Whether files may be deleted after this round, which ends in the lease with the number `lease`. The round
        must have started in or after the lease that began the purge (`beginning`), and either have started in this same
        lease or follow another round."""
        return self.lease >= beginning and (self.lease == lease or self.since_ms is not None)


async def find_sharer(
    execution: Execution, entity: str, locations: Collection[str], beginning: int | None = None
) -> str | None:
    """Searches all other tables, live and dropped, for a file inside these locations. Returns a clause that names the
    table and the file, such as "db.t (entity E) has the file F"; None if no table has one.

    The search continues from the checkpoint, and may take several leases; then a second round reads the tables whose
    pointers have moved since the first one started. `beginning` is the number of the lease that began the purge, by
    default this one. Corrupt files of a table are recorded in the checkpoint, and prevent only that table's own purge.
    Raises `NotYet` while missing files of a table may be restored, `TaskFailed` for a live table without a
    pointer, `LeaseLost`, and `StoreError`."""
    folders = frozenset(location.rstrip("/") for location in locations)
    beginning = execution.number if beginning is None else beginning
    check = NeighbourCheck.parse(execution.checkpoint) or NeighbourCheck(execution.taken_ms, execution.number)
    missing: dict[str, str] = {}
    while True:
        known = KnownDirectories(execution, folders)
        others = await _find_unknown(execution, entity, check, known)
        sharer = await _Round(execution, folders, check, known, missing, others).read()
        await known.write()
        if sharer is not None:
            return sharer
        if check.is_enough(execution.number, beginning):
            # Tables with missing files that another lease found are in the checkpoint.
            noted = mapping(execution.checkpoint, UNREAD) if MISSING_SINCE in execution.checkpoint else {}
            await wait_for_missing(execution, missing or {name: str(reason) for name, reason in noted.items()}, CHECKED)
            return None
        check = NeighbourCheck(execution.taken_ms, execution.number, since_ms=check.began_ms)


class _FileInside(Exception):
    """A table has a file inside the locations of the purge, so the other tables need not be read."""


class _Round:
    """One round of a purge that reads the other tables, in the order of their entities. The checkpoint has the last
    table up to which all are read."""

    def __init__(
        self,
        execution: Execution,
        inside: Collection[str],
        check: NeighbourCheck,
        known: KnownDirectories,
        missing: dict[str, str],
        others: Sequence[OtherTable],
    ) -> None:
        self._missing = missing
        self._execution = execution
        self._inside = inside
        self._check = check
        self._known = known
        self._others = others
        self._partial = dict(check.partial)
        self._read: set[str] = set()
        self._number_done = 0
        """The number of tables at the beginning of `others` that are all read."""

    async def read(self) -> str | None:
        """Reads the other tables, several concurrently. Returns a clause that names a table with a file inside the
        locations, and the file; None if no such file was found. Which tables could not be read completely is in the
        checkpoint."""
        try:
            await for_each(self._others, READ_AT_ONCE, self._read_one)
        except _FileInside as found:
            return str(found)
        return None

    async def _read_one(self, other: OtherTable) -> None:
        """Reads the files of another table, and notes in the checkpoint, which the next renewal of the lease stores,
        that it was read. Raises `_FileInside` if a file is in the purged table's locations."""
        record = partial(self._record, other.entity)
        continuation = Continuation(self._partial.get(other.entity), record, self._execution.runtime)
        known = self._known.incomplete(other.entity)
        found = await read_table(self._execution, other, self._inside, known, continuation)
        if found.inside is not None:
            raise _FileInside(f"{other} has the file {found.inside}")
        if found.directories is not None:
            self._known.add(other.entity, found.directories)
        if found.missing and found.unread is not None:
            self._missing[str(other)] = found.unread
        await self._note(other, found)
        await self._known.write_if_due()

    async def _note(self, other: OtherTable, found: TableRead) -> None:
        """Notes in the checkpoint, which the next renewal of the lease stores, that a table was read, and, if it could
        not be read completely, also why, which it logs. For a missing file, also notes since when files are missing."""
        self._read.add(other.entity)
        self._partial.pop(other.entity, None)
        while self._number_done < len(self._others) and self._others[self._number_done].entity in self._read:
            self._read.remove(self._others[self._number_done].entity)
            self._number_done += 1
        checkpoint = self._checkpoint()
        if found.unread is not None:
            _LOG.warning(
                "a purge or expiry can't read all of %s, and goes on to other tables; for a missing file it may wait "
                "after that: %s",
                other,
                found.unread,
            )
            checkpoint = with_unread(checkpoint, {str(other): found.unread})
        if found.missing:
            checkpoint.setdefault(MISSING_SINCE, self._execution.taken_ms)
        await self._execution.progress(checkpoint, 1)

    async def _record(self, entity: str, read: PartialRead) -> None:
        """Notes in the checkpoint, which the next renewal of the lease stores, how much of a table was read."""
        self._partial[entity] = read
        await self._execution.progress(self._checkpoint(), 0)

    def _checkpoint(self) -> JsonObject:
        """Returns the task's checkpoint, with the tables that are read."""
        after = self._others[self._number_done - 1].entity if self._number_done else self._check.after
        check = replace(self._check, after=after, partial=self._partial)
        return {**self._execution.checkpoint, CHECKED: check.to_json()}


async def known_tables(execution: Sessions, entity: str, locations: Collection[str]) -> Sequence[tuple[str, str]]:
    """Returns the name and entity of every Iceberg table of the catalog that has a pointer, live or dropped and not
    purged, except the one with this `entity`; no views. Raises `TaskFailed` for an entity without a pointer, such as a
    table of another format or one that follows another catalog's, with a location that overlaps these locations: this
    catalog does not know which files it has."""
    own = [Location.of_normal(normal) for normal in locations]
    tables: list[tuple[str, str]] = []
    async with aclosing(other_relations(execution, entity)) as relations:
        async for name, entry in relations:
            if not has_pointer(entry):
                places = [Location.of_normal(normal) for normal in texts(entry, "locations")]
                if any(place.inside(each) or each.inside(place) for place in places for each in own):
                    raise TaskFailed(
                        f"{name}, a table of another format or another catalog's, live or dropped, is at a location "
                        "that overlaps this table's, and this catalog does not know its files, so no more are deleted"
                    )
            elif entry.get("type") == "table":
                tables.append((name, text(entry, "entity")))
    return tables


async def other_relations(execution: Sessions, entity: str) -> AsyncGenerator[tuple[str, JsonObject], None]:
    """Yields the dotted name and the entry of every relation in HEAD, also of generic tables, except that of this
    `entity`: first live ones, then dropped ones that are not purged."""
    session = execution.session()
    index = (await session.state.head()).index
    for kind in ("relation\n", "tombstone\n"):
        async with aclosing(entries_in(session.state, index, kind)) as entries:
            async for key, entry in entries:
                if text(entry, "entity") == entity:
                    continue
                if kind == "relation\n" or Tombstone(entry).state != PURGED:
                    yield dotted(*name_in(key)), entry


async def _find_unknown(
    execution: Sessions, entity: str, check: NeighbourCheck, known: KnownDirectories
) -> Sequence[OtherTable]:
    """Returns the tables that this round must still read, in the order of their entities, which renames do not change.
    Tables without a pointer by their kind (`has_pointer`), and tables that are known to have no file in the locations,
    are left out; a later round also leaves out tables with pointers that have not moved since the round before."""
    others: dict[str, OtherTable] = {}
    async with aclosing(other_relations(execution, entity)) as relations:
        async for name, entry in relations:
            other = text(entry, "entity")
            if entry.get("type") == "table" and has_pointer(entry) and other > check.after:
                live = "state" not in entry
                others.setdefault(other, OtherTable(other, name, live, texts(entry, "locations")))
    pointers: dict[str, ListedPointer] = {}
    async with aclosing(list_pointers(execution.session(), frozenset())) as pages:  # after the registry was read
        async for page in pages:
            pointers.update((each.entity, each) for each in page)
    if check.since_ms is not None:  # with a tolerance, since the clocks of the store's servers differ
        since_ms = check.since_ms - CLOCK_TOLERANCE_MS
        moved = {each.entity for each in pointers.values() if each.written_ms >= since_ms}
        others = {other: others[other] for other in others if other in moved}
    locations = {other.entity: other.locations for other in others.values()}
    unchanged = await known.find_unchanged(locations, {each.entity: each.version for each in pointers.values()})
    return [others[other] for other in sorted(others) if other not in unchanged]
