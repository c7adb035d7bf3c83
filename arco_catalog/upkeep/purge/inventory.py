"""What a purge deletes, chunk by chunk: as it was stored by a walk, or as it was read at once
(docs/design/purge.md)."""

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
    """All that the metadata of one table names."""

    def chunks(self, start: str = "") -> AsyncGenerator[Chunk, None]:
        """The chunks from this one on, or all: the oldest metadata files first, the current one last. The order stays
        the same. Raises `StoreError`."""
        ...


class ListedInventory:
    """One that is in memory, as a single chunk."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk

    async def chunks(self, start: str = "") -> AsyncGenerator[Chunk, None]:
        """See `Inventory.chunks`."""
        yield self._chunk


class StoredInventory:
    """One that is stored. For a chunk that can't be read the checkpoint forgets the inventory, and `StoreUnavailable`
    is raised: the next attempt takes it again."""

    def __init__(self, execution: Execution, last: Chunk) -> None:
        self._execution = execution
        self._last = last

    async def chunks(self, start: str = "") -> AsyncGenerator[Chunk, None]:
        """See `Inventory.chunks`."""
        chunk = self._last if start in ("", self._last.id) else await self._read(start)
        yield chunk
        while chunk.before:
            links = await gather(*(self._read(each) for each in chunk.before))
            for chunk in links:
                yield chunk

    async def _read(self, chunk: str) -> Chunk:
        found = await read_chunk(self._execution.session().state, self._execution.task.id, chunk)
        if found is None:
            await forget_inventory(self._execution)
            raise StoreUnavailable(f"the chunk {chunk} of the inventory can't be read")
        return found


async def forget_inventory(execution: Execution) -> None:
    """Has the next attempt take the inventory again, and repeat its phase. Raises `LeaseLost`, and `StoreError`."""
    fresh = Progress.parse(execution.checkpoint).without_inventory()
    await execution.save({**execution.checkpoint, **fresh.to_json()})


async def inventory_of(sessions: Sessions, reached: Reached, missing: list[str]) -> ListedInventory:
    """The inventory of what was reached, with its manifests. Manifest lists that are not there are added to `missing`.
    Raises `TaskFailed`."""
    async with aclosing(manifests_of(sessions, reached, gone=missing)) as found:
        manifests = tuple([each async for each in found])
    return ListedInventory(listed_chunk(reached, manifests))


def listed_chunk(reached: Reached, manifests: tuple[ReachedFile, ...] = ()) -> Chunk:
    """All that was reached as one chunk."""
    files = tuple(reversed(reached.files))
    return Chunk("", Position(), (), files, tuple(reached.lists), tuple(reached.statistics), manifests)
