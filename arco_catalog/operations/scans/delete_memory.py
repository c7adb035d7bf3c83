"""The memory of the delete files that plans have decoded, for all plans of a process.

What a manifest list states of delete files may be wrong, so they are counted as they are decoded. A plan has a little
memory for them. One that needs more waits for its turn, and has a large amount until it ends: no two plans wait for
each other with half of what they need.
"""

import asyncio
from typing import Final

from arco_catalog.iceberg.content_files import FILE_BYTES, FileBatch
from arco_catalog.iceberg.delete_index import MAX_COMPARED
from arco_catalog.iceberg.errors import Unsupported
from arco_catalog.operations.scans.listed_manifests import ADVICE
from arco_catalog.operations.scans.manifest_source import WAIT_SECONDS
from arco_catalog.state.memory import Hold, Memory, MemoryOfLoops, limit_for_large

MAX_BYTES: Final = 48 << 20
"""Maximum bytes of memory of the delete files that a plan holds at one time."""
FREE_BYTES: Final = 4 << 20
"""Bytes of memory for which no plan waits."""
COMPARED_BYTES: Final = 250
"""Bytes of memory of what an index of delete files has of a column of an equality delete."""

_MEMORY: Final = MemoryOfLoops(limit_for_large(MAX_BYTES), WAIT_SECONDS)


def deletes_memory() -> Memory:
    """Returns the memory of delete files that all plans on this event loop share: `MAX_BYTES`, for one at a time."""
    return _MEMORY.current()


class TooManyDeletes(Unsupported):
    """The delete files that a plan needs at one time take more memory than it may have for them."""


class DeletesMemory:
    """The memory of the delete files of one plan, beside the account of its request. It must be closed."""

    def __init__(self, request: Hold) -> None:
        self._request = request
        self._hold = deletes_memory().hold(request.owner)
        self._turn = asyncio.Lock()
        self._used = self._reserved = 0

    async def add(self, batch: FileBatch) -> None:
        """Counts delete files that were decoded, and then waits for memory for them if necessary. Raises
        `TooManyDeletes` if the plan would hold too many, and `OutOfMemory`."""
        size = _memory_of(batch)
        self._check(size)
        self._used += size
        if self._used > self._reserved:
            async with self._turn:
                await self._take()

    def check_files(self, count: int) -> None:
        """Raises `TooManyDeletes` if the plan holds too many delete files together with so many that are not decoded
        yet."""
        self._check(FILE_BYTES * count)

    def _check(self, size: int) -> None:
        """Raises `TooManyDeletes` if the plan holds too many delete files together with others of `size` bytes."""
        if self._used + size > MAX_BYTES:
            raise TooManyDeletes(
                "The delete files of this table that a plan needs at a time are too many, or have too many statistics: "
                f"compact them (rewrite_data_files), or {ADVICE}"
            )

    async def _take(self) -> None:
        """Takes the memory that the files need: at first a little of the request's, and once that does not suffice the
        whole share of delete files. Raises `OutOfMemory`."""
        if not self._reserved:
            await self._request.take(FREE_BYTES)
            self._reserved = FREE_BYTES
        if self._used > self._reserved:
            await self._hold.take(MAX_BYTES)
            self._reserved = MAX_BYTES

    def clear(self) -> None:
        """Sets the count of the plan's delete files to zero. The plan keeps the memory that it holds."""
        self._used = 0

    def close(self) -> None:
        """Gives back the plan's share of the memory that all plans have for delete files, if the plan took it, so that
        the next plan gets it. The request keeps the part that is not shared."""
        self._hold.close()


def _memory_of(batch: FileBatch) -> int:
    """Returns the bytes of memory of decoded delete files, with those that an index of them will take."""
    compared = sum(min(MAX_COMPARED, len(file.equality_ids or ())) for file in batch.files)
    return batch.memory + COMPARED_BYTES * compared
