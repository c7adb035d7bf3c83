"""Reads the manifests of a snapshot for a plan: which there are, and the entries of each.

Clients that may commit to a table write these files, and clients that may plan a scan have them read, so all is bounded
(docs/bounds.md): the bytes of a file, its values, and the memory of all plans of a process.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Final

from arco_catalog.iceberg.content_files import ContentFile, FileBatch
from arco_catalog.iceberg.errors import BadRequest, Unsupported
from arco_catalog.iceberg.manifests import DATA, ManifestFile
from arco_catalog.iceberg.snapshots import Snapshot
from arco_catalog.operations.scans.listed_manifests import (
    ADVICE,
    LISTED_WORK,
    MAX_LISTED,
    read_list,
    readable,
    unlisted,
)
from arco_catalog.operations.scans.packing import ManifestKey, Packing, form_of, known_blocks
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.request_stats import ScanCache
from arco_catalog.state.avro import CHUNK, MAX_FILE_RECORDS, AvroLimits, ReadRange, UnpacksTooLong
from arco_catalog.state.compressed_manifests import ManifestList
from arco_catalog.state.file_blocks import BLOCK_ENTRIES, FileBlock
from arco_catalog.state.locations import Location
from arco_catalog.state.manifest_entries import LIMITS, USUAL, EntrySelection, read_entries
from arco_catalog.state.memory import Allocation, Memory, MemoryOfLoops
from arco_catalog.state.worker_threads import LoopWork, off_loop

AT_ONCE: Final = 8
"""How many manifests, or parts of an index of deletes, one plan reads concurrently."""
AHEAD_BYTES: Final = 8 << 20
"""Bytes of a manifest that are read at a time."""
READ_WEIGHT: Final = 2
"""Bytes of memory for each byte of a manifest that is read at a time: as it was read, and what is left of that."""
BLOCK_WEIGHT: Final = 4
"""Bytes of memory for each byte that a block may have: as it was read, decompressed in parts, and whole."""
DECODED_BYTES: Final = 1 << 20
"""Bytes of memory of the files that are decoded at a time."""
READING_BYTES: Final = 32 << 20
"""Bytes of memory of all manifests that a process reads at one time."""
WAIT_SECONDS: Final = 15.0
"""How long a manifest waits for such memory: most of the time that a request has."""
FILES_WEIGHT: Final = 32
"""Bytes of memory of the files that are packed together, for each byte of their manifest."""
MAX_BLOCK_MEMORY: Final = 4 << 20
"""Maximum bytes of memory of the files that are packed together."""
PACKED_BYTES: Final = 500
"""Bytes that the work of packing or unpacking a file counts as when it is given to a thread."""
SPARE_ENTRIES: Final = 1_000
"""Entries that a delete manifest may have beyond double the counts in the manifest list."""
CALLS_PER_READING: Final = 16
"""Calls that check the deadline, for each reading of the clocks."""
CACHED_BYTES: Final = 512 << 10
"""Maximum bytes of a manifest that a process remembers. Reading a small one takes longer than decoding it."""
_MEMORY: Final = MemoryOfLoops(READING_BYTES, WAIT_SECONDS)


def reading_memory() -> Memory:
    """Returns the memory that all plans on this event loop share to read manifests."""
    return _MEMORY.current()


class ManifestSource:
    """Reads manifest lists and manifests for the plans of one request, if they are in the table's
    `locations`, as its entry in the registry has them; from anywhere in the catalog's stores if that is None."""

    def __init__(self, session: Session, locations: Collection[str] | None = None) -> None:
        self._session = session
        self._locations = locations
        self._cache = session.catalog.caches.file_blocks
        self.work = LoopWork()
        """What the plans do with files that were read."""
        self.hits: Counter[ScanCache] = Counter()
        """How many lookups of the plans in each cache had a result."""
        self.misses: Counter[ScanCache] = Counter()
        """How many lookups had none."""
        self._calls = 0
        self._forms: dict[int, str] = {}
        """The forms of partitions by the ids of their specs."""

    async def manifests(self, snapshot: Snapshot) -> ManifestList:
        """Returns the manifest list of a snapshot. A snapshot of an old table may name its manifests itself; of these,
        counts of files are estimates, and there are no summaries of partitions.
        Raises `Unsupported` for a table whose manifests are encrypted, `BadRequest` for a list that is outside of the
        table's locations, can't be read or is beyond a bound, `NotFound` for a missing one, and `StoreError`."""
        if "key-id" in snapshot:
            raise _encrypted()
        if "manifest-list" not in snapshot:
            named = snapshot.get("manifests", [])
            if len(named) > MAX_LISTED:
                raise BadRequest(f"The table's snapshot names more than {MAX_LISTED:,} manifests: {ADVICE}")
            entries = [unlisted(each, snapshot["snapshot-id"]) for each in named]
            return await off_loop(LISTED_WORK * len(entries), partial(ManifestList.of, entries))
        found = await self._listed(snapshot["manifest-list"])
        if found.is_encrypted:
            raise _encrypted()
        return found

    async def _listed(self, location: str) -> ManifestList:
        """Returns the manifests in a manifest list, from the cache of this process or else from the store, and then
        puts them into the cache. Raises as `_check_place` and `read_list` do."""
        self._check_place(location)
        cache = self._session.catalog.caches.manifests
        known = cache.get(location)
        is_known = known is not None and not isinstance(known, bytes)
        self.note_lookup("lists", is_hit=is_known)
        if known is None or isinstance(known, bytes):
            known = await read_list(self._session, location)
            cache.put(location, known, known.size)
        return known

    def note_lookup(self, cache: ScanCache, *, is_hit: bool) -> None:
        """Counts a lookup of the plans in a cache, as a hit or a miss."""
        (self.hits if is_hit else self.misses)[cache] += 1

    def check_deadline(self) -> None:
        """Raises `StoreUnavailable` if the deadline of the request has passed."""
        self._session.check_deadline()

    def check_deadline_at_intervals(self) -> None:
        """Does as `check_deadline` at every 16th call, and nothing at others: for work that takes less time than to
        read the clocks."""
        self._calls += 1
        if self._calls % CALLS_PER_READING == 0:
            self._session.check_deadline()

    async def take_memory(self, size: int) -> Allocation:
        """Takes bytes of memory for the request, for what was read. Raises `OutOfMemory`."""
        return await self._session.hold.take(size)

    async def entries(self, manifest: ManifestFile, selection: EntrySelection) -> AsyncGenerator[FileBatch, None]:
        """Yields the selected entries of a manifest, up to some thousands at a time, perhaps none. Raises `Unsupported`
        for an encrypted one, `BadRequest` for one that is outside of the table's locations, can't be read or is beyond
        a bound, `NotFound` for a missing one, and `StoreError`."""
        if manifest.key_metadata is not None:
            raise _encrypted()
        location = manifest.manifest_path
        self._check_place(location)
        key = self._key(manifest, selection)
        known = known_blocks(self._cache, key, selection)
        self.note_lookup("files", is_hit=known is not None)
        read = self._read_entries(manifest, selection, key) if known is None else self._packed(known, selection)
        with readable(location):
            async with aclosing(read) as batches:
                async for batch in batches:
                    self._session.check_deadline()
                    yield batch

    async def _packed(self, known: Sequence[FileBlock], selection: EntrySelection) -> AsyncGenerator[FileBatch, None]:
        """Yields the selected files of packed blocks, in memory for all files of a block."""
        with reading_memory().hold(self._session.hold.owner) as hold:
            for block in known:
                taken = await hold.take(block.memory)
                yield await self.work.run(block.work, partial(block.select, selection))
                taken.shrink(0)

    def _key(self, manifest: ManifestFile, selection: EntrySelection) -> ManifestKey:
        """Returns the key of a manifest in the cache of files. Of the selection the key has only the ids, names and
        types of the partition fields, so plans with other filters or columns of statistics share what is cached."""
        form = self._forms.get(manifest.partition_spec_id)
        if form is None:
            form = self._forms[manifest.partition_spec_id] = form_of(selection)
        return ManifestKey.of(manifest, form)

    async def _read_entries(
        self, manifest: ManifestFile, selection: EntrySelection, key: ManifestKey
    ) -> AsyncGenerator[FileBatch, None]:
        """Yields the selected entries of a manifest, which it reads from the store or as cached bytes, and packs the
        files into the cache for later plans if `Packing.begin` returns a packing for this part. A manifest that exceeds
        the usual limits is read on within larger ones, and the rest not put there."""
        first = selection.first
        files_memory = min(MAX_BLOCK_MEMORY, FILES_WEIGHT * (manifest.manifest_length + 1))
        packing = Packing.begin(self._cache, key, selection, files_memory)
        try:
            async with aclosing(self._entries(manifest, selection, USUAL, packing)) as blocks:
                async for files in blocks:
                    yield FileBatch.of(files)
                    first = files[-1].position + 1 if files else first
            return
        except UnpacksTooLong:  # most manifests are no such
            pass
        async with aclosing(self._entries(manifest, selection.beginning_at(first), LIMITS)) as blocks:
            async for files in blocks:
                yield FileBatch.of(files)

    async def _entries(
        self, manifest: ManifestFile, selection: EntrySelection, limits: AvroLimits, packing: Packing | None = None
    ) -> AsyncGenerator[Sequence[ContentFile], None]:
        """Reads a manifest within these limits, in memory that it takes first, and yields the selected entries. With
        `packing` it also packs all files that are read, and forgets the cached bytes of the manifest at the end. Raises
        `UnpacksTooLong` if a block, the header or all blocks together exceed these limits or, if they are the usual
        ones, for a manifest that exceeds the length in its list."""
        length = manifest.manifest_length if limits is USUAL else None
        if manifest.content != DATA:
            limits = replace(limits, file_records=_max_entries(manifest))
        ahead = CHUNK if length is None else min(length + 1, AHEAD_BYTES)
        decoded = DECODED_BYTES + (0 if packing is None else packing.memory)
        with reading_memory().hold(self._session.hold.owner) as hold:
            await hold.take(READ_WEIGHT * ahead + BLOCK_WEIGHT * limits.block_bytes + decoded)
            read_range = _read_ahead(partial(self._read, manifest.manifest_path), ahead, length)
            wanted = selection if packing is None else packing.selection
            async with aclosing(read_entries(read_range, manifest, wanted, limits)) as blocks:
                async for files in blocks:
                    if packing is not None:
                        files = await self.work.run(PACKED_BYTES * len(files), partial(packing.add, files))
                        packing.store()
                    yield files
            if packing is not None:
                await off_loop(PACKED_BYTES * BLOCK_ENTRIES, packing.end)
                packing.store()
                self._session.catalog.caches.manifests.drop(manifest.manifest_path)

    async def _read(self, location: str, start: int, length: int) -> bytes:
        """Reads `length` bytes of a manifest from `start` on, or up to the end of the file. A manifest of at most
        `CACHED_BYTES` of which a read from the start gets all, because it is shorter than `length`, is cached, and
        returned for any later read from the start, which may be more bytes than `length`."""
        cache = self._session.catalog.caches.manifests
        if start == 0:
            known = cache.get(location)
            self.note_lookup("manifests", is_hit=isinstance(known, bytes))
            if isinstance(known, bytes):
                return known
        body = (await self._session.files.read_range(location, start, length)).body
        if start == 0 and len(body) < length and len(body) <= CACHED_BYTES:
            cache.put(location, body, len(body))
        return body

    def _check_place(self, location: str) -> None:
        """Raises `BadRequest` if a manifest or list is outside of the table's locations, since a plan reveals the
        content, or has a level `.` or `..` in the path; checks nothing if the source reads from anywhere."""
        if self._locations is None:
            return
        place = Location.parse(location)
        if place.has_dots or not place.inside_any({*self._locations}):
            raise BadRequest(
                f"The table's manifest or manifest list {location[:200]} is outside of its locations, or has a level . "
                f"or .. in the path: {ADVICE}"
            )


