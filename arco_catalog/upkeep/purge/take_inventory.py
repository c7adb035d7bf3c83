"""Takes the inventory of a table to purge by one walk over its metadata, which later leases continue
(docs/design/purge.md#rule-29)."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial

from arco_catalog.iceberg import table
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.purge_chunks import Chunk, Position, Stage, links_to, read_chunk, write_chunk
from arco_catalog.state.purge_progress import Phase, Progress
from arco_catalog.state.worker_threads import off_loop
from arco_catalog.tasks.execution import Execution, TaskFailed
from arco_catalog.upkeep.purge.inventory import StoredInventory
from arco_catalog.upkeep.purge.reach import (
    NAME_BYTES,
    Reached,
    ReachedFile,
    file_before,
    is_announced,
    manifests_in,
    read_metadata_file,
)

AT_ONCE = 8
"""Files that are read concurrently."""
MAX_NAMES = 1_000
"""Names in a chunk."""
FIRST_WRITE_MS = 1_000
MAX_WRITE_MS = 16_000
"""The first and the longest time after which a chunk is written, however small it is; the time doubles with every
chunk. A worker may be killed at any time."""
MAX_COMPARED = 8
"""Manifest lists whose manifests are left out of the next list: consecutive snapshots share almost all manifests."""


async def take_inventory(execution: Execution, pointer: Pointer, *, dry: bool) -> StoredInventory:
    """Takes the inventory of the table with this pointer, which no commit can move any more, and returns it. Continues
    the inventory that a previous lease began. Unless `dry`, also writes the missing receipts of metadata files. Raises
    `TaskFailed` for files that can't be read, and for a table whose files must not be deleted; `LeaseLost`, and
    `StoreError`."""
    last = await _last_chunk(execution, pointer)
    if last is None:
        fresh = Progress.parse(execution.checkpoint).without_inventory()
        await execution.progress({**execution.checkpoint, **fresh.to_json()}, 0)
        last = Chunk(pointer.metadata.location, Position(next=pointer.metadata))
    walk = InventoryWalk(execution, pointer, last, dry=dry)
    if last.position.stage is not Stage.DONE:
        await walk.run()
    return StoredInventory(execution, walk.last)


async def _last_chunk(execution: Execution, pointer: Pointer) -> Chunk | None:
    """Returns the last stored chunk of the inventory, which the checkpoint names; None if it names none, if that chunk
    does not exist or is corrupt, or if its inventory began at another metadata file than the current one."""
    last = Progress.parse(execution.checkpoint).inventory
    chunk = await read_chunk(execution.session().state, execution.task.id, last) if last else None
    return chunk if chunk is not None and chunk.current == pointer.metadata.location else None


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of files in one metadata file, the files of its metadata log, and whether the table allows deletes of
    its files."""

    reached: Reached
    logged: Sequence[str]
    allows_deletes: bool

    @classmethod
    def of(cls, document: JsonObject) -> "_Names":
        """Returns the names of files in a metadata document, and whether the table allows deletes."""
        reached = Reached()
        reached.add(document)
        return cls(reached, table.logged_files(document), table.allows_deletes(document))


@dataclass(slots=True)
class _Buffer:
    """Names of files that are not in a chunk yet."""

    files: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    statistics: list[str] = field(default_factory=list)
    manifests: list[ReachedFile] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.files) + len(self.lists) + len(self.statistics) + len(self.manifests) + len(self.ignored)

    def add(self, reached: Reached, newer: Reached) -> None:
        """Adds the names in one metadata file that the next newer one does not have."""
        self.lists += [each for each in reached.lists if each not in newer.lists]
        self.manifests += [ReachedFile(each) for each in reached.direct if each not in newer.direct]
        self.statistics += [each for each in reached.statistics if each not in newer.statistics]

    def chunks(self, empty: Chunk) -> list[Chunk]:
        """Returns all buffered names, except the missing ones, as chunks without ids: one chunk if it takes them all,
        also if there are none. `empty` is a chunk without names to which they are added."""
        made = [replace(empty, files=tuple(each)) for each in batches(self.files, MAX_NAMES)]
        made += [replace(empty, lists=tuple(each)) for each in batches(self.lists, MAX_NAMES)]
        made += [replace(empty, statistics=tuple(each)) for each in batches(self.statistics, MAX_NAMES)]
        made += [replace(empty, manifests=tuple(each)) for each in batches(self.manifests, MAX_NAMES)]
        made += [replace(empty, ignored=tuple(each)) for each in batches(self.ignored, MAX_NAMES)]
        return made if len(self) > MAX_NAMES else [self._together(empty)]

    def _together(self, empty: Chunk) -> Chunk:
        """Returns one chunk with all names in the buffer, except the missing ones."""
        return replace(
            empty,
            files=tuple(self.files),
            lists=tuple(self.lists),
            statistics=tuple(self.statistics),
            manifests=tuple(self.manifests),
            ignored=tuple(self.ignored),
        )


