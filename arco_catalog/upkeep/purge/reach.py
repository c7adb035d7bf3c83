"""Finds the files that an entity refers to: from metadata files to manifest lists, manifests and data files
(docs/design/purge.md#what-is-deleted)."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, InternalError, MetadataTooLarge, NotFound, Refusal
from arco_catalog.iceberg.json import JsonObject, MalformedJson
from arco_catalog.iceberg.parsing import UnreadableMetadata
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.protocol.catalog import Session
from arco_catalog.state import receipt
from arco_catalog.state.avro import Fields, ReadRange, Unreadable, read_blocks
from arco_catalog.state.fields import objects
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.purge_chunks import ReachedFile as ReachedFile
from arco_catalog.state.refused_files import RefusedFiles
from arco_catalog.tasks.execution import Sessions, TaskFailed
from arco_catalog.upkeep.ensure_receipt import ensure_receipt
from arco_catalog.upkeep.purge.corruption import CorruptFile, Corruption
from storage_backends import Found, InvalidKey, Version

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

MANIFEST_FIELDS: Fields = {"manifest_path": None, "manifest_length": None}
ENTRY_FIELDS: Fields = {"data_file": {"file_path": None, "file_size_in_bytes": None}}
LIVE_FIELDS: Fields = {"status": None, **ENTRY_FIELDS}
REMOVED = 2
"""The status of a manifest's entry of a file that its snapshot removed."""
MAX_NAME_LENGTH = 16 << 10
"""Characters of a file's name in a manifest or a list: no store has a longer one."""
MAX_LIST_BYTES = 64 << 20
"""Memory for the manifests that one list names, all of which are read at once: a quarter of a million."""
NAME_BYTES = 128
"""Of that memory, for a manifest besides the letters of its name."""
MAX_QUOTED = 1_000
"""Characters of a location that an error quotes."""


@dataclass(slots=True)
class Reached:
    """The names of files that the metadata files of one entity contain, each once. `files` are the metadata files
    themselves: the ones that were never current, then the others, the oldest first; `gone` are metadata files that do
    not exist. `add` fills neither of the two."""

    files: list[str] = field(default_factory=list)
    lists: dict[str, None] = field(default_factory=dict)
    direct: dict[str, None] = field(default_factory=dict)
    """Manifests that an old v1 snapshot lists itself."""
    statistics: dict[str, None] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    folders: dict[str, None] = field(default_factory=dict)
    """The folders of the metadata files."""

    def add(self, document: JsonObject) -> None:
        """Adds the manifest lists, the manifests of v1 snapshots without a list, the statistics files and the metadata
        folder that a metadata document names."""
        for snapshot in objects(document, "snapshots"):
            manifest_list, manifests = snapshot.get("manifest-list"), snapshot.get("manifests")
            if isinstance(manifest_list, str):
                self.lists[manifest_list] = None
            elif isinstance(manifests, list):
                self.direct.update((each, None) for each in manifests if isinstance(each, str))
        for name in ("statistics", "partition-statistics"):
            for entry in objects(document, name):
                if isinstance(path := entry.get("statistics-path"), str):
                    self.statistics[path] = None
        self.folders[table.metadata_directory(document, table.location(document))] = None


async def reached_by(execution: Sessions, pointer: Pointer, corrupt: list[Corruption] | None = None) -> Reached:
    """Reads all metadata files of an entity: those that were current, those that only a log names, and those of commits
    that never applied. Returns the names of files in them, with missing ones in `gone`. Files that can't be read are
    added to `corrupt`; without this list they raise `TaskFailed`. With and without it, so does a chain of metadata
    files that can't be followed."""
    reached, seen, logged = Reached(), dict[str, None](), dict[str, None]()
    chain = await walked_log(execution, pointer)
    for file in chain:
        seen[file] = None
        logged.update((each, None) for each in await _add_readable(execution, file, reached, corrupt) or ())
    for folder in [*reached.folders]:
        for file in await lost_tries(execution, pointer.entity, folder, {*seen, *logged}):
            logged[file] = None
    for file in [each for each in logged if each not in seen]:
        await _add_readable(execution, file, reached, corrupt)
        chain.append(file)
    reached.files = [file for file in reversed(chain) if file not in reached.gone]
    return reached


async def reached_from(execution: Sessions, location: str, may_read: Callable[[str], bool]) -> Reached:
    """Reads a metadata file and the files of its metadata log that `may_read` allows, and returns the names of files in
    them. The other files of the log are neither read nor in the result. A file that does not exist is in `gone` of the
    result. Raises `TaskFailed` for one that can't be read."""
    reached, chain = Reached(), [location]
    logged = await _add(execution, location, reached)
    chain += [file for file in reversed(logged or ()) if may_read(file)]
    for file in chain[1:]:
        await _add(execution, file, reached)
    reached.files = [file for file in reversed([*dict.fromkeys(chain)]) if file not in reached.gone]
    return reached


