"""Removes the records of walks, collections and the event feed about entities that no longer exist: checkpoints,
floors, file directories and cursors (docs/design/collection.md#rule-11)."""

from arco_catalog.planning.collection import Kind
from arco_catalog.state.checkpoints import Checkpoints
from arco_catalog.state.feed_cursors import SHARDS, forget_cursors, read_shard, shard_of
from arco_catalog.state.file_directories import forget_entities, read_entities
from arco_catalog.state.floors import forget_floors, read_floors
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run


async def collect_checkpoints(run: Run, entities: Entities) -> None:
    """Removes the walk checkpoints, the receipt floors, the records of file directories and the cursors of the event
    feed of entities that have no entry in the registry, neither a name nor a tombstone, and no pointer. A dry run only
    counts these entities."""
    state = run.session.state
    checkpoints = await Checkpoints.read(state)
    recorded = {*checkpoints.by_entity, *await read_floors(state), *await read_entities(state)}
    for number in range(SHARDS):
        recorded |= {*(await read_shard(state, number)).by_entity}

    async def is_gone(entity: str) -> bool:
        return await entities.is_nameless(entity) and not await run.exists(run.paths.pointer(entity))

    unnamed = [entity for entity in recorded if not await entities.is_named(entity)]
    gone = [entity for entity, yes in zip(unnamed, await run.each(unnamed, is_gone), strict=True) if yes]
    for _ in gone:
        run.stats.collects(Kind.CHECKPOINT)
    if gone and run.delete:
        checkpoints.forget(gone)
        await checkpoints.write(state)
        await forget_floors(state, gone)
        await forget_entities(state, gone)
        for number in {shard_of(entity) for entity in gone}:
            await forget_cursors(state, number, gone)
