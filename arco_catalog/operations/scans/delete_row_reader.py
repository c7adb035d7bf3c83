"""Reads the delete files in rows of an index of deletes, and remembers those that plans read more than once: each plan
task of a scan needs many of those of the task before."""

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from functools import partial
from typing import Final

from arco_catalog.iceberg.content_files import ContentFile, FileBatch
from arco_catalog.iceberg.json import dumps
from arco_catalog.iceberg.scan_json import file_json
from arco_catalog.operations.scans.manifest_source import ManifestSource, reading_memory
from arco_catalog.operations.scans.stored_parts import StoredPart, ranges_of, size_of
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches
from arco_catalog.state.delete_parts import BlockRows, DeleteRows, read_rows

ROW_WORK: Final = 400
"""Bytes that the work on a delete file in a part counts as when it is given to a thread."""
BLOCKS_AT_ONCE: Final = 8
"""Blocks of a part that are decoded before the memory of the delete files is taken."""
BLOCK_MEMORY: Final = 2 << 20
"""Bytes of memory of the rows of such blocks, decompressed."""


class DeleteRowReader:
    """Reads rows of parts of an index of deletes for one plan. `types_of` returns the types of the partition fields of
    a spec."""

    def __init__(self, session: Session, source: ManifestSource, types_of: Callable[[int], Sequence[str]]) -> None:
        self._session = session
        self._source = source
        self._types_of = types_of
        self._cache = session.catalog.caches.file_blocks

    async def read(self, part: StoredPart, blocks: Sequence[BlockRows]) -> AsyncGenerator[FileBatch, None]:
        """Yields the delete files in these rows of blocks of a part: first those that the process remembers, then the
        others, which it reads in memory for some blocks. Raises `InvalidPart`, `StoreUnavailable` after the deadline,
        `OutOfMemory`, and `StoreError`."""
        missing: list[BlockRows] = []
        for block in blocks:
            known = self._cache.get((part.key, block.start))
            if isinstance(known, DeleteRows) and (batch := known.select(block.rows)) is not None:
                yield batch
            else:
                missing.append(block)
        ranges = ranges_of(missing)
        if not ranges:
            return
        with reading_memory().hold(self._session.hold.owner) as hold:
            await hold.take(max(map(size_of, ranges)) + BLOCK_MEMORY)
            for group in ranges:
                body = await part.read(group[0].start, size_of(group))
                for some in batches(group, BLOCKS_AT_ONCE):
                    self._session.check_deadline()
                    yield await self._read(part, body, group[0].start, some)

    async def _read(self, part: StoredPart, body: bytes, start: int, blocks: Sequence[BlockRows]) -> FileBatch:
        """Returns the delete files in these rows of blocks, of which the bytes of the part from `start` are given. The
        process remembers those of blocks that were requested before, if they fit into the cache."""
        requested = [self._cache.request((part.key, block.start)) for block in blocks]
        size = ROW_WORK * sum(len(block.rows) for block in blocks)
        decode = partial(self._decoded, body, start, blocks, [each is not None for each in requested])
        found = await self._source.work.run(size, decode)
        for block, at, batch in zip(blocks, requested, found, strict=True):
            if at is not None:
                known = DeleteRows(dict(zip(block.rows, batch.files, strict=True)), batch.memory)
                self._cache.put((part.key, block.start), known, known.memory, at)
        return FileBatch([file for batch in found for file in batch.files], sum(batch.memory for batch in found))

    def _decoded(
        self, body: bytes, start: int, blocks: Sequence[BlockRows], written: Iterable[bool]
    ) -> Sequence[FileBatch]:
        """Returns the delete files in these rows of each block, with their JSON for the blocks for which `written` is
        True. Raises `InvalidPart`."""
        found: list[FileBatch] = []
        for block, is_written in zip(blocks, written, strict=True):
            first = block.start - start
            files = read_rows(body[first : first + block.size], block.rows)
            found.append(FileBatch.of([*map(self._with_json, files)] if is_written else files))
        return found

    def _with_json(self, file: ContentFile) -> ContentFile:
        """Returns a delete file with its JSON, which each answer that has the file needs."""
        return file._replace(written=dumps(file_json(file, self._types_of(file.spec_id))))