async def named_by(execution: Sessions, files: Iterable[str], corrupt: list[Corruption] | None = None) -> Reached:
    """Reads these metadata files, without the ones in their metadata logs, and returns the names of files in them.
    Files that do not exist are in `gone` of the result. Files that can't be read are added to `corrupt`; without this
    list they raise `TaskFailed`."""
    reached = Reached()
    for file in files:
        if await _add_readable(execution, file, reached, corrupt) is not None:
            reached.files.append(file)
    return reached


async def walked_log(execution: Sessions, pointer: Pointer) -> list[str]:
    """Returns the locations of the metadata files that were current, the newest first, back to the creation of the
    entity or to the file that it was registered from. Ends early at a missing file that alone names the file before it.
    Raises `TaskFailed` if the record that names the file before exists and can't be read, and `StoreError`."""
    found: dict[str, None] = {}
    file: MetadataFile | None = pointer.metadata
    while file is not None and file.location not in found:
        location = file.location
        found[location] = None
        if location == pointer.registered_from:
            break
        file = await file_before(execution, pointer, file, dry=True)
    return [*found]


async def _add_readable(
    execution: Sessions, file: str, reached: Reached, corrupt: list[Corruption] | None
) -> Sequence[str] | None:
    """Reads a metadata file, adds the names in it to `reached`, and returns the files of its metadata log; None if it
    is missing, and then adds it to `reached.gone`; None also if it is corrupt, and then adds it to `corrupt`. Without
    this list it raises `CorruptFile`."""
    try:
        return await _add(execution, file, reached)
    except CorruptFile as error:
        _note_corruption(error, corrupt, file, partial(_add, execution, file, Reached()))
        return None


async def _add(execution: Sessions, file: str, reached: Reached) -> Sequence[str] | None:
    """Reads a metadata file, adds the names in it to `reached`, and returns the files of its metadata log; None if it
    is missing, and then adds it to `reached.gone`. Raises `CorruptFile` if it can't be read."""

    def add(document: JsonObject) -> Sequence[str]:
        reached.add(document)
        return table.logged_files(document)

    return await read_metadata_file(execution, file, reached.gone, add)


async def read_metadata_file(
    execution: Sessions, file: str, missing: list[str], use: Callable[[JsonObject], T]
) -> T | None:
    """Reads a metadata file, and returns the result of `use`, which is called with its document. Then removes the file
    from the cache, from which it may have been read. For a file that does not exist it returns None, and adds the file
    to `missing`. Raises `CorruptFile` if the file can't be read, and `StoreError`."""
    files = execution.session().files
    try:
        return await files.extract(file, use)
    except NotFound:
        missing.append(file)
        return None
    except (UnreadableMetadata, MetadataTooLarge, BadRequest) as error:
        raise CorruptFile(
            f"the metadata file {file} can't be read, which ends a purge or expiry of its own table, and no other: "
            f"{error.message}"
        ) from error
    except InvalidKey as error:  # no retry would change that
        raise CorruptFile(
            f"the metadata file {file[:MAX_QUOTED]} can't be read, since the store has no file of such a name, which "
            f"ends a purge or expiry of its own table, and no other: {error}"
        ) from error
    finally:
        files.forget(file)


async def file_before(execution: Sessions, pointer: Pointer, file: MetadataFile, *, dry: bool) -> MetadataFile | None:
    """Returns the metadata file that was current before `file`; None if there was none, or, with a warning in the log,
    if the only record that names it is missing. Unless `dry`, writes the committed receipt of `file` if it is missing,
    and not because of a collection. Raises `TaskFailed` if the record exists and can't be read, and `StoreError`."""
    try:
        return await ensure_receipt(execution.session(), pointer, file, ReconcileStats(), dry=dry, past_floor=True)
    except NotFound as error:
        _LOG.warning(
            "the metadata files of entity %s before %s are unknown, and a purge does not read them: %s",
            pointer.entity,
            file.location,
            error,
        )
        return None
    except (Refusal, InternalError, MalformedJson) as error:
        raise TaskFailed(
            f"the log of entity {pointer.entity} can't be followed beyond {file.location}, so the file before it is "
            f"unknown: {error} (`arco fsck` names the repair)"
        ) from error


