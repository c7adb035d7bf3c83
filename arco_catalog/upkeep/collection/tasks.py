"""Deletes tasks that are over, and hints of tasks that are over or do not exist (docs/design/collection.md#rule-10)."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from arco_catalog.operations.tasks import tombstone_of
from arco_catalog.planning.collection import Kind, is_older
from arco_catalog.state.fields import optional_text
from arco_catalog.state.task import ENDED, TABLE_EXPIRY, table_identity
from arco_catalog.state.task_log import StoredTask, read_task
from arco_catalog.upkeep.collection.batch_runner import Batch, BatchRunner, run_all
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import BATCH, Run
from storage_backends import Listed

ENTITY = "table_entity_id"


async def collect_tasks(run: Run, entities: Entities, runner: BatchRunner) -> None:
    """Deletes tasks that have succeeded or failed for good, are older than the retention of tasks, and are in no
    tombstone of the registry. Also deletes old hints that are due, of tasks that are over, or that have neither a
    version nor a tombstone. One listing finds both. A dry run only counts them."""
    await run_all(runner, run, entities, _batches(run))


async def _batches(run: Run) -> AsyncGenerator[Batch[Listed, None], None]:
    """Yields batches of hints that are due and older than the retention of orphans, and of versions of tasks that are
    older than the retention of tasks: in a batch at most one of a task, which may be in several batches, but not in
    those of a dry run, which would count it again."""
    paths = run.paths
    hints: list[Listed] = []
    due: dict[str, Listed] = {}
    counted: set[str] = set()
    """The tasks in the batches of a dry run."""
    async with aclosing(run.pages(paths.tasks)) as pages:
        async for page, now_ms in pages:
            for each in page:
                if each.key.startswith(paths.open_tasks):
                    hint = paths.read_open_task(each.key)
                    waits = hint is None or hint[1] > now_ms
                    if not waits and is_older(each.written_ms, now_ms, run.retention.orphans_ms):
                        hints.append(each)
                elif is_older(each.written_ms, now_ms, run.retention.tasks_ms) and _task(run, each) not in counted:
                    due[_task(run, each)] = each
            if len(hints) >= BATCH:
                yield Batch(_collect_hints, hints)
                hints = []
            if len(due) >= BATCH:
                yield Batch(_collect_ended, [*due.values()])
                counted |= set() if run.delete else due.keys()
                due = {}
    if hints:
        yield Batch(_collect_hints, hints)
    if due:
        yield Batch(_collect_ended, [*due.values()])


async def _collect_hints(run: Run, entities: Entities, hints: Sequence[Listed]) -> None:
    """Deletes the old hints in this batch of tasks that have ended, or that have neither a version nor a tombstone; a
    dry run only counts them."""
    over = await run.each(hints, lambda each: run.unless_unreadable(each.key, _leads_nowhere(run, each.key)))
    await run.collect(Kind.HINT, [each for each, yes in zip(hints, over, strict=True) if yes])


async def _collect_ended(run: Run, entities: Entities, versions: Sequence[Listed]) -> None:
    """Deletes the tasks that are old, have ended, and are not in the registry; a dry run only counts them. `versions`
    has one version of each task to examine. Tasks that can't be read add to the unreadable ones of the run."""
    for task in (_task(run, each) for each in versions):
        stored = await run.unless_unreadable(f"task {task}", read_task(run.session.state, task))
        if stored is not None and await _is_over(run, stored):
            await _collect(run, stored)


def _task(run: Run, version: Listed) -> str:
    """Returns the task's id in the key of a version."""
    return version.key.removeprefix(run.paths.tasks).partition("/")[0]


async def _leads_nowhere(run: Run, key: str) -> bool:
    """Whether the task of the hint at this key has ended, or has neither a version nor a tombstone; false for a key
    that is no hint."""
    hint = run.paths.read_open_task(key)
    if hint is None:
        return False
    stored = await read_task(run.session.state, hint[0])
    return stored.task.status in ENDED if stored is not None else not await _is_named(run, hint[0])


async def _is_over(run: Run, stored: StoredTask) -> bool:
    """Whether a task ended long enough ago and no tombstone names it."""
    old = is_older(stored.written_ms, stored.now_ms, run.retention.with_margin(run.retention.tasks_ms))
    return old and stored.task.status in ENDED and not await _is_named(run, stored.task.id)


async def _is_named(run: Run, task: str) -> bool:
    """Whether a tombstone in the current HEAD names a task: then the purge is under way, or has failed and may be
    retried."""
    return await tombstone_of(run.session, task) is not None


async def _collect(run: Run, stored: StoredTask) -> None:
    """Deletes a task and counts it; a dry run only counts it. First deletes the inventory of the purge, or the records
    of the expiry; then the versions in ascending order, so that the task has the last version until the end."""
    versions: dict[int, Listed] = {}
    async with aclosing(run.pages(run.paths.task(stored.task.id))) as pages:
        async for page, _ in pages:
            for each in page:
                name = each.key.rpartition("/")[2].removesuffix(".json")
                if name.isdecimal() and int(name) <= stored.task.number:
                    versions[int(name)] = each
    run.stats.collects(Kind.TASK, size=sum(each.size for each in versions.values()), written_ms=stored.written_ms)
    records: list[str] = []
    prefixes = [run.paths.purge_chunks(stored.task.id)]
    if stored.task.kind == TABLE_EXPIRY and (entity := optional_text(table_identity(stored.task.payload), ENTITY)):
        prefixes.append(run.paths.expiry_records_of(entity, stored.task.id))
    for prefix in prefixes:
        async with aclosing(run.pages(prefix)) as pages:
            async for page, _ in pages:
                records += [each.key for each in page]
    await run.remove(records)
    await run.remove_in_order([versions[number].key for number in sorted(versions)])
