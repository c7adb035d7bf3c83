"""Removes expired tombstones of dropped tables and views from the registry's index
(docs/design/collection.md#rule-3)."""

from collections.abc import Sequence
from contextlib import aclosing

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.collection import Kind, expire, is_expired
from arco_catalog.protocol.evidence import mark_dropped
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.index import Edits
from arco_catalog.state.needs import Steps
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.tombstone import PURGED, Tombstone
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run

MAX_REMOVED = 100
"""Tombstones that one registry commit removes."""


async def collect_tombstones(run: Run, entities: Entities) -> None:
    """Removes expired tombstones from the registry's index; the drop can't be undone afterwards. A tombstone that is
    not purged stays until all commits of the entity have receipts or the pointer is gone, since later runs take a
    commit without a receipt for one that never applied. A dry run only counts them."""
    head, now_ms = await run.session.state.head(), run.session.now_ms()
    expired: list[Tombstone] = []
    async with aclosing(entries_in(run.session.state, head.index, "tombstone\n")) as entries:
        async for _, entry in entries:
            tombstone = Tombstone(entry)
            if is_expired(tombstone, now_ms, run.retention):
                expired.append(tombstone)
            if len(expired) == MAX_REMOVED:
                await _collect(run, entities, expired)
                expired = []
    await _collect(run, entities, expired)


async def _collect(run: Run, entities: Entities, expired: Sequence[Tombstone]) -> None:
    """Removes the expired tombstones that are ready, in one registry commit, and counts them. A dry run only counts
    them."""
    ready = await run.each(expired, lambda tombstone: _is_ready(run, entities, tombstone))
    gone = [tombstone for tombstone, is_ready in zip(expired, ready, strict=True) if is_ready]
    for tombstone in gone:
        purged_ms = tombstone.json.get("purged_ms")
        written_ms = purged_ms if isinstance(purged_ms, int) else tombstone.dropped_ms
        run.stats.collects(Kind.TOMBSTONE, written_ms=written_ms)
    if gone and run.delete:
        await _expire(run, gone)


async def _is_ready(run: Run, entities: Entities, tombstone: Tombstone) -> bool:
    """Whether a tombstone may be removed: the table is purged, all commits have receipts, or there is no pointer.
    Of one that is not purged, first marks the pointer as dropped, except in a dry run. False if the entity can't be
    read, which adds to the unreadable ones."""
    if tombstone.state == PURGED:
        return True
    entity = tombstone.entity

    async def look() -> bool:
        if run.delete:
            await mark_dropped(run.session, entity, tombstone.operation)
        walked = await entities.ensure_walked(entity, tombstone.dropped_ms)
        return walked is not None or not await run.exists(run.paths.pointer(entity))

    return await run.unless_unreadable(f"entity {entity}, which was dropped", look()) is True


async def _expire(run: Run, gone: Sequence[Tombstone]) -> None:
    """Removes these tombstones from the registry in one commit, except those that have changed since or whose purge has
    begun."""

    def edit(head: RegistryState) -> Steps[Edits | None]:
        edits: dict[str, JsonObject | None] = {}
        for tombstone in gone:
            edits.update((yield from expire(head.index, tombstone)))
        return edits

    detail: JsonObject = {"entities": [tombstone.entity for tombstone in gone]}
    await change_registry(run.session, "collect-tombstones", detail, edit)
