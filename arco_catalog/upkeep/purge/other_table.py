"""Reads the files of one table of the catalog for the purge or expiry of another (docs/design/purge.md#rule-15)."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import read_decision, read_outcome, resolve_for_read
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.fields import optional_text, text
from arco_catalog.state.file_directories import FileDirectories
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.transaction import committed
from arco_catalog.tasks.execution import Sessions
from arco_catalog.upkeep.purge.corruption import Corruption, are_unchanged, find_versions
from arco_catalog.upkeep.purge.known_directories import ComparedFiles
from arco_catalog.upkeep.purge.missing import describe_missing
from arco_catalog.upkeep.purge.table_files import PartialRead, ReadPosition, files_of
from storage_backends import StoreUnavailable

MAX_ROUNDS = 20
"""Reads of a table that changes while it is read, before the attempt fails."""
PARTIAL_AFTER_MS = 1_000
"""How often the checkpoint records how far a table is read: a worker may die at any time."""
COMPARED_IN_A_ROW = 2_000
"""Names that are compared before the event loop goes on: some ten milliseconds."""


@dataclass(frozen=True, slots=True)
class OtherTable:
    """A table of the catalog other than the one to purge, with its locations. `live` is whether it had a name, and was
    not dropped."""

    entity: str
    name: str
    live: bool
    locations: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} (entity {self.entity})"


@dataclass(frozen=True, slots=True)
class TableRead:
    """The result of reading another table: a file of it `inside` the places of the purge, or else the `directories` of
    its files to record, None if they can't be recorded, or a record has them already. `unread` is the reason if a file
    of it was not read, None also where only files of a dropped table are missing; `missing` is whether that file of a
    live table is missing."""

    inside: str | None = None
    directories: FileDirectories | None = None
    unread: str | None = None
    missing: bool = False


class Continuation:
    """What previous leases read of a table, None for nothing, and the function that saves how far it is read now."""

    def __init__(
        self, previous: PartialRead | None, record: Callable[[PartialRead], Awaitable[None]], runtime: Runtime
    ) -> None:
        self.previous = previous
        self._record = record
        self._runtime = runtime
        self._recorded_ms = runtime.boot_ms()

    async def record_if_due(self, reading: "_Reading") -> None:
        """Notes how far the table is read, in the checkpoint that the next renewal of the lease stores, if the last
        time was `PARTIAL_AFTER_MS` ago or longer and the read is one that can be continued. Raises `LeaseLost`, and
        `StoreError`."""
        now_ms = self._runtime.boot_ms()
        if now_ms - self._recorded_ms < PARTIAL_AFTER_MS:
            return
        self._recorded_ms = now_ms
        partial = reading.partial()
        if partial is not None:
            await self._record(partial)


async def read_table(
    sessions: Sessions,
    other: OtherTable,
    places: Collection[str],
    known: FileDirectories | None,
    continuation: Continuation,
) -> TableRead:
    """Searches another table for a file inside these places, in its current state and in the one that an undecided
    transaction would give it, and returns the result. `known` is a record of the table with files that could not be
    read: if these have not changed, nothing is read. `continuation` has what previous leases read of the table's state
    by then. A table with missing files is read again if it has changed, since its manifests may have been rewritten.
    Raises `TaskFailed` for a live table without a pointer, and `StoreUnavailable` if a table with missing files changes
    faster than it is read."""
    if known is not None and await are_unchanged(sessions, known.unread):
        missing = [file.location for file in known.unread if file.version is None]
        reasons = [
            f"the file {file.location} can't be read, and has not changed since the last purge"
            for file in known.unread
            if file.version is not None
        ]
        return await _described(sessions, other, reasons, missing, None)
    previous = continuation.previous
    reading = await _present(sessions, other, places) if previous is None else _continued(previous, places)
    for _ in range(MAX_ROUNDS):
        inside = await _read_files(sessions, reading, continuation)
        if inside is not None:
            return TableRead(inside=inside)
        if not reading.missing:
            break
        present = await _present(sessions, other, places)
        if present.metadata == reading.metadata:
            break
        reading = present
    else:
        raise StoreUnavailable(
            f"the task must read the files of {other}, which has changed during each of {MAX_ROUNDS} reads, in which "
            "files were missing: the next attempt, if one is left, reads it again"
        )
    directories = reading.files.entry(reading.version) if reading.is_recordable else None
    if directories is not None:
        unread = await find_versions(sessions, reading.corrupt, dict.fromkeys(reading.gone))
        directories = None if unread is None else replace(directories, unread=unread)
    return await _described(sessions, other, reading.reasons, reading.missing, directories)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A read of the state that a table had at a version of its pointer, None without a pointer. `gone` and `corrupt`
    are the files that this lease found missing or corrupt; `previous` is what previous leases read."""

    metadata: tuple[str, ...]
    version: str | None
    files: ComparedFiles
    position: ReadPosition
    gone: list[str]
    corrupt: list[Corruption]
    previous: PartialRead | None = None

    @property
    def missing(self) -> Sequence[str]:
        """The files that were missing: all that this lease has met, and the first one of previous leases."""
        return [self.previous.gone, *self.gone] if self.previous is not None and self.previous.gone else self.gone

    @property
    def reasons(self) -> Sequence[str]:
        """The reasons why files can't be read: all of this lease, and the first one of previous leases."""
        here = [each.reason for each in self.corrupt]
        return [self.previous.corrupt, *here] if self.previous is not None and self.previous.corrupt else here

    @property
    def is_recordable(self) -> bool:
        """Whether every file that could not be read is known by name, as a record needs it: not if previous leases met
        such files, since a partial read has only the first missing one, and the reason for the first corrupt one."""
        return self.previous is None or not (self.previous.gone or self.previous.corrupt)

    def partial(self) -> PartialRead | None:
        """Returns the read up to the present position, for a later lease to continue; None if no manifest is read yet,
        if the table has no pointer, or if the directories are in too many buckets for a record."""
        position = self.position
        if position == ReadPosition():
            return None
        directories = self.files.entry(self.version)
        if directories is None:
            return None
        gone, corrupt = (next(iter(each), "") for each in (self.missing, self.reasons))
        return PartialRead(self.metadata, position.lists, position.manifests, directories, gone, corrupt)


