"""The reconciler on Spark: the walk of `arco_catalog.operations.walk`, its tables dealt out to executors.

The driver lists pointers, drops those that have not moved since their last complete walk, and cuts the others into
parts. Each part is a Spark job of one task, and many are in flight at once: so what a part found is known, shown and
remembered when that part is done. One job of many tasks tells nothing before its last task, and `toLocalIterator`
computes one partition after the other.

Tables take turns here as they do on one machine (`arco_catalog.operations.reconcile`): one that needs more than its
share of a part comes again in a later one. A part that is lost is halved, and its halves are tried again, until what is
lost is one table, which is counted and reported.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from pyspark import SparkContext

from arco_catalog.operations.lapsed import settle_lapsed
from arco_catalog.operations.reconcile import UNANSWERED, Deadline, ListedPointer, Progress, find_due, walk_batch
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.operations.walk import WalkResult
from arco_catalog.state.checkpoints import Checkpoints, WalkCheckpoint
from reconciler.lake import Lake
from storage_backends import StoreUnavailable

PART = 500
"""Tables in a part: seconds of work, so that starting one is cheap beside it, and so is losing one."""
TURN = 5_000
"""Metadata files that a table gets in one part."""
IN_FLIGHT = 128
"""Parts handed to Spark at once: the demand by which it decides how many executors to have."""
BESIDE = 16
"""Tables that a part walks side by side."""
REMEMBER_EVERY = 20
"""Parts between two writes of the walk log, each of which writes all of a changed shard."""
GIVE_UP = 24
"""Parts lost beyond those that were finished, after which a run ends: no table is to blame for that."""


@dataclass(frozen=True, slots=True)
class Errand:
    """One table to walk, and how far it was walked before."""

    pointer: ListedPointer
    known: WalkCheckpoint | None


@dataclass(frozen=True, slots=True)
class Done:
    """What came of one errand."""

    errand: Errand
    walk: WalkResult


@dataclass(frozen=True, slots=True)
class Part:
    """Errands that were handed to Spark, and what came of them, or why they are lost."""

    errands: Sequence[Errand]
    done: Sequence[Done]
    lost: BaseException | None = None


WalkPart = Callable[[Iterable[Errand]], Iterator[Done]]


async def reconcile(
    spark: SparkContext,
    lake: Lake,
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
    async with lake.session() as session:
        if not dry:
            await settle_lapsed(session)
        checkpoints = await Checkpoints.read(session.state)
        due, total = await find_due(session, checkpoints)
        run, lost, finished = Progress(checkpoints, total), 0, 0
        queue = deque(_cut([Errand(pointer, checkpoints.by_entity.get(pointer.entity)) for pointer in due], part))
        parts = _scattered(spark, session.runtime.ulid(), partial(walk_part, lake, dry, turn), queue)
        try:
            async with aclosing(parts):
                async for each in parts:
                    if each.lost is not None:
                        lost += 1
                        if lost - finished >= GIVE_UP:
                            raise each.lost
                        queue.extendleft(_halves(run, each.errands, each.lost))
                        continue
                    queue.extend(_gather(run, each.done, part))
                    progress(total)
                    finished += 1
                    if not dry and finished % REMEMBER_EVERY == 0:
                        await checkpoints.write(session.state)
        finally:
            if not dry:
                await checkpoints.write(session.state)
    return total


def _cut(errands: Sequence[Errand], part: int) -> list[Sequence[Errand]]:
    return [errands[start : start + part] for start in range(0, len(errands), part)]


def _gather(run: Progress, part: Sequence[Done], most: int) -> list[Sequence[Errand]]:
    """Counts and remembers what came of a part. Returns what is to come again."""
    again: list[Errand] = []
    for done in part:
        run.add(done.errand.pointer, done.walk)
        if done.walk.more:
            again.append(Errand(done.errand.pointer, done.walk.checkpoint))
    return _cut(again, most)


def _halves(run: Progress, part: Sequence[Errand], lost: BaseException) -> list[Sequence[Errand]]:
    """What to try of a part that was lost; a table that can be cut no further is counted."""
    if len(part) > 1:
        return [part[: len(part) // 2], part[len(part) // 2 :]]
    [errand] = part
    stats = ReconcileStats(walked=1, incomplete=1)
    why = " ".join(str(lost).split()) or type(lost).__name__
    stats.fails(f"{errand.pointer.entity}: the Spark task that walked it failed: {why}")
    run.add(errand.pointer, WalkResult(stats, None))
    return []


async def _scattered(
    spark: SparkContext, group: str, task: WalkPart, queue: deque[Sequence[Errand]]
) -> AsyncGenerator[Part, None]:
    """Runs each part on an executor, and yields what came of it in the order in which they finish; `queue` may grow
    meanwhile. Ended early, it cancels what is in flight and waits until that has stopped."""

    def run(part: Sequence[Errand]) -> list[Done]:
        spark.setJobGroup(group, f"reconcile {len(part)} tables")  # of this thread
        return spark.parallelize(part, 1).mapPartitions(task).collect()

    loop = asyncio.get_running_loop()
    threads = ThreadPoolExecutor(IN_FLIGHT, thread_name_prefix="spark-job")
    flying: dict[asyncio.Future[list[Done]], Sequence[Errand]] = {}
    try:
        while queue or flying:
            while queue and len(flying) < IN_FLIGHT:
                part = queue.popleft()
                flying[loop.run_in_executor(threads, run, part)] = part
            finished, _ = await asyncio.wait(flying, return_when=asyncio.FIRST_COMPLETED)
            for job in finished:
                lost = job.exception()
                yield Part(flying.pop(job), [] if lost is not None else job.result(), lost)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(spark.cancelJobGroup, group)
        await asyncio.gather(*flying, return_exceptions=True)


def walk_part(lake: Lake, dry: bool, turn: int, errands: Iterable[Errand]) -> Iterator[Done]:
    """An executor's share: one catalog opened, and a turn of each of its tables, a few at a time. Raises
    `StoreUnavailable` if the store answers for none of them."""
    return iter(asyncio.run(_walk_part(lake, dry, turn, list(errands))))


async def _walk_part(lake: Lake, dry: bool, turn: int, errands: Sequence[Errand]) -> list[Done]:
    checkpoints = Checkpoints({errand.pointer.entity: errand.known for errand in errands if errand.known is not None})
    done: list[Done] = []
    unanswered = 0
    async with lake.session() as session:
        deadline = Deadline(session)
        for start in range(0, len(errands), BESIDE):
            batch = errands[start : start + BESIDE]
            pointers = [errand.pointer for errand in batch]
            walks = await walk_batch(session, checkpoints, pointers, deadline, dry=dry, most=turn)
            done += [Done(errand, walk) for errand, walk in zip(batch, walks, strict=True)]
            unanswered = 0 if any(walk.answered for walk in walks) else unanswered + 1
            if unanswered == UNANSWERED:
                raise StoreUnavailable(f"the store does not answer: {walks[0].stats.unreadable}")
    return done
