"""Spark jobs that end with the work that started them."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pyspark import SparkContext

T = TypeVar("T")

CANCEL_SECONDS = 20.0
"""How long cancelled jobs are waited for: their executors stop by themselves then."""


class SparkJobs:
    """Runs the jobs of one piece of work, from a thread each."""

    def __init__(self, spark: SparkContext, group: str, about: str) -> None:
        self._spark = spark
        self._group = group
        self._about = about

    async def run(self, action: Callable[[], T]) -> T:
        """The result of an action. Cancelled, it cancels all jobs of the group, and waits until they have stopped.
        Raises what Spark does."""

        def job() -> T:
            self._spark.setJobGroup(self._group, self._about, interruptOnCancel=True)  # of this thread
            return action()

        running = asyncio.get_running_loop().run_in_executor(None, job)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.to_thread(self._spark.cancelJobGroup, self._group)
            await asyncio.wait([running], timeout=CANCEL_SECONDS)
            raise
