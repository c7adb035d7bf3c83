"""Finds another table of the catalog that uses files at the locations of a purge (docs/design/purge.md#rule-15)."""

import logging
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Self

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.decisions import read_decision, read_outcome, resolve_for_read
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.age import CLOCK_TOLERANCE_MS
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.fields import integer, mapping, optional_text, text, texts
from arco_catalog.state.file_directories import FileDirectories
from arco_catalog.state.locations import Location
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.purge_progress import MISSING_SINCE, UNREAD
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.tombstone import PURGED, Tombstone
from arco_catalog.state.transaction import committed
from arco_catalog.tasks.execution import Execution, Sessions, TaskFailed
from arco_catalog.upkeep.purge.known_directories import ComparedFiles, KnownDirectories
from arco_catalog.upkeep.purge.missing import describe_missing, wait_for_missing, with_unread
from arco_catalog.upkeep.purge.reach import files_behind, named_by
from arco_catalog.upkeep.reconcile import ListedPointer, list_pointers
from storage_backends import StoreUnavailable

CHECKED = "asked"
"""The field of the checkpoint with a `NeighbourCheck`."""
_LOG = logging.getLogger(__name__)
MAX_ROUNDS = 20
"""Reads of a table that changes while it is read, before the attempt fails."""
READ_AT_ONCE = 16
"""Tables that are read concurrently."""


@dataclass(frozen=True, slots=True)
class NeighbourCheck:
    """The state of a round that reads the other tables, in the order of their entities: those up to `after` are read.
    `lease` began the round at `began_ms`. The first round reads all tables; a later one reads those with pointers that
    have moved since `since_ms`, the beginning of the round before. Times are the store's."""

    began_ms: int
    lease: int = 0
    since_ms: int | None = None
    after: str = ""

    @classmethod
    def parse(cls, checkpoint: JsonObject) -> Self | None:
        """Reads the round from a checkpoint; None if none was started."""
        fields = mapping(checkpoint, CHECKED)
        if not fields:
            return None
        since_ms = integer(fields, "since_ms") if "since_ms" in fields else None
        lease = integer(fields, "lease") if "lease" in fields else 0  # an earlier version did not write it
        return cls(integer(fields, "began_ms"), lease, since_ms, text(fields, "after"))

    def to_json(self) -> JsonObject:
        """The field of the checkpoint."""
        since: JsonObject = {} if self.since_ms is None else {"since_ms": self.since_ms}
        return {"began_ms": self.began_ms, "lease": self.lease, "after": self.after, **since}

    def is_enough(self, lease: int, beginning: int) -> bool:
        """Whether deletes may follow a round that ends in `lease`. It must have started in or after the lease that
        began the purge (`beginning`), and either fit into one lease or follow another round."""
        return self.lease >= beginning and (self.lease == lease or self.since_ms is not None)


@dataclass(frozen=True, slots=True)
class _Other:
    """Another table with its locations. `live` is whether a name referred to it, and not only a tombstone."""

    entity: str
    name: str
    live: bool
    locations: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} (entity {self.entity})"


async def find_sharer(
    execution: Execution, entity: str, locations: Collection[str], beginning: int | None = None
) -> str | None:
    """Searches all other tables, live and dropped, for a file inside these locations. Returns a clause that names the
    table and the file, such as "db.t (entity E) has the file F"; None if no table has one.

    The search continues from the checkpoint, and may take several leases; then a second round reads the tables whose
    pointers have moved since the first one started. `beginning` is the number of the lease that began the purge, by
    default this one. Corrupt files of a table are recorded in the checkpoint, and prevent only that table's own purge.
    Raises `NotYet` while missing files of a table may be restored, `TaskFailed` for a table without a pointer,
    `LeaseLost`, and `StoreError`."""
    folders = frozenset(location.rstrip("/") for location in locations)
    beginning = execution.number if beginning is None else beginning
    check = NeighbourCheck.parse(execution.checkpoint) or NeighbourCheck(execution.taken_ms, execution.number)
    missing: dict[str, str] = {}
    sharer: str | None = None
    while True:
        known = KnownDirectories(execution, folders)
        reading = _Round(execution, folders, check, known, missing)
        for batch in batches(await _find_unknown(execution, entity, check, known), READ_AT_ONCE):
            sharer = await reading.read(batch)
            await known.write_if_due()
            if sharer is not None:
                break
        await known.write()
        if sharer is not None:
            return sharer
        if check.is_enough(execution.number, beginning):
            # Tables with missing files that another lease found are in the checkpoint.
            noted = mapping(execution.checkpoint, UNREAD) if MISSING_SINCE in execution.checkpoint else {}
            await wait_for_missing(execution, missing or {name: str(reason) for name, reason in noted.items()}, CHECKED)
            return None
        check = NeighbourCheck(execution.taken_ms, execution.number, since_ms=check.began_ms)


