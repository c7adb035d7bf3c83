"""A job cut into parts, each a Spark job of one task, and many in flight at once: so what a part found is known, shown
and remembered when that part is done. One job of many tasks tells nothing before its last task, and `toLocalIterator`
computes one partition after the other."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyspark import SparkContext

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_JOBS_IN_FLIGHT = 128
"""Parts handed to Spark at once: the demand by which it decides how many executors to have."""
MAX_LOST_PARTS = 24
"""Parts lost beyond those that were finished, after which a run ends: no table is to blame for that."""


@dataclass(frozen=True, slots=True)
class Part(Generic[Item, Result]):
    """Items that were handed to Spark, and what came of them, or why they are lost."""

    items: Sequence[Item]
    done: Sequence[Result]
    lost: BaseException | None = None


Work = Callable[[Iterable[Item]], Iterator[Result]]
"""What an executor does with a part. It must survive pickling, as items and results must."""


class Losses:
    """How many parts are lost, beside those that were finished."""

    def __init__(self) -> None:
        self._lost = self._finished = 0

    def note(self, lost: BaseException | None) -> None:
        """Counts a part. Raises what it was lost by, if no item could be to blame for so many."""
        if lost is None:
            self._finished += 1
            return
        self._lost += 1
        if self._lost - self._finished >= MAX_LOST_PARTS:
            raise lost


def why(lost: BaseException) -> str:
    """By what a part was lost, in one line."""
    return " ".join(str(lost).split()) or type(lost).__name__


def cut_by(items: Sequence[Item], most: int) -> list[Sequence[Item]]:
    """Parts of so many items."""
    return [items[start : start + most] for start in range(0, len(items), most)]


def halves(items: Sequence[Item]) -> list[Sequence[Item]]:
    """The halves of a part that was lost, which are tried again, until what is lost is one item."""
    return [items[: len(items) // 2], items[len(items) // 2 :]]


async def run_on_executors(
    spark: SparkContext, group: str, name: str, work: Work[Item, Result], queue: deque[Sequence[Item]]
) -> AsyncGenerator[Part[Item, Result], None]:
    """Runs each part on an executor, and yields what came of it in the order in which they finish; `queue` may grow
    meanwhile. Ended early, it cancels what is in flight and waits until that has stopped. Spark shows `name`."""

    def run(part: Sequence[Item]) -> list[Result]:
        spark.setJobGroup(group, f"{name}, {len(part)} at once")  # of this thread
        return spark.parallelize(part, 1).mapPartitions(work).collect()

    loop = asyncio.get_running_loop()
    threads = ThreadPoolExecutor(MAX_JOBS_IN_FLIGHT, thread_name_prefix="spark-job")
    in_flight: dict[asyncio.Future[list[Result]], Sequence[Item]] = {}
    try:
        while queue or in_flight:
            while queue and len(in_flight) < MAX_JOBS_IN_FLIGHT:
                part = queue.popleft()
                in_flight[loop.run_in_executor(threads, run, part)] = part
            finished, _ = await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
            for job in finished:
                lost = job.exception()
                yield Part(in_flight.pop(job), [] if lost is not None else job.result(), lost)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(spark.cancelJobGroup, group)
        await asyncio.gather(*in_flight, return_exceptions=True)
