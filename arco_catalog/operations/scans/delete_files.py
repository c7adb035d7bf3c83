"""The delete files that a plan needs: read from their manifests if they are few, otherwise from an index of them that
plans of the snapshot write and share (docs/design/scan-planning.md#deletes).

The index has a part for each run of delete manifests, named by a hash of what the manifest list states of them. A later
snapshot of the table has most of its delete manifests from the one before, and so most parts, too. A part is written
once, and deleted with the stored requests of plans, after which it is made again.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import aclosing, suppress
from functools import partial
from typing import Final

from arco_catalog.iceberg.content_files import ContentFile
from arco_catalog.iceberg.delete_index import DeleteIndex
from arco_catalog.iceberg.errors import Unsupported
from arco_catalog.iceberg.manifests import ManifestFile
from arco_catalog.iceberg.partition_keys import PartitionKeys
from arco_catalog.operations.scans.delete_memory import DeletesMemory
from arco_catalog.operations.scans.delete_row_reader import DeleteRowReader
from arco_catalog.operations.scans.listed_manifests import ADVICE
from arco_catalog.operations.scans.manifest_source import AT_ONCE, ManifestSource, reading_memory
from arco_catalog.operations.scans.scan_deletes import ScanDeletes
from arco_catalog.operations.scans.stored_parts import StoredPart
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.delete_parts import (
    VERSION,
    InvalidPart,
    encode_part,
    lookup_hashes,
    read_header,
)
from arco_catalog.state.manifest_entries import EntrySelection
from arco_catalog.state.worker_threads import off_loop
from storage_backends.lazy_dataclass import dataclass

FEW_FILES: Final = 2_000
FEW_MANIFESTS: Final = 16
"""So many delete files, in so many manifests, are read without an index."""
RUN_FILES: Final = 8_000
RUN_MANIFESTS: Final = 64
"""A part of an index has so many delete files, of so many manifests; more if one manifest has more. Entries of deleted
files count, because they have to be read, too. With 6 KB each, so the statistics of ten columns, they fit into the
memory of a plan."""
MAX_ENTRIES: Final = 500_000
"""Maximum entries of the manifests of a part: they take some seconds to read, and a request has twenty."""
MANY: Final = 64
"""Manifests of data files that share one reading of the parts."""
KEPT_BYTES: Final = 2 << 20
"""Bytes of parts that a plan keeps after it has read their beginnings, or made them."""
MAX_PART_BYTES: Final = 16 << 20
"""Maximum bytes of a part that is stored."""
FILE_BYTES: Final = 1_000
"""Bytes of memory of a delete file."""
MANIFEST_WORK: Final = 1_000
"""Bytes that the work on a delete manifest in the list counts as: a hash of what is stated of it names its part."""


class DeleteFiles:
    """Finds the delete files of data files for one plan of the table with this entity id. `open` must be awaited
    first, and `close` called at the end."""

    def __init__(self, session: Session, entity: str, source: ManifestSource, scan: ScanDeletes) -> None:
        self._session = session
        self._entity = entity
        self._source = source
        self._scan = scan
        self._partitions = PartitionKeys(scan.specs, scan.dropped)
        self._rows = DeleteRowReader(session, source, scan.types_of)
        self._memory = DeletesMemory(session.hold)
        self._decoded: list[list[ContentFile]] = []
        """The delete files for which there is memory, which an error's traceback would hold beyond that."""
        self._index: DeleteIndex | None = None
        self._parts: list[_Part] = []
        self.column_ids: frozenset[int] = frozenset()
        """The columns of equality deletes, whose statistics of data files the index needs; empty until `open`."""

    async def open(self) -> None:
        """Reads the delete files if they are few, otherwise what equality columns they have, and makes the parts of the
        index that do not exist. Raises the errors of `ManifestSource.entries`, `DeletesMemory.add` and the constructor
        of `DeleteIndex`, and `Unsupported` for a part with more than `MAX_ENTRIES` entries."""
        scan = self._scan
        if len(scan.matching) <= FEW_MANIFESTS and _count_entries(scan.matching) <= FEW_FILES:
            self._index = await self._indexed(await self._entries(scan.matching, scan.selection_of))
            self.column_ids = self._index.column_ids
            return
        self._parts = await off_loop(MANIFEST_WORK * len(scan.manifests), self._matching_parts)
        for batch in batches(self._parts, AT_ONCE):
            await gather(*(part.stored.open() for part in batch))
            self._forget_from(batch)
        for part in self._parts:
            self._source.note_lookup("delete_index", is_hit=part.stored.header is not None)
            if part.stored.header is None:
                await self._make(part)
        headers = [part.stored.header for part in self._parts if part.stored.header is not None]
        self.column_ids = frozenset(column for header in headers for column in header.columns)

    def _matching_parts(self) -> "list[_Part]":
        """Returns the parts of the index that have a manifest in which delete files may match."""
        names = {manifest.manifest_path for manifest in self._scan.matching}
        return [
            _Part(run, StoredPart(self._session, self._key(run)))
            for run in runs_of(self._scan.manifests)
            if not names.isdisjoint(manifest.manifest_path for manifest in run)
        ]

    def close(self) -> None:
        """Frees the delete files that were decoded, and gives back the memory for them that plans share; the request
        keeps the rest. No index may be used afterwards."""
        self._free()
        self._memory.close()

    def _free(self) -> None:
        """Frees all decoded delete files, and sets their count to zero; the plan keeps the memory for the next ones."""
        for files in self._decoded:
            files.clear()
        self._decoded.clear()
        self._memory.clear()

    def _new_list(self) -> list[ContentFile]:
        """Returns a new list for decoded delete files, which `_free` empties."""
        self._decoded.append([])
        return self._decoded[-1]

    @property
    def manifests_at_once(self) -> int:
        """How many data manifests' files should be in one call of `index_for`: more if every call has to read the parts
        of the index."""
        return AT_ONCE if self._index is not None else MANY

    async def index_for(self, data: Sequence[ContentFile]) -> DeleteIndex:
        """Returns an index with the delete files that may apply to these data files, and perhaps others: of few delete
        files always the one that `open` made, otherwise a new one, after which the one before must not be used. Raises
        as `open` does."""
        if self._index is not None:
            return self._index
        keys = await off_loop(FILE_BYTES * len(data), partial(lookup_hashes, data, self._partitions))
        self._free()
        found = self._new_list()
        for batch in batches(self._parts, AT_ONCE):
            for deletes in await gather(*(self._select(part, keys) for part in batch)):
                found += deletes
        return await self._indexed(found)

    async def _indexed(self, deletes: Sequence[ContentFile]) -> DeleteIndex:
        """Returns the index of the ones of these delete files that may match the scan, made in a thread if they
        are many."""
        return await off_loop(FILE_BYTES * len(deletes), partial(self._index_of, deletes))

    def _index_of(self, deletes: Sequence[ContentFile]) -> DeleteIndex:
        """Returns the index of the ones of these delete files that may match the scan."""
        scan = self._scan
        return DeleteIndex(filter(self._may_match, deletes), scan.specs, scan.columns, scan.dropped)

    def _may_match(self, file: ContentFile) -> bool:
        """Whether a delete file may have deletes of rows that the scan's filter matches. Every 16th call raises
        `StoreUnavailable` if the deadline has passed."""
        self._source.check_deadline_at_intervals()
        return self._scan.may_match(file)

    def _key(self, run: Sequence[ManifestFile]) -> str:
        """Returns the key of a part in the store. The table is in its name: for another table's part it was not
        checked that this one may read the manifests. So are the types by which partitions are read, which differ
        between schemas: files are found by their partitions; and so are the fields whose values may be lost."""
        specs = [manifest.partition_spec_id for manifest in run]
        types = [[*self._scan.types_of(each), *sorted(self._partitions.lost(each))] for each in specs]
        stated = repr((VERSION, self._entity, [manifest._replace(partitions=None) for manifest in run], types))
        return self._session.state.paths.plan_request(hashlib.sha256(stated.encode(errors="surrogatepass")).hexdigest())

    def _forget_from(self, parts: "Sequence[_Part]") -> None:
        """Forgets the bytes of these parts, which can be read again from the store, if the plan keeps more than
        `KEPT_BYTES` of all parts."""
        kept = sum(len(part.stored.known) for part in self._parts)
        for part in parts if kept > KEPT_BYTES else ():
            part.stored.known = b""

    async def _make(self, part: "_Part") -> None:
        """Makes a part of the index from the manifests, takes memory for the bytes, and keeps them in the plan. Stores
        the part if the catalog may be written and the part has at most `MAX_PART_BYTES`, and then forgets the bytes if
        the plan keeps more than `KEPT_BYTES`. A failure to store it is only noted, and the bytes are kept."""
        files = await self._entries(part.run, self._selection_of_all)
        body = await off_loop(FILE_BYTES * len(files), partial(encode_part, self._checked(files), self._partitions))
        self._free()
        held = await self._session.hold.take(len(body))
        part.stored.header, part.stored.known = read_header(body), body
        may_store = len(body) <= MAX_PART_BYTES and self._session.settings.read_only_because is None
        if may_store and await part.stored.create(body):
            self._forget_from([part])
            held.shrink(len(part.stored.known))

    def _checked(self, files: Sequence[ContentFile]) -> Iterator[ContentFile]:
        """Yields these delete files as they are. Before one in 16 it raises `StoreUnavailable` if the deadline has
        passed."""
        for file in files:
            self._source.check_deadline_at_intervals()
            yield file

    async def _select(self, part: "_Part", hashes: Set[int]) -> Sequence[ContentFile]:
        """Returns the delete files of a part that these hashes find. If the part is deleted or corrupt, returns all
        delete files of its manifests instead, which it reads."""
        with suppress(InvalidPart):
            return await self._selected(part.stored, hashes)
        return await self._entries(part.run, self._selection_of_all)

    async def _selected(self, part: StoredPart, hashes: Set[int]) -> Sequence[ContentFile]:
        """Returns the delete files that these hashes find in a part of the index, for which it takes memory. Raises
        `InvalidPart`, and the errors of `DeletesMemory.add` and `DeleteRowReader.read`."""
        found = self._new_list()
        rows = await part.rows(hashes, self._source.work, reading_memory())
        self._memory.check_files(sum(len(block.rows) for block in rows))
        async with aclosing(self._rows.read(part, rows)) as read:
            async for batch in read:
                await self._memory.add(batch)
                found += batch.files
        return found

    def _selection_of_all(self, manifest: ManifestFile) -> EntrySelection:
        """Returns the selection of all delete files in a manifest, whatever the filter of the scan."""
        spec = self._scan.specs[manifest.partition_spec_id]
        return EntrySelection(spec, self._scan.types_of(manifest.partition_spec_id), None)

    async def _entries(
        self, manifests: Sequence[ManifestFile], selection_of: Callable[[ManifestFile], EntrySelection]
    ) -> Sequence[ContentFile]:
        """Reads these manifests, up to `AT_ONCE` concurrently, and returns the selected delete files, for which it
        takes memory. Raises `Unsupported` for more than `MAX_ENTRIES` entries."""
        entries = _count_entries(manifests)
        if entries > MAX_ENTRIES:
            raise Unsupported(
                f"Delete manifests of this table that are read together have {entries:,} entries, and at most "
                f"{MAX_ENTRIES:,} may be: rewrite them (rewrite_manifests), compact the table's deletes "
                f"(rewrite_data_files), or {ADVICE}"
            )
        found = self._new_list()
        for batch in batches(manifests, AT_ONCE):
            for files in await gather(*(self._entries_of(manifest, selection_of(manifest)) for manifest in batch)):
                found += files
        return found

    async def _entries_of(self, manifest: ManifestFile, selection: EntrySelection) -> Sequence[ContentFile]:
        """Reads one manifest, and returns the selected delete files, for which it takes memory."""
        found = self._new_list()
        async with aclosing(self._source.entries(manifest, selection)) as read:
            async for batch in read:
                await self._memory.add(batch)
                found += batch.files
        return found


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an index, and the manifests that it is made of."""

    run: Sequence[ManifestFile]
    stored: StoredPart


def runs_of(manifests: Sequence[ManifestFile]) -> Sequence[Sequence[ManifestFile]]:
    """Returns delete manifests in runs that become parts of an index, the last manifest first: a run ends once it has
    `RUN_FILES` entries or `RUN_MANIFESTS` manifests. Runs start at the end of the list, because a new snapshot has the
    new manifests at the beginning: they extend the last run if that is not full, and the other runs do not change."""
    runs: list[list[ManifestFile]] = []
    files = RUN_FILES
    for manifest in reversed(manifests):
        if files >= RUN_FILES or len(runs[-1]) >= RUN_MANIFESTS:
            runs.append([])
            files = 0
        runs[-1].append(manifest)
        files += manifest.entries_count
    return runs


def _count_entries(manifests: Sequence[ManifestFile]) -> int:
    """Returns the number of entries in these manifests, also of deleted files, by the manifest list."""
    return sum(manifest.entries_count for manifest in manifests)
