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
from arco_catalog.iceberg.manifests import ManifestFile
from arco_catalog.iceberg.partition_keys import PartitionKeys
from arco_catalog.operations.scans.delete_memory import DeletesMemory
from arco_catalog.operations.scans.manifest_source import AT_ONCE, ManifestSource, reading_memory
from arco_catalog.operations.scans.scan_deletes import ScanDeletes
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.access import KeyConflict
from arco_catalog.state.delete_parts import (
    VERSION,
    InvalidPart,
    PartHeader,
    PartReader,
    encode_part,
    lookup_hashes,
    read_header,
)
from arco_catalog.state.manifest_entries import EntrySelection
from arco_catalog.state.worker_threads import off_loop
from storage_backends import Found, StoreError
from storage_backends.lazy_dataclass import dataclass

FEW_FILES: Final = 2_000
FEW_MANIFESTS: Final = 16
"""So many delete files, in so many manifests, are read without an index."""
RUN_FILES: Final = 20_000
RUN_MANIFESTS: Final = 64
"""A part of an index has so many delete files, of so many manifests; more if one manifest has more."""
BEGIN_BYTES: Final = 64 << 10
"""Bytes of a part that are read first, with the header."""
MANY: Final = 64
"""Manifests of data files that share one reading of the parts."""
KEPT_BYTES: Final = 2 << 20
"""Bytes of parts that a plan keeps after it has made them."""
MAX_PART_BYTES: Final = 16 << 20
"""Maximum bytes of a part, as stored. Larger ones are not read, nor written."""
FILE_BYTES: Final = 1_000
"""Bytes of memory of a delete file."""
ROW_WORK: Final = 400
"""Bytes that the work on a delete file in a part counts as when it is given to a thread."""
MANIFEST_WORK: Final = 1_000
"""Bytes that the work on a delete manifest in the list counts as: a hash of what is stated of it names its part."""
STEP_BYTES: Final = 512 << 10
"""Bytes of memory of the delete files that are decoded of a part before they are counted."""
PIECE_BYTES: Final = 2 << 20
"""Bytes of memory of what is decompressed of a part at a time."""


