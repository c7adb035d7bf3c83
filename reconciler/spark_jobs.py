"""Runs Spark jobs that are cancelled with the asyncio task that started them."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from pyspark import SparkContext

T = TypeVar("T")

CANCEL_SECONDS = 20.0
"""How long to wait for cancelled Spark jobs; executors end later ones by themselves."""


async def run_cancellable(action: Callable[[], T], cancel: Callable[[], None]) -> T:
    """Calls a function that runs Spark jobs, in a thread, and returns the result, or raises the function's error. If
    the asyncio task is cancelled, `cancel`, which ends these jobs, is called, and the function is awaited for at most
    `CANCEL_SECONDS`; then `CancelledError` is raised."""
    running = asyncio.get_running_loop().run_in_executor(None, action)
    try:
        return await asyncio.shield(running)  # the thread cannot be cancelled; its Spark jobs can
    except asyncio.CancelledError:
        await asyncio.to_thread(cancel)
        await asyncio.wait([running], timeout=CANCEL_SECONDS)
        raise


class SparkJobs:
    """Runs the jobs of one Spark job group, each from a thread of its own. `description` is shown in Spark's
    interface."""

    def __init__(self, spark: SparkContext, group: str, description: str) -> None:
        self._spark = spark
        self._group = group
        self._description = description

    async def run(self, action: Callable[[], T]) -> T:
        """Calls a function that runs Spark jobs, and returns the result. If the asyncio task is cancelled, all jobs of
        the group are cancelled, and the function is awaited for at most `CANCEL_SECONDS`. Raises the errors of
        Spark."""

        def job() -> T:
            # A job group belongs to the thread that submits the job.
            self._spark.setJobGroup(self._group, self._description, interruptOnCancel=True)
            return action()

        return await run_cancellable(job, partial(self._spark.cancelJobGroup, self._group))