async def _present(sessions: Sessions, other: OtherTable, places: Collection[str]) -> _Reading:
    """Returns a new read of a table in its current state, with no files read. If the table has no pointer, the key of
    the pointer is in `gone` of the result."""
    session = sessions.session()
    pointer = await session.state.pointer(other.entity)
    metadata = await metadata_files(sessions.session(), pointer)
    gone = [] if metadata else [session.state.paths.pointer(other.entity)]
    version = None if pointer is None else pointer.version
    return _Reading(tuple(metadata), version, ComparedFiles(places, other.locations), ReadPosition(), gone, [])


def _continued(partial: PartialRead, places: Collection[str]) -> _Reading:
    """Returns a read that continues the partial read of a previous lease, in the state of the table by then."""
    files = ComparedFiles(places, partial.directories.locations)
    files.add_directories(partial.directories)
    position = ReadPosition(partial.lists, partial.manifests)
    return _Reading(partial.metadata, partial.directories.version, files, position, [], [], partial)


async def _read_files(sessions: Sessions, reading: _Reading, continuation: Continuation) -> str | None:
    """Reads the metadata files of a table, and the manifest lists and manifests that are not read yet, and from time to
    time gives the progress to `continuation`, for the next renewal of the lease to store. Returns the first location,
    of such a file or of one that it names, that is inside the places of the purge. Returns None if all files that could
    be read lead to no such location; the others are then in `reading`."""
    found, compared = files_of(sessions, reading.metadata, reading.gone, reading.corrupt, reading.position), 0
    async with aclosing(found) as files:
        async for file in files:
            if reading.files.add(file):
                return file
            compared += 1
            if compared % COMPARED_IN_A_ROW == 0:
                await asyncio.sleep(0)  # noqa: TID251 - no time passes: metadata may name very many files at once
            await continuation.record_if_due(reading)
    return None


async def _described(
    sessions: Sessions,
    other: OtherTable,
    reasons: Sequence[str],
    missing: Sequence[str],
    directories: FileDirectories | None,
) -> TableRead:
    """Returns the result for a table without a file inside the places: the directories to record, and the first of
    `reasons` why a file of it can't be read. If a file is `missing` and the table still has a name, that is the reason
    instead; if that file is the pointer, it raises `TaskFailed`. Missing files of a dropped table, also the pointer,
    are no obstacle, since engines and other purges delete them."""
    if missing and other.live and await has_name(sessions.session(), other.entity):
        reason = describe_missing(sessions.session(), other.entity, missing[0])
        return TableRead(None, directories, reason, missing=True)
    return TableRead(None, directories, next(iter(reasons), None))


async def metadata_files(session: Session, pointer: Pointer | None) -> Sequence[str]:
    """Returns the location of a table's current metadata file; while a transaction on its pointer is undecided, those
    before and after it. Empty without a pointer."""
    if pointer is None:
        return []
    if pointer.intent is not None and committed(await read_decision(session.state, pointer.intent)) is None:
        return [pointer.resolved(outcome).metadata.location for outcome in (False, True)]
    return [(await resolve_for_read(session.state, pointer)).metadata.location]


async def has_name(session: Session, entity: str) -> bool:
    """Whether a table with this entity exists under a name in HEAD as it is now; false for a dropped one, and for a
    name that waits for a transaction that has not committed. Missing files of a dropped table are no obstacle: engines
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
    """Returns the registry's entry of the live table or view with this entity; None if it has none, as for a dropped
    one. It goes through the names in HEAD until it reaches one."""
    async with aclosing(entries_in(session.state, head.index, "relation\n")) as entries:
        async for _, entry in entries:
            if text(entry, "entity") == entity:
                return entry
    return None