def _max_entries(manifest: ManifestFile) -> int:
    """Returns how many entries a delete manifest may have: double the counts in the manifest list and `SPARE_ENTRIES`
    more, at most `MAX_FILE_RECORDS`. Plans read no more delete manifests than they have time for, by these counts, so a
    false one may not lead to much more work."""
    return min(MAX_FILE_RECORDS, SPARE_ENTRIES + 2 * manifest.entries_count)


def _read_ahead(read: ReadRange, size: int, stated: int | None) -> ReadRange:
    """Returns a function that reads ranges of a file in the order of their places, and reads at least `size` bytes of
    it at a time. That function raises `UnpacksTooLong` once it sees that the file has more bytes than `stated`, unless
    that is None."""
    start, body, ended = 0, b"", False

    async def read_range(place: int, length: int) -> bytes:
        nonlocal start, body, ended
        if place + length > start + len(body) and not ended:
            left, start = body[place - start :], place
            missing = max(size, length - len(left))
            part = await read(place + len(left), missing)
            body, ended = left + part, len(part) < missing
            if stated is not None and start + len(body) > stated:
                raise UnpacksTooLong(
                    f"the stored file has more than the {stated:,} bytes that the manifest list states for it, so "
                    "it is read again within wider limits"
                )
        return body[place - start : place - start + length]

    return read_range


def _encrypted() -> Unsupported:
    """Returns the error for encrypted manifests."""
    return Unsupported(f"The manifests of this table are encrypted, and the catalog has no key of theirs: {ADVICE}")
