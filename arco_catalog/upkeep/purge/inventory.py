"""The inventory of a purge: the metadata files, statistics files, manifest lists and manifests of a table, in chunks
that are stored, or in one chunk in memory (docs/design/purge.md#rule-29)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.purge_chunks import Chunk, Position, read_chunk
from arco_catalog.state.purge_progress import Progress
from arco_catalog.tasks.execution import Execution, Sessions
from arco_catalog.upkeep.purge.reach import Reached, ReachedFile, manifests_of
from storage_backends import StoreUnavailable


class Inventory(Protocol):
    """The interface of the inventory of a purge: the metadata files, statistics files, manifest lists and manifests of
    one table, in chunks. The manifests name the data files."""

    def chunks(self, start: str = "") -> AsyncGenerator[Chunk, None]:
        """Yields the chunks of the inventory, beginning with the one with the id `start`, or all of them. The order is
        always the same: the chunks with the oldest metadata files come first, the one with the current file last. In a
        chunk the newest metadata file comes first. Raises `StoreError`."""
        ...


class ListedInventory:
    """The inventory of a purge in memory, which is one chunk."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk

    async def chunks(self, start: str = "") -> AsyncGenerator[Chunk, None]:
        """Yields the one chunk, whatever `start` is."""
        yield self._chunk


class StoredInventory:
    """The inventory of a purge in the store, given by the last chunk. If a chunk can't be read, it removes the
    inventory from the checkpoint and raises `StoreUnavailable`: the next attempt takes the inventory again."""

    def __init__(self, execution: Execution, last: Chunk) -> None:
        self._execution = execution
        self._last = last

    async def chunks(self, start: str = "") -> AsyncGenerator[Chunk, None]:
        """Reads the chunks from the store, and yields them from the last stored one back to the first, which has the
        current metadata file. Starts with the chunk with the id `start`; an empty id means all. Raises
        `StoreUnavailable` if a chunk is missing or corrupt, after the removal of the inventory from the checkpoint."""
        chunk = self._last if start in ("", self._last.id) else await self._read(start)
        yield chunk
        while chunk.before:
            links = await gather(*(self._read(each) for each in chunk.before))
            for chunk in links:
                yield chunk

    async def _read(self, chunk: str) -> Chunk:
        """Reads a chunk of the inventory. If it is missing or corrupt, forgets the inventory and raises
        `StoreUnavailable`."""
        found = await read_chunk(self._execution.session().state, self._execution.task.id, chunk)
        if found is None:
            await forget_inventory(self._execution)
            raise StoreUnavailable(
                f"the chunk {chunk} of the inventory of the table's files is missing or corrupt: the next attempt "
                "makes a new inventory"
            )
        return found


async def forget_inventory(execution: Execution) -> None:
    """Removes the inventory from the checkpoint: the next attempt takes it again and repeats the phase. Raises
    `LeaseLost`, and `StoreError`."""
    fresh = Progress.parse(execution.checkpoint).without_inventory()
    await execution.save({**execution.checkpoint, **fresh.to_json()})


async def inventory_of(sessions: Sessions, reached: Reached, missing: list[str]) -> ListedInventory:
    """Reads the manifest lists in `reached`, and returns an inventory in memory of everything that was reached and the
    manifests in these lists. Manifest lists that do not exist are added to `missing`. Raises `TaskFailed` for one that
    can't be read."""
    async with aclosing(manifests_of(sessions, reached, gone=missing)) as found:
        manifests = tuple([each async for each in found])
    return ListedInventory(listed_chunk(reached, manifests))


def listed_chunk(reached: Reached, manifests: tuple[ReachedFile, ...] = ()) -> Chunk:
    """Returns one chunk, without an id, of everything that was reached and of these manifests. The newest metadata file
    comes first in it."""
    files = tuple(reversed(reached.files))
    return Chunk("", Position(), (), files, tuple(reached.lists), tuple(reached.statistics), manifests)