class _FileMissing(Exception):
    """A live table refers to a file that does not exist."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Round:
    """One round over the other tables. The checkpoint names the last table up to which all are read."""

    def __init__(
        self,
        execution: Execution,
        inside: Collection[str],
        check: NeighbourCheck,
        known: KnownDirectories,
        missing: dict[str, str],
    ) -> None:
        self._missing = missing
        self._execution = execution
        self._inside = inside
        self._check = check
        self._known = known
        self._sharer: str | None = None

    async def read(self, others: Sequence[_Other]) -> str | None:
        """Reads these tables concurrently, which are in the order of their entities. Returns a clause that names a
        table with a file inside the locations; None if there is none."""
        left = dict.fromkeys(other.entity for other in others)

        async def read(other: _Other) -> None:
            corrupt: list[str] = []
            found: str | FileDirectories | None = None
            try:
                found = await _file_inside(self._execution, other, self._inside, corrupt)
            except _FileMissing as missing:
                self._missing[str(other)] = missing.reason
                corrupt = [missing.reason, *corrupt]
            if isinstance(found, str):
                self._sharer = f"{other} has the file {found}"
            elif found is not None and not corrupt:
                self._known.add(other.entity, found)
            del left[other.entity]
            await self._note(others, left, other, corrupt)

        await gather(*(read(other) for other in others))
        return self._sharer

    async def _note(self, others: Sequence[_Other], left: Collection[str], other: _Other, corrupt: list[str]) -> None:
        """Records in the checkpoint that a table was read, and what of it is corrupt or missing."""
        if self._sharer is not None:
            return
        before = takewhile(lambda each: each.entity not in left, others)
        after = max((each.entity for each in before), default=self._check.after)
        checkpoint = {**self._execution.checkpoint, CHECKED: replace(self._check, after=after).to_json()}
        if corrupt:
            _LOG.warning("a purge continues although %s can't be read completely: %s", other, corrupt[0])
            checkpoint = with_unread(checkpoint, {str(other): corrupt[0]})
        if str(other) in self._missing:
            checkpoint.setdefault(MISSING_SINCE, self._execution.taken_ms)
        await self._execution.progress(checkpoint, 1)


async def known_tables(execution: Sessions, entity: str, locations: Collection[str]) -> Sequence[tuple[str, str]]:
    """The name and entity of every other table. Raises `TaskFailed` for a table of another format whose location
    overlaps these locations: this catalog can't read which files it has."""
    own = [Location.of_normal(normal) for normal in locations]
    tables: list[tuple[str, str]] = []
    async with aclosing(other_relations(execution, entity)) as relations:
        async for name, entry in relations:
            if not has_pointer(entry):
                places = [Location.of_normal(normal) for normal in texts(entry, "locations")]
                if any(place.inside(each) or each.inside(place) for place in places for each in own):
                    raise TaskFailed(f"{name} is at the same location, and this catalog does not know its files")
            elif entry.get("type") == "table":
                tables.append((name, text(entry, "entity")))
    return tables


async def other_relations(execution: Sessions, entity: str) -> AsyncGenerator[tuple[str, JsonObject], None]:
    """Yields the name and the entry of every other table and view that is live, or dropped and not purged."""
    session = execution.session()
    index = (await session.state.head()).index
    for kind in ("relation\n", "tombstone\n"):
        async with aclosing(entries_in(session.state, index, kind)) as entries:
            async for key, entry in entries:
                if text(entry, "entity") == entity:
                    continue
                if kind == "tombstone\n":
                    if Tombstone(entry).state != PURGED:
                        yield dotted(texts(entry, "namespace"), text(entry, "name")), entry
                else:
                    _, namespace, name = key.split("\n")
                    yield dotted(tuple(namespace.split("\t")), name), entry


