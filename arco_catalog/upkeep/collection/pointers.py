"""Deletes the pointers of entities that no entry of the registry names (docs/design/collection.md#rule-2)."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from arco_catalog.planning.collection import Kind
from arco_catalog.state import receipt
from arco_catalog.state.fields import text
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.upkeep.collection.batch_runner import BatchRunner, run_older
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.files import remove_metadata_file
from arco_catalog.upkeep.collection.run import Run
from storage_backends import Listed

MAX_FILES = 1_000_000


async def collect_pointers(run: Run, entities: Entities, runner: BatchRunner) -> None:
    """Deletes pointers that are older than the retention of orphans and that no entry of the registry names: of creates
    that never committed, and of entities with collected tombstones. The metadata files of a view are deleted before the
    pointer; the files of a table are never deleted here. A dry run only counts."""
    await run_older(runner, run, entities, run.paths.pointers, run.retention.orphans_ms, _collect)


async def _collect(run: Run, entities: Entities, batch: Sequence[Listed]) -> None:
    """Deletes the pointers in this batch of entities that no name, tombstone or transaction leads to, after the
    metadata files of views. A pointer that can't be read is kept, and adds to the unreadable ones. A dry run only
    counts."""
    prefix = run.paths.pointers
    names = [each.key.removeprefix(prefix).removesuffix(".json") for each in batch]
    nameless = [each for each, entity in zip(batch, names, strict=True) if await entities.is_nameless(entity)]
    deletable = await run.each(
        nameless, lambda each: run.unless_unreadable(each.key, _delete_metadata_of_view(run, each.key))
    )
    await run.collect(Kind.POINTER, [each for each, yes in zip(nameless, deletable, strict=True) if yes])


async def _delete_metadata_of_view(run: Run, key: str) -> bool:
    """Deletes and counts the files that `_own_files` finds of a view with the pointer at this key, if they may
    be removed, and counts the others in `files_left`; of a table, none. A dry run only counts. Returns true if the
    pointer may be deleted then, also if a file stays; false if the pointer no longer exists."""
    found = await run.read(key)
    if found is None:
        return False
    pointer = Pointer.parse(found.body, found.version, key)
    if text(pointer.document, "type") != "view":
        return True
    async with aclosing(_own_files(run, pointer)) as files:
        async for file in files:
            if not await remove_metadata_file(run, pointer.entity, file.location, found.written_ms):
                run.stats.files_left += 1
    return True


async def _own_files(run: Run, pointer: Pointer) -> AsyncGenerator[MetadataFile, None]:
    """Yields the metadata files that an entity itself wrote, the newest first: from the current file back, `MAX_FILES`
    at most. Ends before a file without a receipt of the entity, and before the file from which it was registered."""
    file: MetadataFile | None = pointer.metadata
    for _ in range(MAX_FILES):
        if file is None or file.location == pointer.registered_from:
            return
        key = commit_key(pointer.entity, file.location)
        for stage in (receipt.COMMITTED, receipt.PENDING):
            where = run.paths.receipt(stage, key, file.ms)
            found = await run.read(where)
            if found is not None:
                break
        else:
            return
        yield file
        file = receipt.base_of(receipt.parse(found.body, where))
