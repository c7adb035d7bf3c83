"""Finds the manifests that a scan reads: those of its snapshots that may have matching files."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.expressions.filters import ScanFilter, SpecFilter
from arco_catalog.iceberg.manifests import ManifestFile
from arco_catalog.iceberg.scan_request import Scan
from arco_catalog.operations.scans.manifest_source import AT_ONCE, ManifestSource
from arco_catalog.operations.scans.ranges import Piece
from arco_catalog.operations.scans.scan_deletes import ScanDeletes, deletes_of_scan
from arco_catalog.operations.scans.scan_table import ScanTable
from arco_catalog.operations.scans.tokens import Range
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.avro import MAX_FILE_RECORDS
from arco_catalog.state.compressed_manifests import ManifestList, memory_of
from arco_catalog.state.worker_threads import off_loop

ENTRY_BYTES: Final = 100
"""Bytes that an entry counts as when its work is given to a thread."""


class ScanManifests:
    """The manifests of one scan of a table. The filter and the table's metadata have `size` bytes, by which long work
    is given to threads. `pruned` is how many manifests were left out because no file in them matches."""

    def __init__(self, source: ManifestSource, table: ScanTable, scan: Scan, of_scan: ScanFilter, size: int) -> None:
        self._source = source
        self._table = table
        self._scan = scan
        self._filter = of_scan
        self._size = size
        self._lists: dict[int, ManifestList] = {}
        self._manifests: dict[tuple[int, int], ManifestFile] = {}
        self.pruned = 0

    async def open(self, pieces: Sequence[Piece]) -> None:
        """Decompresses the entries of the manifests of these pieces, in memory of the request. Raises `OutOfMemory`."""
        found = await off_loop(ENTRY_BYTES * len(pieces), partial(self._manifests_of, pieces))
        await self._source.take_memory(sum(map(memory_of, found.values())))
        self._manifests = found

    def _manifests_of(self, pieces: Sequence[Piece]) -> dict[tuple[int, int], ManifestFile]:
        """Returns the manifests of these pieces by their places."""
        found: dict[tuple[int, int], ManifestFile] = {}
        for number in {piece.list for piece in pieces}:
            places = {piece.manifest for piece in pieces if piece.list == number}
            listed = self._lists[number].data(range(min(places), max(places) + 1))
            found |= {(number, place): manifest for place, manifest in listed if place in places}
        return found

    def of(self, piece: Piece) -> ManifestFile:
        """Returns the manifest of a piece that `open` was called with."""
        return self._manifests[piece.list, piece.manifest]

    def count(self, number: int) -> int:
        """Returns how many manifests a manifest list has that was read, by its number."""
        return len(self._lists[number])

    async def pieces(self, lists: range, part: Range) -> Sequence[Piece]:
        """Returns the data manifests of these lists, in a part of the scan, that may have matching files. Reads the
        lists that were not read yet, and adds to `pruned` the number of manifests that the filter excludes."""
        missing = [number for number in lists if number not in self._lists]
        for batch in batches(missing, AT_ONCE):
            found = await gather(*(self._source.manifests(self._table.snapshots[number]) for number in batch))
            self._lists.update(zip(batch, found, strict=True))
        places = sum(map(len, (self._places(number, part) for number in lists)))
        return await off_loop(self._size + ENTRY_BYTES * places, partial(self._matching_pieces, lists, part))

    def _places(self, number: int, part: Range) -> range:
        """Returns the places of the manifests of a list that are in a part of the scan."""
        first = part.start.manifest if number == part.start.list else 0
        end = part.end.manifest + 1 if number == part.end.list else self.count(number)
        return range(first, min(end, self.count(number)))

    def _matching_pieces(self, lists: range, part: Range) -> Sequence[Piece]:
        """Returns the data manifests of a part that may have matching files, and counts those that the filter
        excludes. Others that the scan does not read are not counted."""
        pieces: list[Piece] = []
        for number in lists:
            snapshot_id = self._table.snapshots[number]["snapshot-id"]
            for place, manifest in self._lists[number].data(self._places(number, part)):
                self._source.check_deadline_at_intervals()
                if not self._is_scanned(manifest, snapshot_id):
                    continue
                if self.filter_of(manifest).manifest_may_match(manifest.partitions):
                    pieces.append(Piece(number, place, _entries(manifest)))
                else:
                    self.pruned += 1
        return pieces

    def _is_scanned(self, manifest: ManifestFile, snapshot_id: int) -> bool:
        """Whether the scan reads a manifest: for an incremental scan one that the snapshot has added and that has added
        files, else one with live files."""
        if self.is_incremental:
            return manifest.added_snapshot_id == snapshot_id and manifest.added_files_count > 0
        return manifest.live_files_count > 0

    @property
    def is_incremental(self) -> bool:
        """Whether the scan has only the files that appends of its snapshots have added."""
        return self._scan.after is not None

    def filter_of(self, manifest: ManifestFile) -> SpecFilter:
        """Returns the filter for a manifest's partition spec. Raises `BadRequest` for an unknown spec."""
        spec_id = manifest.partition_spec_id
        if spec_id not in self._table.specs:
            raise BadRequest(f"The table metadata has no partition spec {spec_id}, which manifests of the table use")
        return self._filter.for_spec(spec_id)

    async def deletes(self) -> ScanDeletes:
        """Returns the delete manifests of the scan's one snapshot, whose list must have been read, and how their delete
        files are selected. Not for an incremental scan."""
        deletes = self._lists[0].deletes
        size = self._size + ENTRY_BYTES * len(deletes)
        find = partial(deletes_of_scan, self._table, self._filter, deletes, self._may_match)
        return await off_loop(size, find)

    def _may_match(self, manifest: ManifestFile) -> bool:
        """Whether a manifest may have files that match the filter, by the summaries of partitions. Raises `BadRequest`
        for an unknown spec, and, only at every 16th check of the deadline, `StoreUnavailable` past it."""
        self._source.check_deadline_at_intervals()
        return self.filter_of(manifest).manifest_may_match(manifest.partitions)


def _entries(manifest: ManifestFile) -> int:
    """Returns how many entries a manifest has, by its writer's counts, and no more than are read of one."""
    return min(MAX_FILE_RECORDS, manifest.entries_count)