class DeleteFiles:
    """Finds the delete files of data files for one plan of the table with this entity id. `open` must be awaited
    first, and `close` called at the end."""

    def __init__(self, session: Session, entity: str, source: ManifestSource, scan: ScanDeletes) -> None:
        self._session = session
        self._entity = entity
        self._source = source
        self._scan = scan
        self._partitions = PartitionKeys(scan.specs, scan.dropped)
        self._memory = DeletesMemory(session.hold)
        self._decoded: list[list[ContentFile]] = []
        """The delete files for which there is memory, which an error's traceback would hold beyond that."""
        self._index: DeleteIndex | None = None
        self._parts: list[_Part] = []
        self.column_ids: frozenset[int] = frozenset()
        """The columns of equality deletes, whose statistics of data files the index needs."""

    async def open(self) -> None:
        """Reads the delete files if they are few, otherwise what equality columns they have, and makes the parts of the
        index that do not exist. Raises the errors of `ManifestSource.entries` and `DeletesMemory.add`."""
        scan = self._scan
        if len(scan.matching) <= FEW_MANIFESTS and _files_of(scan.matching) <= FEW_FILES:
            self._index = await self._indexed(await self._entries(scan.matching, scan.selection_of))
            self.column_ids = self._index.column_ids
            return
        self._parts = await off_loop(MANIFEST_WORK * len(scan.manifests), self._matching_parts)
        for batch in batches(self._parts, AT_ONCE):
            await gather(*map(self._read_begin, batch))
        for part in self._parts:
            if part.header is None:
                await self._make(part)
        headers = [part.header for part in self._parts if part.header is not None]
        self.column_ids = frozenset(column for header in headers for column in header.columns)

    def _matching_parts(self) -> "list[_Part]":
        """Returns the parts of the index that have a manifest in which delete files may match."""
        names = {manifest.manifest_path for manifest in self._scan.matching}
        return [
            _Part(run, self._key(run))
            for run in runs_of(self._scan.manifests)
            if not names.isdisjoint(manifest.manifest_path for manifest in run)
        ]

    def close(self) -> None:
        """Gives back the memory of the delete files. No index is used any more."""
        self._free()
        self._memory.close()

    def _free(self) -> None:
        """Frees all decoded delete files."""
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
        """For the data files of how many manifests an index should be requested at once."""
        return AT_ONCE if self._index is not None else MANY

    async def index_for(self, data: Sequence[ContentFile]) -> DeleteIndex:
        """Returns an index with the delete files that may apply to these data files, and perhaps further ones. The one
        before is used no more. Raises as `open` does."""
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
        """Returns the index of the ones of these delete files that may match the scan, made in a thread."""
        return await off_loop(FILE_BYTES * len(deletes), partial(self._index_of, deletes))

    def _index_of(self, deletes: Sequence[ContentFile]) -> DeleteIndex:
        """Returns the index of the ones of these delete files that may match the scan."""
        scan = self._scan
        return DeleteIndex(filter(self._may_match, deletes), scan.specs, scan.columns, scan.dropped)

    def _may_match(self, file: ContentFile) -> bool:
        """Whether a delete file may matter to the scan. Raises if the deadline has passed."""
        self._session.check_deadline()
        return self._scan.may_match(file)

    def _key(self, run: Sequence[ManifestFile]) -> str:
        """Returns the key of a part in the store. The table is in its name: for another table's part it was not
        checked that this one may read the manifests. So are the types by which partitions are read, which differ
        between schemas: files are found by their partitions; and so are the fields whose values may be lost."""
        specs = [manifest.partition_spec_id for manifest in run]
        types = [[*self._scan.types_of(each), *sorted(self._partitions.lost(each))] for each in specs]
        stated = repr((VERSION, self._entity, [manifest._replace(partitions=None) for manifest in run], types))
        return self._session.state.paths.plan_request(hashlib.sha256(stated.encode(errors="surrogatepass")).hexdigest())

    async def _read_begin(self, part: "_Part") -> None:
        """Reads the header of a part of the index, if the part exists and is valid, and the whole of a short one."""
        found = await self._session.state.store.get_range(part.key, 0, BEGIN_BYTES)
        if isinstance(found, Found):
            with suppress(InvalidPart):
                part.header = read_header(found.body)
                part.body = found.body if len(found.body) < BEGIN_BYTES else None

    async def _make(self, part: "_Part") -> None:
        """Makes a part of the index from the manifests, and stores it if the catalog may be written and the part has at
        most `MAX_PART_BYTES`. A failure to store it is only noted."""
        files = await self._entries(part.run, self._selection_of_all)
        body = await off_loop(FILE_BYTES * len(files), partial(encode_part, self._checked(files), self._partitions))
        self._free()
        held = await self._session.hold.take(len(body))
        part.header, part.body = read_header(body), body
        if len(body) <= MAX_PART_BYTES and self._session.settings.read_only_because is None:
            await self._store(part.key, body)
            if sum(len(other.body or b"") for other in self._parts) > KEPT_BYTES:
                part.body = None
                held.shrink(0)

    def _checked(self, files: Sequence[ContentFile]) -> Iterator[ContentFile]:
        """Yields the files. Raises if the deadline has passed."""
        for file in files:
            self._session.check_deadline()
            yield file

    async def _store(self, key: str, body: bytes) -> None:
        """Stores a part, at best effort: without it the next plan makes it again."""
        try:
            await self._session.state.create(key, body)
        except (StoreError, KeyConflict) as error:
            self._session.note_failed_write("the part of an index of deletes", error)

    async def _select(self, part: "_Part", keys: Set[bytes]) -> Sequence[ContentFile]:
        """Returns the delete files of a part that these keys find: from the body that this plan has or that is stored,
        or from the manifests if that is deleted or corrupt."""
        assert part.header is not None
        with reading_memory().hold(self._session.hold.owner) as hold:
            await hold.take(part.header.size + PIECE_BYTES)
            body = part.body
            if body is None and isinstance(found := await self._session.state.store.get(part.key), Found):
                body = found.body
            if body is not None:
                with suppress(InvalidPart):
                    return await self._selected(part.header, body, keys)
        return await self._entries(part.run, self._selection_of_all)  # it was deleted, or is corrupt

    async def _selected(self, header: PartHeader, body: bytes, keys: Set[bytes]) -> Sequence[ContentFile]:
        """Returns the delete files in the body of a part that these keys find. Raises `InvalidPart`."""
        found = self._new_list()
        reader = PartReader(body, keys, self._session.check_deadline)
        while not reader.ended:
            files = await off_loop(ROW_WORK * header.files, partial(reader.read, STEP_BYTES))
            await self._memory.add(files)
            found += files
        return found

    def _selection_of_all(self, manifest: ManifestFile) -> EntrySelection:
        """Returns the selection of all entries of a manifest."""
        spec = self._scan.specs[manifest.partition_spec_id]
        return EntrySelection(spec, self._scan.types_of(manifest.partition_spec_id), None)

    async def _entries(
        self, manifests: Sequence[ManifestFile], selection_of: Callable[[ManifestFile], EntrySelection]
    ) -> Sequence[ContentFile]:
        """Reads these manifests, up to `AT_ONCE` concurrently, and returns the selected delete files, for which it
        takes memory."""
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
                await self._memory.add(batch.files)
                found += batch.files
        return found


@dataclass(slots=True)
class _Part:
    """A part of an index of delete files: the manifests of it, the key in the store, and the header and body if they
    were read."""

    run: Sequence[ManifestFile]
    key: str
    header: PartHeader | None = None
    body: bytes | None = None


def runs_of(manifests: Sequence[ManifestFile]) -> Sequence[Sequence[ManifestFile]]:
    """Returns delete manifests in runs that become parts of an index: a run ends with `RUN_FILES` delete files or
    `RUN_MANIFESTS` manifests. They are made from the end of the list on, because a new snapshot has its new manifests
    at the beginning: the runs of the others stay as they are."""
    runs: list[list[ManifestFile]] = []
    files = RUN_FILES
    for manifest in reversed(manifests):
        if files >= RUN_FILES or len(runs[-1]) >= RUN_MANIFESTS:
            runs.append([])
            files = 0
        runs[-1].append(manifest)
        files += manifest.live_files_count
    return runs


def _files_of(manifests: Sequence[ManifestFile]) -> int:
    """Returns the number of live files in these manifests."""
    return sum(manifest.live_files_count for manifest in manifests)
