"""The reconciler on Spark: the walk of `arco_catalog.operations.walk`, its tables dealt out to executors.

The driver lists pointers, drops those that have not moved since their last complete walk, and cuts the others into
parts. Each part is a Spark job of one task, and many are in flight at once: so what a part found is known, shown and
remembered when that part is done. One job of many tasks tells nothing before its last task, and `toLocalIterator`
computes one partition after the other.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from pyspark import SparkContext

from arco_catalog.operations.catalog import Session
from arco_catalog.operations.lapsed import settle_lapsed
from arco_catalog.operations.reconcile import ListedPointer, list_pointers, to_walk, walk_batch
from arco_catalog.operations.walk import Tally, Walk
from arco_catalog.state.walk_log import Walked, WalkLog
from reconciler.lake import Lake

PART = 500
"""Tables in a part: seconds of work, so that starting one is cheap beside it, and so is losing one."""
IN_FLIGHT = 128
"""Parts handed to Spark at once: the demand by which it decides how many executors to have."""
BESIDE = 16
"""Tables that a part walks side by side."""
REMEMBER_EVERY = 20
"""Parts between two writes of the walk log, each of which writes it whole."""


@dataclass(frozen=True, slots=True)
class Errand:
    """One table to walk, and what is known of its last complete walk."""

    pointer: ListedPointer
    known: Walked | None


@dataclass(frozen=True, slots=True)
class Done:
    """What came of one errand."""

    entity: str
    walk: Walk


WalkPart = Callable[[Iterable[Errand]], Iterator[Done]]


async def reconcile(
    spark: SparkContext,
    lake: Lake,
    *,
    dry: bool = False,
    part: int = PART,
    progress: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Walks every pointer that moved since its last complete walk, `part` tables at a time; `progress` hears of each
    finished part. With `dry` nothing is written.

    The first part that fails ends the run, with what Spark raised. What was walked by then is remembered.
    """
    async with lake.session() as session:
        if not dry:
            await settle_lapsed(session)
        log = await WalkLog.read(session.state)
        total, errands = await _errands(session, log)
        parts = [errands[start : start + part] for start in range(0, len(errands), part)]
        walks = _scattered(spark, session.runtime.ulid(), partial(walk_part, lake, dry), parts)
        try:
            async with aclosing(walks):
                finished = 0
                async for walked in walks:
                    _gather(total, log, walked)
                    progress(total)
                    finished += 1
                    if not dry and finished % REMEMBER_EVERY == 0:
                        await log.write(session.state)
        finally:
            if not dry:
                await log.write(session.state)
    return total


async def _errands(session: Session, log: WalkLog) -> tuple[Tally, list[Errand]]:
    """What there is to walk, and the counts of what there is not."""
    total = Tally()
    errands: list[Errand] = []
    async with aclosing(list_pointers(session)) as pages:
        async for page in pages:
            moved, counts = to_walk(log, page)
            total.add(counts)
            errands += [Errand(pointer, log.walked.get(pointer.entity)) for pointer in moved]
    return total, errands


def _gather(total: Tally, log: WalkLog, part: Sequence[Done]) -> None:
    for done in part:
        total.add(done.walk.tally)
        if done.walk.walked is not None:
            log.note(done.entity, done.walk.walked)


async def _scattered(
    spark: SparkContext, group: str, task: WalkPart, parts: Sequence[Sequence[Errand]]
) -> AsyncGenerator[list[Done], None]:
    """Runs each part on an executor, and yields what came of it in the order in which they finish. Ended early, it
    cancels what is in flight and waits until that has stopped."""

    def run(part: Sequence[Errand]) -> list[Done]:
        spark.setJobGroup(group, f"reconcile {len(part)} tables")  # of this thread
        return spark.parallelize(part, 1).mapPartitions(task).collect()

    loop = asyncio.get_running_loop()
    threads = ThreadPoolExecutor(IN_FLIGHT, thread_name_prefix="spark-job")
    jobs = [loop.run_in_executor(threads, run, part) for part in parts]
    try:
        for job in asyncio.as_completed(jobs):
            yield await job
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(spark.cancelJobGroup, group)
        await asyncio.gather(*jobs, return_exceptions=True)


def walk_part(lake: Lake, dry: bool, errands: Iterable[Errand]) -> Iterator[Done]:
    """An executor's share: one catalog opened, and its tables walked a few at a time."""
    return iter(asyncio.run(_walk_part(lake, dry, list(errands))))


async def _walk_part(lake: Lake, dry: bool, errands: Sequence[Errand]) -> list[Done]:
    log = WalkLog({errand.pointer.entity: errand.known for errand in errands if errand.known is not None})
    pointers = [errand.pointer for errand in errands]
    done: list[Done] = []
    async with lake.session() as session:
        for start in range(0, len(pointers), BESIDE):
            batch = pointers[start : start + BESIDE]
            walks = await walk_batch(session, log, batch, dry=dry)
            done += [Done(pointer.entity, walk) for pointer, walk in zip(batch, walks, strict=True)]
    return done
