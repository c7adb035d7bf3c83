"""Reads the files of one table of the catalog for the purge of another (docs/design/purge.md#rule-15)."""

from collections.abc import AsyncGenerator, Collection, Sequence
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
from arco_catalog.state.transaction import committed
from arco_catalog.tasks.execution import Sessions
from arco_catalog.upkeep.purge.corruption import Corruption, are_unchanged, find_versions
from arco_catalog.upkeep.purge.known_directories import ComparedFiles
from arco_catalog.upkeep.purge.missing import describe_missing
from arco_catalog.upkeep.purge.reach import files_behind, named_by
from storage_backends import StoreUnavailable

MAX_ROUNDS = 20
"""Reads of a table that changes while it is read, before the attempt fails."""


@dataclass(frozen=True, slots=True)
class OtherTable:
    """Another table, with its locations. `live` is whether a name referred to it, and not only a tombstone."""

    entity: str
    name: str
    live: bool
    locations: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} (entity {self.entity})"


@dataclass(frozen=True, slots=True)
class TableRead:
    """The result of reading a table: a file of it `inside` the places, or else the `directories` to record. `unread` is
    why a file of it was not read, and `missing` whether that is a missing file of a live table."""

    inside: str | None = None
    directories: FileDirectories | None = None
    unread: str | None = None
    missing: bool = False


async def read_table(
    sessions: Sessions, other: OtherTable, places: Collection[str], known: FileDirectories | None
) -> TableRead:
    """Searches the current state of a table, and the state that an undecided transaction would give it, for a file
    inside these places, and returns the result. `known` is the record of a table with unread files, which has not
    changed since: if these files have not changed either, nothing is read. Missing files are read again while the table
    changes, since manifests may have been rewritten. Raises `TaskFailed` for a table without a pointer, and
    `StoreUnavailable` if the table changes faster than it is read."""
    if known is not None and await are_unchanged(sessions, known.unread):
        missing = [file.location for file in known.unread if file.version is None]
        reasons = [
            f"the file {file.location} can't be read, and has not changed since the last purge"
            for file in known.unread
            if file.version is not None
        ]
        return await _described(sessions, other, reasons, missing, None)
    read: Sequence[str] | None = None
    gone: list[str] = []
    corrupt: list[Corruption] = []
    for _ in range(MAX_ROUNDS):
        pointer = await sessions.session().state.pointer(other.entity)
        metadata = await _metadata_files(sessions.session(), pointer)
        if metadata == read:
            break
        read, gone = metadata, [] if metadata else [sessions.session().state.paths.pointer(other.entity)]
        corrupt = []
        files = ComparedFiles(places, other.locations)
        async with aclosing(files_of(sessions, metadata, gone, corrupt)) as reached_files:
            async for file in reached_files:
                if files.add(file):
                    return TableRead(inside=file)
        if not gone:
            break
    else:
        raise StoreUnavailable(f"{other} changes faster than it can be read")
    directories = None if pointer is None else files.entry(pointer)
    if directories is not None:
        unread = await find_versions(sessions, corrupt, dict.fromkeys(gone))
        directories = None if unread is None else replace(directories, unread=unread)
    return await _described(sessions, other, [each.reason for each in corrupt], gone, directories)


async def _described(
    sessions: Sessions,
    other: OtherTable,
    reasons: Sequence[str],
    missing: Sequence[str],
    directories: FileDirectories | None,
) -> TableRead:
    """Returns the result for a table without a file inside the places, with `reasons` why files can't be read, and
    `missing` files. Those of a dropped table are no obstacle: engines and other purges delete them."""
    if missing and other.live and await has_name(sessions.session(), other.entity):
        reason = describe_missing(sessions.session(), other.entity, missing[0])
        return TableRead(None, directories, reason, missing=True)
    return TableRead(None, directories, next(iter(reasons), None))


async def _metadata_files(session: Session, pointer: Pointer | None) -> Sequence[str]:
    """Returns the metadata file of the current state of a table, or of both possible states while a transaction is
    undecided; none without a pointer."""
    if pointer is None:
        return []
    if pointer.intent is not None and committed(await read_decision(session.state, pointer.intent)) is None:
        return [pointer.resolved(outcome).metadata.location for outcome in (False, True)]
    return [(await resolve_for_read(session.state, pointer)).metadata.location]


async def files_of(
    sessions: Sessions, metadata: Sequence[str], gone: list[str], corrupt: list[Corruption]
) -> AsyncGenerator[str, None]:
    """Yields all files that these metadata files refer to, and the metadata files. Files that do not exist are added to
    `gone`, and files that can't be read to `corrupt`."""
    reached = await named_by(sessions, metadata, corrupt)
    gone += reached.gone
    for each in (*reached.files, *reached.lists, *reached.statistics):
        yield each
    async with aclosing(files_behind(sessions, reached, gone, corrupt)) as files:
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
