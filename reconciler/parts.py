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


class InFlight(Generic[Item, Result]):
    """Parts that are on executors. Spark shows `name`; `group` is what all of them are cancelled by."""

    def __init__(
        self,
        spark: SparkContext,
        group: str,
        name: str,
        work: Work[Item, Result],
        most: int | None = None,
    ) -> None:
        self._spark = spark
        self._group = group
        self._name = name
        self._work = work
        self._most = most or MAX_JOBS_IN_FLIGHT
        self._threads = ThreadPoolExecutor(self._most, thread_name_prefix="spark-job")
        self._jobs: dict[asyncio.Future[list[Result]], Sequence[Item]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def is_full(self) -> bool:
        """Whether no more should be started for now."""
        return len(self._jobs) >= self._most

    def start(self, part: Sequence[Item]) -> None:
        """Hands a part to Spark."""

        def run() -> list[Result]:
            self._spark.setJobGroup(self._group, f"{self._name}, {len(part)} at once")  # of this thread
            return self._spark.parallelize(part, 1).mapPartitions(self._work).collect()

        self._jobs[asyncio.get_running_loop().run_in_executor(self._threads, run)] = part

    async def finished(self) -> Sequence[Part[Item, Result]]:
        """Those that have finished, once there is one."""
        finished, _ = await asyncio.wait(self._jobs, return_when=asyncio.FIRST_COMPLETED)
        told: list[Part[Item, Result]] = []
        for job in finished:
            lost = job.exception()
            told.append(Part(self._jobs.pop(job), [] if lost is not None else job.result(), lost))
        return told

    async def close(self) -> None:
        """Cancels what is in flight, and waits until that has stopped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._spark.cancelJobGroup, self._group)
        await asyncio.gather(*self._jobs, return_exceptions=True)


async def run_on_executors(
    spark: SparkContext, group: str, name: str, work: Work[Item, Result], queue: deque[Sequence[Item]]
) -> AsyncGenerator[Part[Item, Result], None]:
    """Runs each part on an executor, and yields what came of it in the order in which they finish; `queue` may grow
    meanwhile. Ended early, it cancels what is in flight and waits until that has stopped. Spark shows `name`."""
    in_flight = InFlight(spark, group, name, work)
    try:
        while queue or in_flight:
            while queue and not in_flight.is_full:
                in_flight.start(queue.popleft())
            for part in await in_flight.finished():
                yield part
    finally:
        await in_flight.close()
