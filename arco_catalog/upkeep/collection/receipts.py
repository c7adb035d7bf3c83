"""Deletes receipts (docs/design/collection.md#rule-4, docs/design/collection.md#rule-5): pending ones of commits that
have a committed receipt, or that never applied, together with the metadata files of the latter; and old committed ones.
OpenLineage events have the same prefix, and are deleted by their age alone."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from arco_catalog.planning.collection import Fate, Kind, fate_of, is_older, is_replaced
from arco_catalog.state import receipt
from arco_catalog.state.fields import integer, optional_text, text
from arco_catalog.state.floors import raise_floors
from arco_catalog.upkeep.collection.batch_runner import Batch, BatchRunner, delete_all, run_all
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.files import remove_manifest_list, remove_metadata_file
from arco_catalog.upkeep.collection.pipeline import PipelineProgress
from arco_catalog.upkeep.collection.run import BATCH, Run
from storage_backends import Listed


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt that may be deleted: the object as a listing has it, the entity, the location of the metadata file, and
    the time of that file in milliseconds since 1970. `manifest_list` is the list that the catalog wrote for a rebased
    append, None for other commits."""

    listed: Listed
    entity: str
    file: str
    ms: int
    manifest_list: str | None


async def collect_receipts(run: Run, entities: Entities, pipeline: PipelineProgress, runner: BatchRunner) -> None:
    """Deletes old receipts, pending and committed, if `_fate` and `_may_go` allow it, and old OpenLineage
    events, in one listing; a dry run only counts. A committed receipt is kept, for example, if the pipeline has not
    read the day, or if there still is a pending one. So the last batch of them is run after all pending ones."""
    committed: list[Listed] = []
    await run_all(runner, run, entities, _batches(run, pipeline, committed))
    await run_all(runner, run, entities, _rest(committed))


async def _rest(committed: Sequence[Listed]) -> AsyncGenerator[Batch[Listed, None], None]:
    """Yields one batch of all these committed receipts; nothing if there are none."""
    if committed:
        yield Batch(_collect_committed, committed)


async def _batches(
    run: Run, pipeline: PipelineProgress, committed: list[Listed]
) -> AsyncGenerator[Batch[Listed, None], None]:
    """Lists receipts and OpenLineage events, and yields the old ones in batches, each of one kind, without committed
    receipts of days that the pipeline has not read. Committed receipts that do not fill a batch remain in the list
    `committed`."""
    pending: list[Listed] = []
    async with aclosing(run.pages(run.paths.events)) as pages:
        async for page, now_ms in pages:
            lineage: list[Listed] = []
            for each in page:
                if run.paths.read_late_mark(each.key) is not None:
                    continue
                if run.paths.is_lineage_event(each.key):
                    if is_older(each.written_ms, now_ms, run.retention.receipts_ms):
                        lineage.append(each)
                elif f"/{receipt.PENDING}/" in each.key:
                    if is_older(each.written_ms, now_ms, run.retention.orphans_ms):
                        pending.append(each)
                elif is_older(each.written_ms, now_ms, run.retention.receipts_ms) and pipeline.has_read_day(
                    run.paths.read_receipt_day(each.key)
                ):
                    committed.append(each)
            if lineage:
                yield Batch(partial(delete_all, kind=Kind.LINEAGE_EVENT), lineage)
            if len(pending) >= BATCH:
                yield Batch(_collect_pending, pending)
                pending = []
            if len(committed) >= BATCH:
                yield Batch(_collect_committed, [*committed])
                committed.clear()
    if pending:
        yield Batch(_collect_pending, pending)


async def _read(run: Run, batch: Sequence[Listed]) -> Sequence[Receipt]:
    """Reads the receipts at these keys. Returns the ones that exist and are valid; invalid ones add to the unreadable
    ones."""

    async def parsed(each: Listed) -> Receipt | None:
        found = await run.read(each.key)
        if found is None:
            return None
        document = receipt.parse(found.body, each.key)
        return Receipt(
            each,
            text(document, "entity"),
            text(document, "metadata_location"),
            integer(document, "metadata_ms"),
            optional_text(document, receipt.MANIFEST_LIST),
        )

    read = await run.each(batch, lambda each: run.unless_unreadable(each.key, parsed(each)))
    return [each for each in read if each is not None]