async def lost_tries(execution: Sessions, entity: str, folder: str, known: set[str]) -> Sequence[str]:
    """Returns the metadata files in a folder that are not in `known` and have a pending receipt of the entity: the
    files of commits that never applied."""
    found: list[str] = []
    async with aclosing(execution.session().files.listed(folder)) as found_there:
        async for location, _ in found_there:
            name = location.rpartition("/")[2]
            if location in known or not table.is_metadata_file_name(name):
                continue
            session = execution.session()
            if await is_announced(session, entity, location):
                found.append(location)
    return found


async def is_announced(session: Session, entity: str, location: str) -> bool:
    """Whether an entity has a pending receipt for the metadata file at this location; false if the file can't be
    read."""
    try:
        updated_ms = await session.files.extract(location, table.last_updated_ms)
    except (Refusal, UnreadableMetadata):
        return False
    finally:
        session.files.forget(location)
    path = session.state.paths.receipt(receipt.PENDING, commit_key(entity, location), updated_ms)
    return isinstance(await session.state.store.get(path), Found)


async def manifests_in(execution: Sessions, location: str, gone: list[str] | None = None) -> Mapping[str, int]:
    """Returns the manifests that a manifest list names, each once, with their sizes in bytes. A list that does not
    exist is added to `gone`, and has no manifests. Raises `CorruptFile` for a list that can't be read, or whose names
    take more memory than any table needs."""
    found: dict[str, int] = {}  # of what the collector of cycles does not go through, half a million times
    size = 0
    async with (
        _range_reader(execution, location) as read_range,
        aclosing(records_of(read_range, location, MANIFEST_FIELDS, gone)) as blocks,
    ):
        async for records in blocks:
            for record in records:
                manifest = _text(record, "manifest_path", location)
                found[manifest] = _integer(record, "manifest_length")
                size += NAME_BYTES + len(manifest)
            if size > MAX_LIST_BYTES:
                found.clear()
                raise CorruptFile(
                    f"the manifest list {location} can't be read: the names of the manifests in it take more than "
                    f"{MAX_LIST_BYTES >> 20} MiB of memory"
                )
    return found


async def manifests_of(
    execution: Sessions,
    reached: Reached,
    gone: list[str] | None = None,
    corrupt: list[Corruption] | None = None,
) -> AsyncGenerator[ReachedFile, None]:
    """Yields all manifests in the manifest lists that were reached, and those that a v1 snapshot names by itself, each
    once. The order depends on the lists alone. Lists that do not exist are added to `gone`. Lists that can't be read
    are added to `corrupt`; without this list they raise `TaskFailed`."""
    seen: set[str] = set()
    for location in reached.lists:
        for manifest, size in (await readable_manifests(execution, location, gone, corrupt)).items():
            if manifest not in seen:
                seen.add(manifest)
                yield ReachedFile(manifest, size)
    for direct in reached.direct:
        if direct not in seen:
            seen.add(direct)
            yield ReachedFile(direct)


async def entries_of(
    execution: Sessions, manifest: str, gone: list[str] | None = None, *, live_only: bool = False
) -> AsyncGenerator[Sequence[ReachedFile], None]:
    """Yields the data files and delete files in a manifest, a block at a time, whatever the status of their entries, or
    with `live_only` those that were not removed. A manifest that does not exist is added to `gone`. Raises `TaskFailed`
    if it can't be read."""
    fields = LIVE_FIELDS if live_only else ENTRY_FIELDS
    async with (
        _range_reader(execution, manifest) as read_range,
        aclosing(records_of(read_range, manifest, fields, gone)) as blocks,
    ):
        async for records in blocks:
            files: list[ReachedFile] = []
            for record in records:
                if live_only and record.get("status") == REMOVED:
                    continue
                named = record.get("data_file")
                if not isinstance(named, dict):
                    raise CorruptFile(f"the manifest {manifest} can't be read: an entry has no data_file")
                files.append(ReachedFile(_text(named, "file_path", manifest), _integer(named, "file_size_in_bytes")))
            yield files


async def readable_manifests(
    execution: Sessions, location: str, gone: list[str] | None = None, corrupt: list[Corruption] | None = None
) -> Mapping[str, int]:
    """Returns the manifests that a manifest list names with their sizes in bytes. A list that does not exist is empty,
    and is added to `gone`. A list that can't be read is added to `corrupt`, and counts as empty; without `corrupt` it
    raises `TaskFailed`."""
    try:
        return await manifests_in(execution, location, gone)
    except CorruptFile as error:
        _note_corruption(error, corrupt, location, partial(manifests_in, execution, location))
        return {}


