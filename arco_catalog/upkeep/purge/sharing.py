"""Whether another table of the catalog leads to files at the places that are to be purged
(docs/design/purge.md#rule-15)."""

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
from arco_catalog.protocol.decisions import read_decision, resolve_for_read, transaction_committed
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.age import CLOCK_TOLERANCE_MS
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.fields import integer, mapping, optional_text, text, texts
from arco_catalog.state.file_directories import FileDirectories
from arco_catalog.state.locations import Location
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.purge_progress import MISSING_SINCE, UNREAD
from arco_catalog.state.tombstone import PURGED, Tombstone
from arco_catalog.state.transaction import committed
from arco_catalog.tasks.execution import Execution, Sessions, TaskFailed
from arco_catalog.upkeep.purge.known_directories import ComparedFiles, KnownDirectories
from arco_catalog.upkeep.purge.missing import describe_missing, wait_for_missing, with_unread
from arco_catalog.upkeep.purge.reach import files_behind, named_by
from arco_catalog.upkeep.reconcile import ListedPointer, list_pointers
from storage_backends import StoreUnavailable

ASKED = "asked"
"""What a checkpoint calls it."""
_LOG = logging.getLogger(__name__)
MAX_ROUNDS = 20
"""How often a table is read again that changed while it was read."""
READ_AT_ONCE = 16
"""Tables that are read concurrently."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How far the others were asked, in a round since `began_ms`, by the lease of this number: all whose
    entities are not behind `after`. It is about those whose pointers have moved since `since_ms`, and the first round
    about all. Times are the store's."""

    began_ms: int
    lease: int = 0
    since_ms: int | None = None
    after: str = ""

    @classmethod
    def parse(cls, checkpoint: JsonObject) -> Self | None:
        """What a checkpoint says of it; None if nobody was asked yet."""
        said = mapping(checkpoint, ASKED)
        if not said:
            return None
        since_ms = integer(said, "since_ms") if "since_ms" in said else None
        lease = integer(said, "lease") if "lease" in said else 0  # an earlier version did not write it
        return cls(integer(said, "began_ms"), lease, since_ms, text(said, "after"))

    def to_json(self) -> JsonObject:
        """The part of the checkpoint."""
        since: JsonObject = {} if self.since_ms is None else {"since_ms": self.since_ms}
        return {"began_ms": self.began_ms, "lease": self.lease, "after": self.after, **since}

    def is_enough(self, lease: int, beginning: int) -> bool:
        """Whether deletes may follow this round, when it ends in `lease`: it started after the purge did,
        maybe by another lease, and either took one lease alone or followed another round."""
        return self.lease >= beginning and (self.lease == lease or self.since_ms is not None)


@dataclass(frozen=True, slots=True)
class _Other:
    """Another table with its locations, and whether a name led to it when it was listed, not a tombstone alone."""

    entity: str
    name: str
    live: bool
    locations: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} (entity {self.entity})"


async def find_sharer(
    execution: Execution, entity: str, locations: Collection[str], beginning: int | None = None
) -> str | None:
    """Another table, live or dropped, that names a file inside these locations, and that file; None if there is none.
    Goes on from the checkpoint. A round may take several leases; then those are read again whose pointers have moved
    since it started. `beginning` is the number of the lease that started the purge, by default this one.
    What of a table is corrupt is noted in the checkpoint, and stops only that table's own purge. Raises `NotYet` while
    a table of which something is gone may be restored, `TaskFailed` for one without a pointer, `LeaseLost`, and
    `StoreError`."""
    folders = frozenset(location.rstrip("/") for location in locations)
    beginning = execution.number if beginning is None else beginning
    asked = Asked.parse(execution.checkpoint) or Asked(execution.taken_ms, execution.number)
    missing: dict[str, str] = {}
    sharer: str | None = None
    while True:
        known = KnownDirectories(execution, folders)
        reading = _Round(execution, folders, asked, known, missing)
        for batch in batches(await _find_unknown(execution, entity, asked, known), READ_AT_ONCE):
            sharer = await reading.read(batch)
            await known.write_if_due()
            if sharer is not None:
                break
        await known.write()
        if sharer is not None:
            return sharer
        if asked.is_enough(execution.number, beginning):
            # Another lease may have met tables of which files are missing: they are in the checkpoint.
            noted = mapping(execution.checkpoint, UNREAD) if MISSING_SINCE in execution.checkpoint else {}
            await wait_for_missing(execution, missing or {name: str(reason) for name, reason in noted.items()}, ASKED)
            return None
        asked = Asked(execution.taken_ms, execution.number, since_ms=asked.began_ms)


