"""What a collection knows of entities: whether anything names them, and whether all that they committed has its receipt
(docs/design/collection.md)."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.planning.collection import has_moved_past
from arco_catalog.protocol.evidence import fence_pointer, fence_registry
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.checkpoints import Checkpoints
from arco_catalog.state.fields import text
from arco_catalog.state.floors import Floors, read_floors
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.upkeep.collection.names import Names
from arco_catalog.upkeep.collection.run import Run
from arco_catalog.upkeep.walk import walk

MOST_WALKED = 50_000
"""Entities of which a run remembers that it has walked them; whatever it forgets it walks again."""


@dataclass(frozen=True, slots=True)
class Walked:
    """An entity whose commits all have their receipts, up to the pointer as it was then. None of the pointers before
    `moved_ms` can be swapped any more."""

    current: MetadataFile
    moved_ms: int
    floor_ms: int | None


@dataclass(slots=True)
class Known:
    """What a process has learned of entities in one run: it may be kept from one batch of that run to its next."""

    named: Names | None = None
    """What HEAD named when it was first asked."""
    intended: Names = field(default_factory=Names)
    """Those of them that a transaction was to name, which may have aborted since."""
    fenced: Names | None = None
    """What it named after the fence of this process."""
    checkpoints: Checkpoints | None = None
    floors: Floors | None = None
    walked: dict[str, Walked | None] = field(default_factory=dict)


class Entities:
    """The entities of one run."""

    def __init__(self, run: Run, known: Known | None = None) -> None:
        self._run = run
        self._lock = asyncio.Lock()
        self._known = known or Known()

    async def is_named(self, entity: str) -> bool:
        """Whether HEAD named it when it was first asked: a name, a tombstone, or an intent on a name leads to it."""
        async with self._lock:
            if self._known.named is None:
                self._known.named = await self._names(await self._run.session.state.head(), self._known.intended)
        return entity in self._known.named

    async def is_nameless(self, entity: str) -> bool:
        """Whether nothing names it, and nothing will: what was sent a week ago to name it relied on a HEAD that has
        moved (docs/design/collection.md#rule-2)."""
        if await self.is_named(entity):
            return False
        if not self._run.delete:
            return True
        async with self._lock:
            if self._known.fenced is None:
                session = self._run.session
                async with session.lock_registry():
                    await fence_registry(session.state, session.runtime)
                self._known.fenced = await self._names(await session.state.head())
        return entity not in self._known.fenced

    async def _names(self, head: RegistryState, intended: Names | None = None) -> Names:
        found = Names()
        for kind in ("relation\n", "tombstone\n"):
            async with aclosing(entries_in(self._run.session.state, head.index, kind)) as entries:
                async for _, entry in entries:
                    found.add(text(entry, "entity"))
                    if intended is not None and "transaction" in entry:
                        intended.add(text(entry, "entity"))
        return found

    async def walked(self, entity: str, written_ms: int) -> Walked | None:
        """The entity, walked to the end after its pointer has moved past what was written at this time. It is fenced
        where it has not moved. None where it has no name or no pointer, or can't be walked to the end: then nothing is
        known. What an entity without a name has in its pointer may never have become current."""
        every = self._known.walked
        known = every.get(entity)
        if entity in every and (known is None or has_moved_past(known.moved_ms, written_ms, self._run.retention)):
            return known
        if len(every) >= MOST_WALKED:
            every.clear()
        walked = every[entity] = await self._walk(entity, written_ms)
        return walked

    async def _walk(self, entity: str, written_ms: int) -> Walked | None:
        run = self._run
        key = run.paths.pointer(entity)
        found = await run.read(key)
        if found is None or not await self.is_named(entity) or entity in self._known.intended:
            return None  # never current, if the transaction aborts: the next run decides
        pointer, moved_ms = Pointer.parse(found.body, found.version, key), found.written_ms
        if pointer.intent is not None or not has_moved_past(moved_ms, written_ms, run.retention):
            if run.delete:
                try:
                    await fence_pointer(run.session, entity)
                except CommitStateUnknown:
                    return None
            moved_ms = found.now_ms
        if self._known.checkpoints is None:
            self._known.checkpoints = await Checkpoints.read(run.session.state)
            self._known.floors = await read_floors(run.session.state)
        floors = self._known.floors or {}
        done = await walk(
            run.session,
            entity,
            self._known.checkpoints.by_entity.get(entity),
            dry=not run.delete,
            should_stop=run.should_stop,
        )
        if done.checkpoint is None or not done.checkpoint.complete or (not run.delete and done.stats.missing_count):
            return None
        after = await run.session.state.pointer(entity)
        return None if after is None else Walked(after.metadata, moved_ms, floors.get(entity))
