"""Steps side by side: a task group whose failure is one exception again."""

import asyncio
import sys
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Overtaken(Exception):
    """The next slot of the marker is taken: whatever we do now, somebody else decides."""


async def beside(*steps: Awaitable[T]) -> list[T]:
    """Runs the steps side by side and returns their results in order.

    The first failure cancels the others. Of several at once the one that decides most is raised: `Overtaken` before
    everything else, what our own code got wrong before what the store did.
    """

    async def as_task(step: Awaitable[T]) -> T:
        return await step

    if len(steps) == 1:
        return [await steps[0]]
    task = asyncio.current_task()
    cancellations = 0 if task is None else task.cancelling()
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(as_task(step)) for step in steps]
    except BaseExceptionGroup as failures:
        if sys.version_info < (3, 13) and task is not None and task.cancelling() > cancellations:
            task.uncancel()  # by which the group ended itself; with one too many a timeout around us is a cancellation
        raise _most_telling(failures) from None
    return [task.result() for task in tasks]


def _most_telling(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    flat: list[BaseException] = []
    pending: list[BaseException] = [failures]
    while pending:
        failure = pending.pop()
        if isinstance(failure, BaseExceptionGroup):
            pending.extend(failure.exceptions)
        else:
            flat.append(failure)
    return next((failure for failure in flat if isinstance(failure, Overtaken)), flat[-1])
