"""The reconciler on Spark: the walk of `arco_catalog.upkeep.walk`, its tables dealt out to executors.

The driver lists pointers, drops those that have not moved since their last complete walk, and cuts the others into
parts (parts.py).

Tables take turns here as they do on one machine (`arco_catalog.upkeep.reconcile`): one that needs more than its
share of a part comes again in a later one. A part that is lost is halved, and its halves are tried again, until what is
lost is one table, which is counted and reported.
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
from reconciler.parts import Losses, cut_by, halves, run_on_executors, why
from storage_backends import StoreUnavailable

PART = 500
"""Tables in a part: seconds of work, so that starting one is cheap beside it, and so is losing one."""
TURN = 5_000
"""Metadata files that a table gets in one part."""
CONCURRENCY = 16
"""Tables that a part walks side by side."""
PARTS_PER_CHECKPOINT = 20
"""Parts between two writes of the walk log, each of which writes all of a changed shard."""


@dataclass(frozen=True, slots=True)
class WalkTask:
    """One table to walk, and how far it was walked before."""

    pointer: ListedPointer
    known: WalkCheckpoint | None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of one task."""

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
    """Walks every pointer that moved since its last complete walk, `part` tables at a time and `turn` files of each;
    `progress` hears of each finished part. With `dry` nothing is written.

    Where more parts are lost than any table could be to blame for, the run ends with what Spark raised. What was walked
    by then is remembered.
    """
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
                    queue.extend(_collect(run, each.done, part))
                    progress(total)
                    finished += 1
                    if not dry and finished % PARTS_PER_CHECKPOINT == 0:
                        await checkpoints.write(session.state)
        finally:
            if not dry:
                await checkpoints.write(session.state)
    return total


def _collect(run: Progress, part: Sequence[TaskResult], most: int) -> list[Sequence[WalkTask]]:
    """Adds the results of a part to the run. Returns the parts that tasks with more to do make."""
    again: list[WalkTask] = []
    for done in part:
        run.add(done.task.pointer, done.walk)
        if done.walk.more:
            again.append(WalkTask(done.task.pointer, done.walk.checkpoint))
    return cut_by(again, most)


def _split_lost(run: Progress, part: Sequence[WalkTask], lost: BaseException) -> list[Sequence[WalkTask]]:
    """The halves of a part that was lost; a part of one table is counted as failed."""
    if len(part) > 1:
        return halves(part)
    [task] = part
    stats = ReconcileStats(walked=1, incomplete=1)
    stats.fails(f"{task.pointer.entity}: the Spark task that walked it failed: {why(lost)}")
    run.add(task.pointer, WalkResult(stats, None))
    return []


def walk_part(config: CatalogConfig, dry: bool, turn: int, tasks: Iterable[WalkTask]) -> Iterator[TaskResult]:
    """An executor's share: one catalog opened, and a turn of each of its tables, a few at a time. Raises
    `StoreUnavailable` if the store answers for none of them."""
    return iter(asyncio.run(_walk_part(config, dry, turn, list(tasks))))


async def _walk_part(config: CatalogConfig, dry: bool, turn: int, tasks: Sequence[WalkTask]) -> list[TaskResult]:
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
                raise StoreUnavailable(f"the store does not answer: {walks[0].stats.unreadable}")
    return done
