"""Runs the work of a job in parts. A part is a Spark job of one task, and many are in flight at once, so that the
results of a part can be reported and saved as soon as it is done. One Spark job of many tasks would return nothing
before the last task ends, and `toLocalIterator` computes one partition after the other."""

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
"""How many parts are submitted to Spark at once. Spark's dynamic allocation starts executors by this demand."""
MAX_LOST_PARTS = 24
"""By how many failed parts may exceed finished parts before a run ends, since no single item is the cause then."""


@dataclass(frozen=True, slots=True)
class Part(Generic[Item, Result]):
    """A part of a job that was run: the items that one Spark job worked on, and in `done` their results. If the job
    failed, `lost` has the exception, and `done` is empty."""

    items: Sequence[Item]
    done: Sequence[Result]
    lost: BaseException | None = None


Work = Callable[[Iterable[Item]], Iterator[Result]]
"""The function that an executor calls with the items of a part. It, items and results must survive pickling."""


class Losses:
    """Counts failed and finished parts of a job, to end a run in which too many fail."""

    def __init__(self) -> None:
        self._lost = self._finished = 0

    def note(self, lost: BaseException | None) -> None:
        """Counts a part that failed with the exception `lost`, or that finished (None). Raises `lost` if
        `MAX_LOST_PARTS` more parts have failed than finished."""
        if lost is None:
            self._finished += 1
            return
        self._lost += 1
        if self._lost - self._finished >= MAX_LOST_PARTS:
            raise lost


def reason(lost: BaseException) -> str:
    """Returns the message of an exception in one line, or the name of its type if it has no message."""
    return " ".join(str(lost).split()) or type(lost).__name__


def cut_by(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Cuts a sequence into parts of `size` items, of which the last may be smaller. Returns no parts for no items."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def halves(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Returns the two halves of a part, to retry a part that failed as two."""
    return [items[: len(items) // 2], items[len(items) // 2 :]]


class InFlight(Generic[Item, Result]):
    """Runs the parts of a job on executors, every part as a Spark job of one task. The caller starts at most `max_jobs`
    at once (None: `MAX_JOBS_IN_FLIGHT`), by `is_full`. `name` describes the jobs in Spark's interface; `group` is the
    id of the job group by which `close` cancels them. The length is the number of parts that were started and not yet
    returned by `finished`."""

    def __init__(
        self,
        spark: SparkContext,
        group: str,
        name: str,
        work: Work[Item, Result],
        max_jobs: int | None = None,
    ) -> None:
        self._spark = spark
        self._group = group
        self._name = name
        self._work = work
        self._max_jobs = max_jobs or MAX_JOBS_IN_FLIGHT
        self._threads = ThreadPoolExecutor(self._max_jobs, thread_name_prefix="spark-job")
        self._jobs: dict[asyncio.Future[list[Result]], Sequence[Item]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def is_full(self) -> bool:
        """Whether the maximum number of parts was started and not yet returned by `finished`, so that the caller must
        not start another."""
        return len(self._jobs) >= self._max_jobs

    def start(self, part: Sequence[Item]) -> None:
        """Submits a part as a Spark job, from a thread of its own."""

        def run() -> list[Result]:
            # A job group belongs to the thread that submits the job.
            self._spark.setJobGroup(self._group, f"{self._name}, {len(part)} at once")
            return self._spark.parallelize(part, 1).mapPartitions(self._work).collect()

        self._jobs[asyncio.get_running_loop().run_in_executor(self._threads, run)] = part

    async def finished(self) -> Sequence[Part[Item, Result]]:
        """Waits until a part ends, and returns every part that has ended, with the results or the exception. At least
        one part must be running."""
        finished, _ = await asyncio.wait(self._jobs, return_when=asyncio.FIRST_COMPLETED)
        parts: list[Part[Item, Result]] = []
        for job in finished:
            lost = job.exception()
            parts.append(Part(self._jobs.pop(job), [] if lost is not None else job.result(), lost))
        return parts

    async def close(self) -> None:
        """Cancels the running parts, and waits until they have stopped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._spark.cancelJobGroup, self._group)
        await asyncio.gather(*self._jobs, return_exceptions=True)


async def run_on_executors(
    spark: SparkContext, group: str, name: str, work: Work[Item, Result], queue: deque[Sequence[Item]]
) -> AsyncGenerator[Part[Item, Result], None]:
    """Runs the parts of `queue` on executors, at most `MAX_JOBS_IN_FLIGHT` at once, and yields every part when it ends,
    with the results or the exception. The caller may add parts to `queue` between two results. If the generator is
    closed early, running parts are cancelled, as Spark's job group `group`, and awaited. `name` describes the jobs in
    Spark's interface."""
    in_flight = InFlight(spark, group, name, work)
    try:
        while queue or in_flight:
            while queue and not in_flight.is_full:
                in_flight.start(queue.popleft())
            for part in await in_flight.finished():
                yield part
    finally:
        await in_flight.close()
