"""Facts about entities that a collection relies on: whether a record names them, and whether all their commits have
receipts (docs/design/collection.md)."""

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

MAX_WALKED = 50_000
"""Walked entities that a run remembers. Beyond that it forgets all, and walks them again."""


@dataclass(frozen=True, slots=True)
class WalkedEntity:
    """An entity whose commits all have receipts, up to the metadata file `current`. No write that relied on the pointer
    as it was before `moved_ms` can apply any more; but a dry run fences no pointer for that. Receipts of metadata files
    up to the time `floor_ms` may have been deleted; None if none was."""

    current: MetadataFile
    moved_ms: int
    floor_ms: int | None


@dataclass(slots=True)
class EntityCache:
    """Facts about entities that a process read in one collection run, and may reuse for later batches of that run."""

    named: Names | None = None
    """The entities in the first HEAD that was read."""
    intended: Names = field(default_factory=Names)
    """The entities of `named` whose names are intents of a transaction, which may abort."""
    fenced: Names | None = None
    """The entities in HEAD after this process fenced the registry."""
    checkpoints: Checkpoints | None = None
    floors: Floors | None = None
    walked: dict[str, WalkedEntity | None] = field(default_factory=dict)


class Entities:
    """Answers questions about entities within one collection run, such as whether the registry names them, from a
    cache."""

    def __init__(self, run: Run, known: EntityCache | None = None) -> None:
        self._run = run
        self._lock = asyncio.Lock()
        self._known = known or EntityCache()

    async def is_named(self, entity: str) -> bool:
        """Whether an entry of a relation, a tombstone or the intent of a transaction on a name had this entity in the
        first HEAD that this run read."""
        async with self._lock:
            if self._known.named is None:
                self._known.named = await self._names(await self._run.session.state.head(), self._known.intended)
        return entity in self._known.named

    async def is_nameless(self, entity: str) -> bool:
        """Whether no entry of the registry has this entity, and none can get it by a write that is under way: the
        registry is fenced before the second reading, since a write may have been sent on an older HEAD. A dry run sets
        no fence and reads only once (docs/design/collection.md#rule-2)."""
        if await self.is_named(entity):
            return False
        if not self._run.delete:
            return True
        async with self._lock:
            if self._known.fenced is None:
                await fence_registry(self._run.session)
                self._known.fenced = await self._names(await self._run.session.state.head())
        return entity not in self._known.fenced

    async def _names(self, head: RegistryState, intended: Names | None = None) -> Names:
        """Returns the entities of all relations and tombstones in a HEAD; adds the ones whose entry is the intent of a
        transaction to `intended`, if that is given."""
        found = Names()
        for kind in ("relation\n", "tombstone\n"):
            async with aclosing(entries_in(self._run.session.state, head.index, kind)) as entries:
                async for _, entry in entries:
                    found.add(text(entry, "entity"))
                    if intended is not None and "transaction" in entry:
                        intended.add(text(entry, "entity"))
        return found

    async def ensure_walked(self, entity: str, written_ms: int) -> WalkedEntity | None:
        """Walks an entity to the end, so that every commit up to the current metadata file has a receipt, and returns
        the result. First fences the pointer, unless it has no intent and was written at least `Retention.margin_ms`
        after `written_ms`, the time of an object to delete: commits from before that time can't apply then. A dry run
        sets no fence. A result of this run for which that holds, or that was None, is reused.

        Returns None if nothing is known about the commits, so that the object must not be deleted: the entity has
        neither a name nor a tombstone, or no pointer, the name is the intent of a transaction, the outcome of the fence
        is unknown, the walk is incomplete, or, in a dry run, a receipt is missing.
        """
        every = self._known.walked
        known = every.get(entity)
        if entity in every and (known is None or has_moved_past(known.moved_ms, written_ms, self._run.retention)):
            return known
        if len(every) >= MAX_WALKED:
            every.clear()
        walked = every[entity] = await self._walk(entity, written_ms)
        return walked

    async def _walk(self, entity: str, written_ms: int) -> WalkedEntity | None:
        """Fences the pointer of an entity if `ensure_walked` needs that, except in a dry run, and walks the commits.
        Returns None in the cases that `ensure_walked` lists."""
        run = self._run
        key = run.paths.pointer(entity)
        found = await run.read(key)
        if found is None or not await self.is_named(entity) or entity in self._known.intended:
            return None  # never current if the transaction aborts, which the next run knows
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
        return None if after is None else WalkedEntity(after.metadata, moved_ms, floors.get(entity))