async def files_in(
    execution: Sessions, manifest: str, gone: list[str] | None = None, corrupt: list[Corruption] | None = None
) -> AsyncGenerator[str, None]:
    """Yields the locations of the data files and delete files in a manifest, also of entries that were removed. A
    manifest that does not exist is added to `gone`. One that can't be read is added to `corrupt`, after the files in
    front of the error were yielded; without `corrupt` it raises `TaskFailed`."""
    try:
        async with aclosing(entries_of(execution, manifest, gone)) as blocks:
            async for files in blocks:
                for each in files:
                    yield each.location
    except CorruptFile as error:
        _note_corruption(error, corrupt, manifest, partial(_read_entries, execution, manifest))


async def files_behind(execution: Sessions, reached: Reached, gone: list[str]) -> AsyncGenerator[str, None]:
    """Yields the locations of all manifests that were reached, and of the data files and delete files in them. Manifest
    lists and manifests that do not exist are added to `gone`. Raises `TaskFailed` for a file that can't be read."""
    async with aclosing(manifests_of(execution, reached, gone=gone)) as manifests:
        async for manifest in manifests:
            yield manifest.location
            async with aclosing(files_in(execution, manifest.location, gone)) as files:
                async for file in files:
                    yield file


async def _read_entries(execution: Sessions, manifest: str) -> None:
    """Reads a manifest to the end, to check that it can be read. Raises `CorruptFile` if it exists and can't be
    read."""
    async with aclosing(entries_of(execution, manifest)) as blocks:
        async for _ in blocks:
            pass


def _note_corruption(
    error: CorruptFile, corrupt: list[Corruption] | None, location: str, read: Callable[[], Awaitable[object]]
) -> None:
    """Adds the file at `location` to the list `corrupt`, with the error and the function that rereads it. Raises
    the error if there is no list."""
    if corrupt is None:
        raise error
    corrupt.append(Corruption(location, str(error), read))


@asynccontextmanager
async def _range_reader(execution: Sessions, location: str) -> AsyncIterator[ReadRange]:
    """Yields a function that reads ranges of a file. If the file proves corrupt, that is remembered in this process: a
    later read of the same version raises `CorruptFile` at once, since every purge reads the files of all other tables.
    """
    versions = dict[Version, RefusedFiles]()

    async def read_range(start: int, length: int) -> bytes:
        session = execution.session()
        found, refused = await session.files.read_range(location, start, length), session.catalog.refused_files
        if not versions and (reason := refused.reason(location, found.version)) is not None:
            raise CorruptFile(reason)
        versions[found.version] = refused
        return found.body

    try:
        yield read_range
    except CorruptFile as error:
        if len(versions) == 1:  # else it was replaced meanwhile, or is remembered
            [(version, refused)] = versions.items()
            refused.add(location, version, str(error))
        raise


async def records_of(
    read_range: ReadRange, location: str, fields: Fields, gone: list[str] | None = None
) -> AsyncGenerator[Sequence[JsonObject], None]:
    """Yields the records of an Avro file by `read_range`, a block at a time. Yields none for a file that does not
    exist, and adds it to `gone`. Raises `CorruptFile` for any other that can't be read, and for a location that no
    store of the catalog can have (docs/design/purge.md#rule-12)."""
    try:
        async with aclosing(read_blocks(read_range, fields)) as blocks:
            async for records in blocks:
                yield records
    except NotFound:
        if gone is not None:
            gone.append(location)
    except (Unreadable, BadRequest, InvalidKey) as error:
        raise CorruptFile(
            f"the manifest or manifest list {location[:MAX_QUOTED]} can't be read, so the files that it names are "
            f"unknown: {error}"
        ) from error.with_traceback(None)  # whose frames have a block, of 64 MB at most


def _text(record: JsonObject, name: str, where: str) -> str:
    """Returns a text in an entry. Raises `CorruptFile` if it is missing, no text, empty, or longer than
    `MAX_NAME_LENGTH`; `where` is the file that has the entry."""
    value = record.get(name)
    if not isinstance(value, str):
        raise CorruptFile(
            f"the manifest or manifest list {where} can't be read: an entry has no {name}, or one that is no text"
        )
    if not value:
        raise CorruptFile(f"the manifest or manifest list {where} can't be read: {name} of an entry is empty")
    if len(value) > MAX_NAME_LENGTH:
        raise CorruptFile(
            f"the manifest or manifest list {where} can't be read: the location {name} of an entry has "
            f"{len(value):,} characters, expected at most {MAX_NAME_LENGTH:,}"
        )
    return value


def _integer(record: JsonObject, name: str) -> int:
    """Returns an integer in an entry; 0 for any other value."""
    value = record.get(name)
    return value if isinstance(value, int) else 0