async def _find_unknown(
    execution: Sessions, entity: str, check: NeighbourCheck, known: KnownDirectories
) -> Sequence[_Other]:
    """The tables that this round must still read, in the order of their entities, which renames do not change. Tables
    that are known to have no file in the locations are left out."""
    others: dict[str, _Other] = {}
    async with aclosing(other_relations(execution, entity)) as relations:
        async for name, entry in relations:
            other = text(entry, "entity")
            if entry.get("type") == "table" and other > check.after:
                live = "state" not in entry
                others.setdefault(other, _Other(other, name, live, texts(entry, "locations")))
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


async def _file_inside(
    execution: Sessions, other: _Other, folders: Collection[str], corrupt: list[str]
) -> str | FileDirectories | None:
    """Searches the current state of a table, and the state that an undecided transaction would give it, for a file
    inside these folders. Returns that file; if there is none, the directories of the table's files; None if files of a
    dropped table are missing. Missing files are read again while the table changes, since its manifests may have been
    rewritten. Files that can't be read are added to `corrupt`. Raises `_FileMissing` if files of a live table stay
    missing, and `StoreUnavailable` if the table changes faster than it is read."""
    read: Sequence[str] | None = None
    gone: list[str] = []
    for _ in range(MAX_ROUNDS):
        pointer = await execution.session().state.pointer(other.entity)
        metadata = await _metadata_files(execution.session(), pointer)
        if metadata == read:
            break
        read, gone = metadata, [] if metadata else [execution.session().state.paths.pointer(other.entity)]
        corrupt.clear()
        places = ComparedFiles(folders, other.locations)
        async with aclosing(_files_of(execution, metadata, gone, corrupt)) as reached_files:
            async for file in reached_files:
                if places.add(file):
                    return file
        if not gone:
            return None if pointer is None else places.entry(pointer)
    else:
        raise StoreUnavailable(f"{other} changes faster than it can be read")
    if other.live and await has_name(execution.session(), other.entity):
        raise _FileMissing(describe_missing(execution.session(), other.entity, gone[0]))
    return None


async def _metadata_files(session: Session, pointer: Pointer | None) -> Sequence[str]:
    """The metadata file of the current state of a table, or of both possible states while a transaction is undecided;
    none without a pointer."""
    if pointer is None:
        return []
    if pointer.intent is not None and committed(await read_decision(session.state, pointer.intent)) is None:
        return [pointer.resolved(outcome).metadata.location for outcome in (False, True)]
    return [(await resolve_for_read(session.state, pointer)).metadata.location]


async def _files_of(
    execution: Sessions, metadata: Sequence[str], gone: list[str], corrupt: list[str]
) -> AsyncGenerator[str, None]:
    """Yields all files that these metadata files refer to, and the metadata files. Files that do not exist are added to
    `gone`, and files that can't be read to `corrupt`."""
    reached = await named_by(execution, metadata, corrupt)
    gone += reached.gone
    for each in (*reached.files, *reached.lists, *reached.statistics):
        yield each
    async with aclosing(files_behind(execution, reached, gone, corrupt)) as files:
        async for each in files:
            yield each


async def has_name(session: Session, entity: str) -> bool:
    """Whether a name refers to a table in HEAD as it is now. Missing files of a dropped table are no obstacle: engines
    and other purges delete them."""
    while True:
        head = await session.state.head()
        entry = await _entry_of(session, head, entity)
        transaction = None if entry is None else optional_text(entry, "transaction")
        outcome = entry is not None if transaction is None else await read_outcome(session.state, transaction)
        if outcome is None and (await session.state.head()).version != head.version:
            continue  # the intent was settled, and its decision collected
        return outcome is True


async def _entry_of(session: Session, head: RegistryState, entity: str) -> JsonObject | None:
    async with aclosing(entries_in(session.state, head.index, "relation\n")) as entries:
        async for _, entry in entries:
            if text(entry, "entity") == entity:
                return entry
    return None
