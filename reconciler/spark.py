"""The reconciler on Spark: the walk of `arco_catalog.upkeep.walk` with tables distributed to executors.

The driver lists pointers, leaves out those of entities without a name and those that have not changed since their last
complete walk, and cuts the others into parts (parts.py).

As on one machine (`arco_catalog.upkeep.reconcile`), a part reads a bounded number of files of each table, and a table
that has more comes again in a later part. If a part fails, the halves are tried again, until a part of one table fails,
which is reported.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from pyspark import SparkContext

from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.protocol.lapsed import settle_lapsed
from arco_catalog.state.checkpoints import Checkpoints, WalkCheckpoint
from arco_catalog.upkeep.reconcile import MAX_UNANSWERED, ListedPointer, Progress, TimeLimit, find_due, walk_batch
from arco_catalog.upkeep.walk import WalkResult
from reconciler.catalog_config import CatalogConfig
from reconciler.parts import Losses, cut_by, halves, reason, run_on_executors
from storage_backends import StoreUnavailable

PART = 500
"""How many tables are in a part: seconds of work, much longer than the start, and little to repeat if it fails."""
TURN = 5_000
"""How many metadata files of a table are read in one part."""
CONCURRENCY = 16
"""How many tables of a part are walked concurrently."""
PARTS_PER_CHECKPOINT = 20
"""After how many parts checkpoints are written. A write replaces a changed shard as a whole."""


@dataclass(frozen=True, slots=True)
class WalkTask:
    """A table or view to walk on an executor of the reconciler, and the checkpoint of its last walk; None if there is
    none."""

    pointer: ListedPointer
    known: WalkCheckpoint | None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What an executor of the reconciler returns for one table or view: the result of its walk."""

    task: WalkTask
    walk: WalkResult


async def reconcile(
    spark: SparkContext,
    config: CatalogConfig,
    *,
    dry: bool = False,
    part: int = PART,
    turn: int = TURN,
    progress: Callable[[ReconcileStats], None] = lambda stats: None,
) -> ReconcileStats:
    """Writes the missing receipts of every table and view with a pointer that has changed since the last complete walk,
    and checkpoints of the walks, and returns the counts; before that, settles transactions that are decided or have
    outlived their lease. A part has `part` tables, and walks at most `turn` metadata files of each; a table with more
    files is continued in a later part. `progress` is called after a part that did not fail. With `dry`, nothing is
    written.

    Raises the errors of `CatalogConfig.session`, `InternalError` for a corrupt HEAD, and the error of Spark if so many
    parts fail that no table can be the cause (`Losses`). Unless `dry`, checkpoints of the walks by then are saved."""
    async with config.session() as session:
        if not dry:
            await settle_lapsed(session)
        checkpoints = await Checkpoints.read(session.state)
        due, total = await find_due(session, checkpoints)
        run, losses, finished = Progress(checkpoints, total), Losses(), 0
        queue = deque(cut_by([WalkTask(pointer, checkpoints.by_entity.get(pointer.entity)) for pointer in due], part))
        work = partial(walk_part, config, dry, turn)
        parts = run_on_executors(spark, session.runtime.ulid(), "reconcile tables", work, queue)
        try:
            async with aclosing(parts):
                async for each in parts:
                    losses.note(each.lost)
                    if each.lost is not None:
                        queue.extendleft(_split_lost(run, each.items, each.lost))
                        continue
                    queue.extend(_add_results(run, each.done, part))
                    progress(total)
                    finished += 1
                    if not dry and finished % PARTS_PER_CHECKPOINT == 0:
                        await checkpoints.write(session.state)
        finally:
            if not dry:
                await checkpoints.write(session.state)
    return total


def _add_results(run: Progress, part: Sequence[TaskResult], size: int) -> list[Sequence[WalkTask]]:
    """Adds the results of a part to the run. Returns the tables of the part that have files left to walk, cut into
    parts of `size` tables."""
    again: list[WalkTask] = []
    for done in part:
        run.add(done.task.pointer, done.walk)
        if done.walk.more:
            again.append(WalkTask(done.task.pointer, done.walk.checkpoint))
    return cut_by(again, size)


def _split_lost(run: Progress, part: Sequence[WalkTask], lost: BaseException) -> list[Sequence[WalkTask]]:
    """Returns the halves of a part that failed with the exception `lost`. The table of a part of one table is counted
    as failed, and no parts are returned."""
    if len(part) > 1:
        return halves(part)
    [task] = part
    stats = ReconcileStats(walked=1, incomplete=1)
    stats.fails(f"{task.pointer.entity}: the Spark task that walked it failed: {reason(lost)}")
    run.add(task.pointer, WalkResult(stats, None))
    return []


def walk_part(config: CatalogConfig, dry: bool, turn: int, tasks: Iterable[WalkTask]) -> Iterator[TaskResult]:
    """Walks the tables of a part on an executor with one opened catalog, at most `turn` files of each, and returns the
    results in the order of the tasks. A walk writes the missing receipts of a table; with `dry` it writes nothing.
    Raises `StoreUnavailable` if the store fails for all tables of `MAX_UNANSWERED` groups of `CONCURRENCY` one after
    the other, and the errors of `CatalogConfig.session`."""
    return iter(asyncio.run(_walk_part(config, dry, turn, list(tasks))))


async def _walk_part(config: CatalogConfig, dry: bool, turn: int, tasks: Sequence[WalkTask]) -> list[TaskResult]:
    """Walks some tables in an executor, at most `turn` files of one, and returns the results in order; with `dry`
    writes nothing. Raises `StoreUnavailable` if the store fails for too many one after the other."""
    checkpoints = Checkpoints({task.pointer.entity: task.known for task in tasks if task.known is not None})
    done: list[TaskResult] = []
    unanswered = 0
    async with config.session() as session:
        limit = TimeLimit(session)
        for start in range(0, len(tasks), CONCURRENCY):
            batch = tasks[start : start + CONCURRENCY]
            pointers = [task.pointer for task in batch]
            walks = await walk_batch(session, checkpoints, pointers, limit, dry=dry, max_files=turn)
            done += [TaskResult(task, walk) for task, walk in zip(batch, walks, strict=True)]
            unanswered = 0 if any(walk.answered for walk in walks) else unanswered + 1
            if unanswered == MAX_UNANSWERED:
                raise StoreUnavailable(
                    f"the store failed for all tables of {MAX_UNANSWERED} groups of {CONCURRENCY} one after the other, "
                    "so this part fails, and the job does the halves of it unless too many parts have failed: "
                    f"{walks[0].stats.unreadable}"
                )
    return done
