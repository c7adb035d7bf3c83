"""Deletes the files of a dropped table, phase by phase (docs/design/purge.md#what-is-deleted)."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace

from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.locations import Location
from arco_catalog.state.purge_chunks import Chunk
from arco_catalog.state.purge_progress import Phase, Progress
from arco_catalog.tasks.execution import Execution
from arco_catalog.upkeep.purge.inventory import Inventory
from arco_catalog.upkeep.purge.reach import ReachedFile, entries_of
from arco_catalog.upkeep.purge.removal import AT_ONCE, Removal

READ_AT_ONCE = 8
"""Manifests that are read concurrently, so this is also the maximum of concurrent calls to delete."""


_Names = Callable[[Chunk], Sequence[ReachedFile]]


def _files(locations: Iterable[str]) -> Sequence[ReachedFile]:
    """Returns files of unknown size at these locations."""
    return [ReachedFile(each) for each in locations]


_PHASES: Sequence[tuple[Phase, _Names, Phase]] = (
    (Phase.STATISTICS, lambda chunk: _files(chunk.statistics), Phase.MANIFESTS),
    (Phase.MANIFESTS, lambda chunk: chunk.manifests, Phase.LISTS),
    (Phase.LISTS, lambda chunk: _files(chunk.lists), Phase.METADATA),
    (Phase.METADATA, lambda chunk: _files(reversed(chunk.files)), Phase.DONE),
)
"""For each phase after the first, its files and the next phase (docs/design/purge.md#rule-9)."""


class Deletion(Removal):
    """Deletes the files that one dropped table names and that lie in the table's locations, phase by phase under a
    lease, and records each step in the task's checkpoint."""

    def __init__(
        self,
        execution: Execution,
        locations: Sequence[str],
        progress: Progress,
        allows: Callable[[Location], bool] = lambda _: True,
    ) -> None:
        super().__init__(execution, locations, progress, allows)
        self._execution = execution

    async def run(self, inventory: Inventory) -> None:
        """Deletes the files in the table's locations that an inventory names, without the ones that `_unshared` leaves
        out, phase by phase, beginning at the position in the checkpoint, which a previous lease may have saved. Raises
        `LeaseLost`, `TaskFailed`, and `StoreError`."""
        if not self.progress.deleting:  # durable before the first delete is sent (docs/design/purge.md#rule-7)
            await self._save(replace(self.progress, deleting=True))
        if self.progress.phase is Phase.DATA:
            await self._data(inventory)
            await self._save(self.progress.in_phase(Phase.STATISTICS))
        for phase, names, following in _PHASES:
            if self.progress.phase is phase:
                # Metadata files one at a time, the current one last: it leads to the others if the inventory is lost.
                await self._delete_named(inventory, names, 1 if phase is Phase.METADATA else AT_ONCE)
                await self._save(self.progress.in_phase(following))

    async def _unshared(self, files: Sequence[ReachedFile]) -> Sequence[ReachedFile]:
        """Returns those of these files that may be deleted: here all. The anti-join overrides this method to leave out
        files that other tables refer to."""
        return files

    async def _delete_named(self, inventory: Inventory, names: _Names, at_once: int) -> None:
        """Deletes the files in the table's locations that `names` selects from each chunk of the inventory, without the
        ones that `_unshared` leaves out, `at_once` at a time, beginning at the position in the checkpoint, which it
        moves forward."""
        async with aclosing(inventory.chunks(self.progress.chunk)) as chunks:
            async for chunk in chunks:
                done = self._done_of(chunk)
                for batch in batches(names(chunk)[done:], at_once):
                    await self._all(await self._unshared(batch))
                    done += len(batch)
                    self.progress = self.progress.at(chunk.id, done)
                    await self._execution.progress(self.progress.to_json(), len(batch))

    async def _data(self, inventory: Inventory) -> None:
        """Deletes the data files and delete files that the manifests of the inventory name and that lie in the table's
        locations, beginning at the position in the checkpoint, which it moves forward. Adds manifests that do not exist
        to the progress as missing."""
        async with aclosing(inventory.chunks(self.progress.chunk)) as chunks:
            async for chunk in chunks:
                done = self._done_of(chunk)
                for group in batches(chunk.manifests[done:], READ_AT_ONCE):
                    before, pending, missing = self.progress.files, list[ReachedFile](), list[str]()
                    await gather(*(self._entries(manifest.location, pending, missing) for manifest in group))
                    await self._all(pending)
                    done += len(group)
                    self.progress = self.progress.with_missing(missing).at(chunk.id, done)
                    await self._execution.progress(self.progress.to_json(), self.progress.files - before)

    def _done_of(self, chunk: Chunk) -> int:
        """Returns how many names of a chunk previous leases have dealt with; 0 unless the checkpoint is at this
        chunk."""
        return self.progress.chunk_done if chunk.id == self.progress.chunk else 0

    async def _entries(self, manifest: str, pending: list[ReachedFile], gone: list[str]) -> None:
        """Deletes the files that a manifest names, in batches of `AT_ONCE`, except files outside of the table's
        locations, and ones without a key. The files of the last, incomplete batch are left in the list `pending`, which
        several manifests share. A manifest that does not exist is added to `gone`."""
        async with aclosing(entries_of(self._execution, manifest, gone)) as blocks:
            async for entries in blocks:
                pending += entries
                while len(pending) >= AT_ONCE:
                    full = pending[:AT_ONCE]
                    del pending[:AT_ONCE]
                    await self._all(full)

    async def _save(self, progress: Progress) -> None:
        """Sets `progress`, and saves it in the task's checkpoint at once."""
        self.progress = progress
        await self._execution.save(progress.to_json())
