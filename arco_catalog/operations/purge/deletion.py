"""Deletes what an entity leads to, phase by phase (docs/design/purge.md#what-is-deleted)."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

from arco_catalog.operations.purge.progress import Phase, Progress
from arco_catalog.operations.purge.reach import Reached, ReachedFile, entries_of, manifests_of
from arco_catalog.operations.purge.removal import AT_ONCE, Removal
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.locations import Location
from arco_catalog.tasks.execution import Execution

T = TypeVar("T")

READ_AT_ONCE = 8
"""Manifests that are read beside each other: as many calls to delete may be under way."""


class Deletion(Removal):
    """Deletes all of one entity, as the holder of a lease."""

    def __init__(
        self,
        execution: Execution,
        locations: Sequence[str],
        progress: Progress,
        allows: Callable[[Location], bool] = lambda _: True,
    ) -> None:
        super().__init__(execution, locations, progress, allows)
        self._execution = execution

    async def run(self, reached: Reached) -> None:
        """Deletes everything, from where an earlier lease left off. Raises `LeaseLost`, `TaskFailed`, `StoreError`."""
        if not self.progress.deleting:  # durable before the first delete is sent (docs/design/purge.md#rule-7)
            await self._save(replace(self.progress, deleting=True))
        execution = self._execution
        if self.progress.phase is Phase.DATA:
            gone = await self._data(reached)
            progress = self.progress.without([*reached.gone, *gone])  # by this phase nothing of it was deleted
            await self._save(replace(progress, phase=Phase.STATISTICS))
        if self.progress.phase is Phase.STATISTICS:
            await self._all(await self._unshared([ReachedFile(each) for each in reached.statistics]))
            await self._save(replace(self.progress, phase=Phase.MANIFESTS))
        if self.progress.phase is Phase.MANIFESTS:
            async with aclosing(_grouped(manifests_of(execution, reached), AT_ONCE)) as groups:
                async for manifests in groups:
                    await self._all(await self._unshared(manifests))
            await self._save(replace(self.progress, phase=Phase.LISTS))
        if self.progress.phase is Phase.LISTS:
            await self._all(await self._unshared([ReachedFile(each) for each in reached.lists]))
            await self._save(replace(self.progress, phase=Phase.METADATA))
        if self.progress.phase is Phase.METADATA:
            files = await self._unshared([ReachedFile(each) for each in reached.files])
            for file in files:  # one after the other: the last is what the rest is found by
                await self._all([file])
                await execution.progress(self.progress.to_json(), 1)  # who goes on does not find it any more
            await self._save(replace(self.progress, phase=Phase.DONE))

    async def _unshared(self, files: Sequence[ReachedFile]) -> Sequence[ReachedFile]:
        """Those of these that are to be deleted: all, where nobody else was found to lead to any."""
        return files

    async def _data(self, reached: Reached) -> Sequence[str]:
        """Deletes what manifests name. Returns which manifest lists were gone, and manifests that are not counted
        yet."""
        lists: list[str] = []
        manifests = manifests_of(self._execution, reached, skip=self.progress.done, gone=lists)
        async with aclosing(_grouped(manifests, READ_AT_ONCE)) as groups:
            async for group in groups:
                before, pending, gone = self.progress.files, list[ReachedFile](), list[str]()
                await gather(*(self._entries(manifest.location, pending, gone) for manifest in group))
                await self._all(pending)
                self.progress = replace(self.progress.without(gone), done=self.progress.done + len(group))
                await self._execution.progress(self.progress.to_json(), self.progress.files - before)
        return lists

    async def _entries(self, manifest: str, pending: list[ReachedFile], gone: list[str]) -> None:
        """Deletes what a manifest names, as many files at once as a call may take: the rest is left in `pending`, which
        the manifests of a group share. One that is not there is added to `gone`."""
        async with aclosing(entries_of(self._execution, manifest, gone)) as blocks:
            async for entries in blocks:
                pending += entries
                while len(pending) >= AT_ONCE:
                    full = pending[:AT_ONCE]
                    del pending[:AT_ONCE]
                    await self._all(full)

    async def _save(self, progress: Progress) -> None:
        self.progress = progress
        await self._execution.save(progress.to_json())


async def _grouped(items: AsyncGenerator[T, None], size: int) -> AsyncGenerator[Sequence[T], None]:
    """The items, so many at a time."""
    group: list[T] = []
    async with aclosing(items):
        async for item in items:
            group.append(item)
            if len(group) == size:
                yield group
                group = []
    if group:
        yield group
