"""Remembers the files of manifests that plans read again and again (`state/file_blocks.py`).

A manifest never changes, so what was read of it stays right. Its files are packed when the same part of it is read a
second time, and only if there is room beside what plans used since then: most plans of a process that starts, or of
tables larger than the cache, are no slower than without it.
"""

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from arco_catalog.iceberg.content_files import ContentFile
from arco_catalog.iceberg.manifests import ManifestFile
from arco_catalog.state.cache import SelectiveCache
from arco_catalog.state.delete_parts import DeleteRows
from arco_catalog.state.file_blocks import BLOCK_ENTRIES, MAX_COLUMNS, FileBlock
from arco_catalog.state.manifest_entries import EntrySelection
from storage_backends.lazy_dataclass import dataclass

KEY_BYTES: Final = 400
"""Bytes of memory of a key without its texts."""

FilesCache = SelectiveCache[Hashable, FileBlock | DeleteRows]


class ManifestKey(NamedTuple):
    """All on which the files of a manifest depend as they are read for a scan: the manifest, what its files inherit
    from its entry in the manifest list, and the types and names of their partitions (`form`). Two tables, or two
    schemas of one, may name one file and differ in the rest."""

    path: str
    length: int
    content: int
    spec_id: int
    sequence_number: int
    added_snapshot_id: int
    first_row_id: int | None
    form: str

    @classmethod
    def of(cls, manifest: ManifestFile, form: str) -> "ManifestKey":
        """Returns the key of a manifest for scans that read its entries in this form."""
        return cls(
            manifest.manifest_path,
            manifest.manifest_length,
            manifest.content,
            manifest.partition_spec_id,
            manifest.sequence_number,
            manifest.added_snapshot_id,
            manifest.first_row_id,
            form,
        )


def form_of(selection: EntrySelection) -> str:
    """Returns the ids, names and types of the partition fields of a selection, as a `ManifestKey` has them."""
    fields = [(field.get("field-id"), field["name"]) for field in selection.spec["fields"]]
    return repr((fields, [*selection.partition_types]))


def known_blocks(cache: FilesCache, key: ManifestKey, selection: EntrySelection) -> Sequence[FileBlock] | None:
    """Returns the blocks of a manifest that have all selected files, None unless the cache has all of them, with the
    selected statistics."""
    found: list[FileBlock] = []
    number = selection.first // BLOCK_ENTRIES
    while not (found and found[-1].is_last) and (selection.end is None or number * BLOCK_ENTRIES < selection.end):
        block = cache.get((key, number))
        if not isinstance(block, FileBlock) or not block.has(selection.columns):
            return None
        found.append(block)
        number += 1
    return found


@dataclass(slots=True)
class _Block:
    """The data or delete files of one block of a manifest, which are not packed yet."""

    number: int
    files: list[ContentFile]
    memory: int = 0


class Packing:
    """Packs the files of a part of a manifest while they are read, in `memory` bytes for those that are not packed.
    They are read by its own `selection`, which selects all live files of whole blocks."""

    def __init__(
        self,
        cache: FilesCache,
        key: ManifestKey,
        selection: EntrySelection,
        columns: frozenset[int] | None,
        memory: int,
        requested: int,
    ) -> None:
        self._cache, self._key, self._wanted, self._requested = cache, key, selection, requested
        self.memory = memory
        """Bytes of memory of the files that are not packed yet, at most."""
        self._block: _Block | None = _Block(selection.first // BLOCK_ENTRIES, [])
        self._full: list[tuple[int, FileBlock]] = []
        end = None if selection.end is None else -(-selection.end // BLOCK_ENTRIES) * BLOCK_ENTRIES
        self.selection = EntrySelection(
            selection.spec, selection.partition_types, columns, self._block.number * BLOCK_ENTRIES, end
        )

    @classmethod
    def begin(cls, cache: FilesCache, key: ManifestKey, selection: EntrySelection, memory: int) -> "Packing | None":
        """Notes in the cache that a part of a manifest is read. Returns the packing of the part, with `memory` bytes
        for files that are not in a block yet, if the part was read before and the cache has room for it; None
        otherwise, and if statistics of more than `MAX_COLUMNS` columns are needed, with the columns of the block that
        is cached."""
        first = selection.first // BLOCK_ENTRIES
        requested = cache.request((key, selection.first))
        if requested is None:
            return None
        columns, known = selection.columns, cache.get((key, first))
        if columns is not None and isinstance(known, FileBlock):
            columns = None if known.columns is None else columns | known.columns
        if columns is not None and len(columns) > MAX_COLUMNS:
            return None
        return cls(cache, key, selection, columns, memory, requested)

    def add(self, files: Sequence[ContentFile]) -> Sequence[ContentFile]:
        """Takes the next files of the manifest, packs blocks that are complete, and returns the files that the plan has
        selected. A block of files that need more than `memory` ends the packing; files are still returned then."""
        for file in files:
            number = file.position // BLOCK_ENTRIES
            while self._block is not None and self._block.number < number:
                self._pack(is_last=False)
            block = self._block
            if block is None:
                break
            block.files.append(file)
            block.memory += file.memory
            if block.memory > self.memory:
                self._block = None  # the statistics of some files are long: later plans read these again
        return [file for file in files if self._is_wanted(file)]

    def end(self) -> None:
        """Packs the files of the last block, when all files of the part were read. It counts as the manifest's last
        block if the part has no end."""
        if self._block is not None:
            self._pack(is_last=self.selection.end is None)

    def store(self) -> None:
        """Puts the blocks that were packed since the last call into the cache. It must be called in the event loop."""
        for number, block in self._full:
            size = block.size + KEY_BYTES + len(self._key.path) + len(self._key.form)
            self._cache.put((self._key, number), block, size, self._requested)
        self._full.clear()

    def _pack(self, *, is_last: bool) -> None:
        """Packs the files of the present block, for `store` to put into the cache, and starts the next block, or none
        after the manifest's last (`is_last`)."""
        assert self._block is not None
        number, wanted = self._block.number, self.selection
        files, memory = self._block.files, self._block.memory
        block = FileBlock(files, wanted.partition_types, wanted.columns, is_last=is_last, memory=memory)
        self._full.append((number, block))
        self._block = None if is_last else _Block(number + 1, [])

    def _is_wanted(self, file: ContentFile) -> bool:
        """Whether the scan selects a file, by position and status, partition and statistics."""
        wanted = self._wanted
        return (
            wanted.has(file.position, file.status)
            and wanted.may_match(file.partition)
            and wanted.statistics_may_match(file.statistics)
        )