class _FileMissing(Exception):
    """A table that has a name leads to a file that is gone."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Round:
    """One round over the others. The checkpoint names the last table before which none is left to read."""

    def __init__(
        self,
        execution: Execution,
        inside: Collection[str],
        asked: Asked,
        known: KnownDirectories,
        missing: dict[str, str],
    ) -> None:
        self._missing = missing
        self._execution = execution
        self._inside = inside
        self._asked = asked
        self._known = known
        self._sharer: str | None = None

    async def read(self, others: Sequence[_Other]) -> str | None:
        """Reads these tables concurrently; they are in the order of their entities. Returns one that has a file
        inside the locations, and that file."""
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
        if self._sharer is not None:
            return
        before = takewhile(lambda each: each.entity not in left, others)
        after = max((each.entity for each in before), default=self._asked.after)
        checkpoint = {**self._execution.checkpoint, ASKED: replace(self._asked, after=after).to_json()}
        if corrupt:
            _LOG.warning("a purge goes on though %s can't be read whole: %s", other, corrupt[0])
            checkpoint = with_unread(checkpoint, {str(other): corrupt[0]})
        if str(other) in self._missing:
            checkpoint.setdefault(MISSING_SINCE, self._execution.taken_ms)
        await self._execution.progress(checkpoint, 1)


async def known_tables(execution: Sessions, entity: str, locations: Collection[str]) -> Sequence[tuple[str, str]]:
    """The name and entity of every other table. Raises `TaskFailed` for one around or inside these locations that has
    no metadata here, such as one of another format: only those who use it know which files it has."""
    own = [Location.of_normal(normal) for normal in locations]
    tables: list[tuple[str, str]] = []
    async with aclosing(other_relations(execution, entity)) as relations:
        async for name, entry in relations:
            if not has_pointer(entry):
                places = [Location.of_normal(normal) for normal in texts(entry, "locations")]
                if any(place.inside(each) or each.inside(place) for place in places for each in own):
                    raise TaskFailed(f"{name} lies there, too: which files it has is not known here")
            elif entry.get("type") == "table":
                tables.append((name, text(entry, "entity")))
    return tables


async def other_relations(execution: Sessions, entity: str) -> AsyncGenerator[tuple[str, JsonObject], None]:
    """The name and entry of all else in the catalog that is live or dropped, and not purged yet."""
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


async def _find_unknown(execution: Sessions, entity: str, asked: Asked, known: KnownDirectories) -> Sequence[_Other]:
    """The tables that this round is yet to read, in the order of entities: that of names changes with renames. A
    table that is known to have no file in the locations is left out."""
    others: dict[str, _Other] = {}
    async with aclosing(other_relations(execution, entity)) as relations:
        async for name, entry in relations:
            other = text(entry, "entity")
            if entry.get("type") == "table" and other > asked.after:
                live = "state" not in entry
                others.setdefault(other, _Other(other, name, live, texts(entry, "locations")))
    pointers: dict[str, ListedPointer] = {}
    async with aclosing(list_pointers(execution.session(), frozenset())) as pages:  # after the registry was read
        async for page in pages:
            pointers.update((each.entity, each) for each in page)
    if asked.since_ms is not None:  # as far as clocks of the store's servers agree
        since_ms = asked.since_ms - CLOCK_TOLERANCE_MS
        moved = {each.entity for each in pointers.values() if each.written_ms >= since_ms}
        others = {other: others[other] for other in others if other in moved}
    locations = {other.entity: other.locations for other in others.values()}
    unchanged = await known.find_unchanged(locations, {each.entity: each.version for each in pointers.values()})
    return [others[other] for other in sorted(others) if other not in unchanged]


async def _file_inside(
    execution: Sessions, other: _Other, folders: Collection[str], corrupt: list[str]
) -> str | FileDirectories | None:
    """A file inside these folders that the present state of a table leads to, or the one that an undecided transaction
    would give it; if there is none, the folders of its files; None if something is missing that is no obstacle.
    Where something is missing the table is read again, if it has another state by then: its manifests may have been
    rewritten. What is there and can't be read is added to `corrupt`. Raises `_FileMissing` where something stays
    missing of a table that has a name, and `StoreUnavailable` if the table changes all the time."""
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
    """The metadata file of each state that a table has, or may turn out to have; none without a pointer."""
    if pointer is None:
        return []
    if pointer.intent is not None and committed(await read_decision(session.state, pointer.intent)) is None:
        return [pointer.resolved(outcome).metadata.location for outcome in (False, True)]
    return [(await resolve_for_read(session.state, pointer)).metadata.location]


async def _files_of(
    execution: Sessions, metadata: Sequence[str], gone: list[str], corrupt: list[str]
) -> AsyncGenerator[str, None]:
    """All files that these metadata files lead to. What is not there any more is added to `gone`, what can't be read to
    `corrupt`."""
    reached = await named_by(execution, metadata, corrupt)
    gone += reached.gone
    for each in (*reached.files, *reached.lists, *reached.statistics):
        yield each
    async with aclosing(files_behind(execution, reached, gone, corrupt)) as files:
        async for each in files:
            yield each


async def has_name(session: Session, entity: str) -> bool:
    """Whether a name leads to a table now. What is gone of a dropped one leads nowhere: engines delete the files of
    what they drop, and other purges do."""
    index = (await session.state.head()).index
    async with aclosing(entries_in(session.state, index, "relation\n")) as entries:
        async for _, entry in entries:
            if text(entry, "entity") == entity:
                transaction = optional_text(entry, "transaction")
                return transaction is None or await transaction_committed(session.state, transaction)
    return False
