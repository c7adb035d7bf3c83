"""Awaits steps concurrently: each runs at once until it first waits, and the first failure is raised as it is."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar, overload

from arco_catalog.protocol.eager_tasks import Failure, Result, start

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class Superseded(Exception):
    """Another sending of this request, in this process or another, has created a later slot of the marker, so that
    sending decides the answer, and this attempt must stop."""


@overload
async def gather(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B], /) -> tuple[A, B]: ...
@overload
async def gather(
    first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B], third: Coroutine[Any, Any, C], /
) -> tuple[A, B, C]: ...
@overload
async def gather(
    first: Coroutine[Any, Any, A],
    second: Coroutine[Any, Any, B],
    third: Coroutine[Any, Any, C],
    fourth: Coroutine[Any, Any, D],
    /,
) -> tuple[A, B, C, D]: ...
@overload
async def gather(*steps: Coroutine[Any, Any, T]) -> tuple[T, ...]: ...
async def gather(*steps: Coroutine[Any, Any, object]) -> tuple[object, ...]:
    """Awaits the steps concurrently and returns their results in order.

    Steps start in order, all of them, also after one has failed at its start; one that need not wait has ended before
    the next starts. The first failure cancels the others, and is raised when they have ended; if one of the failures is
    a `Superseded`, that is raised.
    """
    if len(steps) == 1:
        return (await steps[0],)
    results: list[object] = [None] * len(steps)
    tasks: dict[int, asyncio.Task[object]] = {}
    failures: list[BaseException] = []
    for place, step in enumerate(steps):
        match start(step):
            case Result(value):
                results[place] = value
            case Failure(error):
                failures.append(error)
            case task:
                tasks[place] = task
    if tasks:
        have_succeeded = False
        try:
            have_succeeded = not failures and await _have_all_succeeded(tasks.values())
            if not have_succeeded:
                failures += _failures(tasks.values())
        finally:
            if not have_succeeded:
                await _end(tasks.values())
        if failures:
            failures += _failures(tasks.values())
    if failures:
        raise next((failure for failure in failures if isinstance(failure, Superseded)), failures[0])
    for place, task in tasks.items():
        results[place] = task.result()
    return tuple(results)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yields the items in lists of `size`, the last one perhaps shorter, so that a bounded number of steps run
    concurrently."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


async def for_each(items: Iterable[T], at_once: int, step: Callable[[T], Awaitable[None]]) -> None:
    """Awaits a step for each item, starting them in order, at most `at_once` of them concurrently. A slow item does not
    delay the others. The first failure cancels the steps that run, and is raised when they have ended; no step starts
    after it, except while the first `at_once` are being started."""
    rest = iter(items)

    async def work() -> None:
        for item in rest:
            await step(item)

    await gather(*(work() for _ in range(at_once)))


async def _have_all_succeeded(tasks: Collection[asyncio.Task[object]]) -> bool:
    """Waits until all tasks are done, or one has raised an exception; a cancelled one does not end the wait. It does
    this one case of `asyncio.wait`, at a third of the cost. Returns whether each has a result; False if one failed or
    was cancelled."""
    left, all_succeeded = len(tasks), True
    over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def ended(task: asyncio.Task[object]) -> None:
        nonlocal left, all_succeeded
        left -= 1
        is_cancelled = task.cancelled()
        has_failed = not is_cancelled and task.exception() is not None
        all_succeeded = all_succeeded and not is_cancelled and not has_failed
        if not over.done() and (left == 0 or has_failed):
            over.set_result(all_succeeded)

    for task in tasks:
        task.add_done_callback(ended)
    return await over


async def _end(tasks: Collection[asyncio.Task[object]]) -> None:
    """Cancels the tasks that have not ended, and waits until they have, even if it is cancelled itself meanwhile; that
    cancellation is raised at the end."""
    for task in tasks:
        task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _failures(tasks: Iterable[asyncio.Task[object]]) -> list[BaseException]:
    """Returns the exceptions of the tasks that have failed; tasks that still run, were cancelled, or succeeded have
    none."""
    ended = (task for task in tasks if task.done() and not task.cancelled())
    return [failure for task in ended if (failure := task.exception()) is not None]