async def _walk(run: Run, entities: Entities, batch: Sequence[Receipt]) -> None:
    """Walks the entities of these receipts, once for an entity, so that all their commits get receipts; first fences
    the pointer unless it has no intent and was written long enough after the youngest of the receipts. A dry run sets
    no fence and writes no receipt. Entities that can't be read add to the unreadable ones of the run. The results are
    in the cache of `entities`."""
    youngest: dict[str, int] = {}
    for each in batch:
        youngest[each.entity] = max(youngest.get(each.entity, 0), each.listed.written_ms)
    await run.each(
        youngest.items(), lambda each: run.unless_unreadable(f"entity {each[0]}", entities.ensure_walked(*each))
    )


async def _collect_pending(run: Run, entities: Entities, batch: Sequence[Listed]) -> None:
    """Deletes the pending receipts of commits that have a committed receipt or never applied, with the metadata file
    and the manifest list of the latter. The others are kept, and so are ones that can't be read, or with a metadata
    file that must stay. A dry run only counts."""
    announced = await _read(run, batch)
    await _walk(run, entities, announced)
    fates = await run.each(announced, lambda each: run.unless_unreadable(each.listed.key, _fate(run, entities, each)))
    gone = [each for each, fate in zip(announced, fates, strict=True) if fate in (Fate.RECEIPTED, Fate.LOST)]
    await run.collect(Kind.PENDING_RECEIPT, [each.listed for each in gone])


async def _fate(run: Run, entities: Entities, pending: Receipt) -> Fate:
    """Decides about a pending receipt: its commit has a committed receipt (`Fate.RECEIPTED`), or never applied
    (`Fate.LOST`); the files of the latter are deleted, and by a dry run only counted. The receipt is kept (`Fate.KEPT`)
    if nothing is known about the commit, or the metadata file must be kept; a manifest list that is kept does not
    count."""
    walked = await entities.ensure_walked(pending.entity, pending.listed.written_ms)
    if walked is None and (
        await run.exists(run.paths.pointer(pending.entity)) or not await entities.is_nameless(pending.entity)
    ):
        return Fate.KEPT
    fate = fate_of(
        committed=await run.exists(pending.listed.key.replace(f"/{receipt.PENDING}/", f"/{receipt.COMMITTED}/")),
        metadata_ms=pending.ms,
        floor_ms=None if walked is None else walked.floor_ms,
        current=walked is not None and walked.current.location == pending.file,
    )
    if fate is Fate.LOST and (
        await run.read(pending.listed.key) is None  # another collected both receipts, the pending one first
        or not await remove_metadata_file(run, pending.entity, pending.file, pending.listed.written_ms)
    ):
        return Fate.KEPT
    if fate is Fate.LOST and pending.manifest_list is not None:
        await remove_manifest_list(run, pending.entity, pending.file, pending.manifest_list)
    return fate


async def _collect_committed(run: Run, entities: Entities, batch: Sequence[Listed]) -> None:
    """Deletes the committed receipts in this batch that `_may_go` allows, after it raised the floors of the entities.
    Receipts that can't be read are kept. A dry run only counts, and raises no floor."""
    stored = await _read(run, batch)
    await _walk(run, entities, stored)
    may_go = await run.each(stored, lambda each: run.unless_unreadable(each.listed.key, _may_go(run, entities, each)))
    gone = [each for each, yes in zip(stored, may_go, strict=True) if yes]
    floors: dict[str, int] = {}
    for each in gone:
        floors[each.entity] = max(floors.get(each.entity, 0), each.ms)
    if run.delete and floors:
        await raise_floors(run.session.state, floors)
    await run.collect(Kind.COMMITTED_RECEIPT, [each.listed for each in gone])


async def _may_go(run: Run, entities: Entities, committed: Receipt) -> bool:
    """Whether an old committed receipt may be deleted. The pending receipt of the commit must be gone, since it would
    otherwise look like one of a commit that never applied. Besides, either the entity is walked and the receipt's file
    is no longer current, or the entity has neither a pointer nor a name."""
    if await run.exists(committed.listed.key.replace(f"/{receipt.COMMITTED}/", f"/{receipt.PENDING}/")):
        return False
    walked = await entities.ensure_walked(committed.entity, committed.listed.written_ms)
    if walked is not None:
        return is_replaced(committed.ms, walked.current.ms)
    bare = not await run.exists(run.paths.pointer(committed.entity))
    return bare and await entities.is_nameless(committed.entity)