class InventoryWalk:
    """Takes the rest of the inventory of a purge, from the `last` chunk on."""

    def __init__(self, execution: Execution, pointer: Pointer, last: Chunk, *, dry: bool) -> None:
        self._execution = execution
        self._pointer = pointer
        self._dry = dry
        self.last = last
        self._position = last.position
        self._buffer = _Buffer()
        self._newer = Reached()
        self._known: set[int] = set()
        self._seen: dict[int, int] = {}
        self._written_ms = execution.runtime.boot_ms()
        self._write_after_ms = FIRST_WRITE_MS

    async def run(self) -> None:
        """Takes the stages of the inventory that are still to do, and stores the names in chunks. Raises `TaskFailed`
        for files that can't be read and for a table whose files must not be deleted, `LeaseLost`, and `StoreError`."""
        if self._position.stage is not Stage.MANIFESTS:
            await self._remember()
        if self._position.stage is Stage.LOG:
            await self._walk_log()
        if self._position.stage is Stage.LOGGED:
            await self._read_logged()
        if self._position.stage is Stage.TRIES:
            await self._find_tries()
        if self._position.stage is Stage.MANIFESTS:
            await self._read_manifests()

    async def _remember(self) -> None:
        """Reads from the chunks which metadata files were read, and rereads the last one of these files: it has
        almost all names of the next one."""
        if self.last.id:
            async with aclosing(StoredInventory(self._execution, self.last).chunks()) as chunks:
                async for chunk in chunks:
                    self._known.update(_digest(file) for file in (*chunk.files, *chunk.ignored))
        if self._position.newer:
            names = await read_metadata_file(self._execution, self._position.newer, [], _Names.of)
            self._newer = self._newer if names is None else names.reached

    async def _walk_log(self) -> None:
        """Adds the metadata files that were current, and the files that they name, from newer to older, from the
        position on, and saves the position when it is due. Unless the walk is `dry`, writes missing receipts of these
        files."""
        while (following := self._position.next) is not None:
            files: list[MetadataFile] = []
            file: MetadataFile | None = following
            while file is not None and len(files) < AT_ONCE and self._is_new(file.location):
                files.append(file)
                if file.location == self._pointer.registered_from:
                    file = None
                else:
                    file = await file_before(self._execution, self._pointer, file, dry=self._dry)
            if len(files) < AT_ONCE:
                file = None
            await self._read([each.location for each in files])
            self._position = replace(self._position, next=file)
            await self._write_if_due()
        self._position = replace(self._position, stage=Stage.LOGGED)

    async def _read_logged(self) -> None:
        """Reads the metadata files that were never in the chain of current ones, and that the metadata log of another
        file names, and adds the names in them to the buffer."""
        while logged := self._position.logged:
            await self._read([each for each in logged[:AT_ONCE] if self._is_new(each)], follow=False)
            self._position = replace(self._position, logged=logged[AT_ONCE:])
            await self._write_if_due()
        self._position = replace(self._position, stage=Stage.TRIES)

    async def _find_tries(self) -> None:
        """Reads the metadata files in the table's directories that have a pending receipt and were never current: the
        ones of commits that never applied. Metadata files there without such a receipt are only added to the buffer as
        ignored. Stores the buffer at the end."""
        for folder in self._position.folders:
            async with aclosing(self._execution.session().files.listed(folder)) as listed:
                async for location, _ in listed:
                    name = location.rpartition("/")[2]
                    if not table.is_metadata_file_name(name) or not self._is_new(location):
                        continue
                    if await is_announced(self._execution.session(), self._pointer.entity, location):
                        await self._read([location], follow=False)
                    else:
                        self._buffer.ignored.append(location)
                    await self._write_if_due()
        self._position = replace(self._position, stage=Stage.MANIFESTS)
        await self._write()
        self._position = replace(self._position, chunk=self.last.id)

    async def _read_manifests(self) -> None:
        """Adds the manifests in the manifest lists of the inventory, from the position on: from the last stored chunk,
        with the oldest lists, back to the first one. A manifest that one of the last `MAX_COMPARED` lists names too is
        left out."""
        for each in self._position.compared:
            listed = await manifests_in(self._execution, each, [])
            await off_loop(NAME_BYTES * len(listed), partial(self._note_manifests, listed))
        number = 0
        async with aclosing(StoredInventory(self._execution, self.last).chunks(self._position.chunk)) as chunks:
            async for chunk in chunks:
                done = self._position.lists if chunk.id == self._position.chunk else 0
                for lists in batches(chunk.lists[done:], AT_ONCE):
                    for manifests in await gather(*(self._manifests(each) for each in lists)):
                        await off_loop(NAME_BYTES * len(manifests), partial(self._add_manifests, manifests, number))
                        number += 1
                    done += len(lists)
                    compared = (*self._position.compared, *lists)[-MAX_COMPARED:]
                    self._position = replace(self._position, chunk=chunk.id, lists=done, compared=compared)
                    self._seen = {each: seen for each, seen in self._seen.items() if seen >= number - MAX_COMPARED}
                    await self._write_if_due()
        self._position = Position(Stage.DONE)
        await self._write()

    async def _manifests(self, location: str) -> Mapping[str, int]:
        """Returns the sizes of the manifests in a manifest list, by location; empty for a list that does not exist,
        which it notes as missing."""
        return await manifests_in(self._execution, location, self._buffer.missing)

    def _note_manifests(self, manifests: Mapping[str, int]) -> None:
        """Notes manifests, which are then not added to the inventory if one of the next `MAX_COMPARED` lists names
        them."""
        self._seen.update((_digest(manifest), 0) for manifest in manifests)

    def _add_manifests(self, manifests: Mapping[str, int], number: int) -> None:
        """Adds the manifests to the buffer that were not noted before, and notes all of them as named by the manifest
        list with this number."""
        for manifest, size in manifests.items():
            digest = _digest(manifest)
            if digest not in self._seen:
                self._buffer.manifests.append(ReachedFile(manifest, size))
            self._seen[digest] = number

    async def _read(self, files: Sequence[str], *, follow: bool = True) -> None:
        """Reads metadata files, the newer first, and adds to the buffer the names in each that the next newer file does
        not have. With `follow`, also adds the files of their metadata logs to the files to be read later. A missing
        file is only noted, so that no later lease reads it. Raises `TaskFailed` if the current file has
        `gc.enabled=false`, and for a file that can't be read."""
        read = [read_metadata_file(self._execution, file, self._buffer.missing, _Names.of) for file in files]
        for file, names in zip(files, await gather(*read) if read else [], strict=True):
            if names is None:
                self._buffer.ignored.append(file)
                continue
            if file == self._pointer.metadata.location and not names.allows_deletes:
                raise TaskFailed(
                    "the table is not purged, since it has gc.enabled=false: its files may belong to other tables"
                )
            self._buffer.files.append(file)
            self._buffer.add(names.reached, self._newer)
            self._newer = names.reached
            if follow:
                logged = dict.fromkeys((*self._position.logged, *names.logged))
                unknown = tuple(each for each in logged if _digest(each) not in self._known)
                folders = tuple(dict.fromkeys((*self._position.folders, *names.reached.folders)))
                self._position = replace(self._position, newer=file, logged=unknown, folders=folders)

    def _is_new(self, file: str) -> bool:
        """Whether this inventory, including the previous leases, meets a metadata file for the first time. Remembers
        the file."""
        digest = _digest(file)
        if digest in self._known:
            return False
        self._known.add(digest)
        return True

    async def _write_if_due(self) -> None:
        """Stores the buffered names if there are many, or if the last write was long ago."""
        passed_ms = self._execution.runtime.boot_ms() - self._written_ms
        if len(self._buffer) >= MAX_NAMES or passed_ms >= self._write_after_ms:
            self._write_after_ms = min(2 * self._write_after_ms, MAX_WRITE_MS)
            await self._write()

    async def _write(self) -> None:
        """Stores the buffered names in new chunks, and records the id of the last chunk in the checkpoint; in the phase
        of data files also the missing files. Empties the buffer."""
        state, task = self._execution.session().state, self._execution.task.id
        for chunk in self._buffer.chunks(Chunk(self._pointer.metadata.location, self._position)):
            before = links_to(self.last) if self.last.id else ()
            self.last = replace(chunk, id=self._execution.runtime.ulid(), before=before)
            await write_chunk(state, task, self.last)
        now = replace(Progress.parse(self._execution.checkpoint), inventory=self.last.id)
        if now.phase is Phase.DATA:  # in later phases, missing files were deleted by this purge
            now = now.with_missing([*dict.fromkeys(self._buffer.missing)])
        self._buffer = _Buffer()
        self._written_ms = self._execution.runtime.boot_ms()
        await self._execution.progress({**self._execution.checkpoint, **now.to_json()}, 0)


def _digest(name: str) -> int:
    """Returns the digest of a name as a number of 64 bits."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
