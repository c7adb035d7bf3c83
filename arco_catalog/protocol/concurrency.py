"""Awaits steps concurrently: each runs at once until it first waits, and the first failure is raised as it is."""

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Iterator, Sequence
from contextvars import copy_context
from itertools import islice
from typing import Any, TypeVar, cast, overload

from storage_backends.eager import Waiting

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class Superseded(Exception):
    """Another sending of the request holds a later slot of the marker: it decides the answer, this attempt can't."""


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

    Steps are begun in order, and one that need not wait has ended before the next begins. The first failure cancels the
    others, and is raised when they have ended; `Superseded` goes before any other.
    """
    if len(steps) == 1:
        return (await steps[0],)
    loop, parent = asyncio.get_running_loop(), asyncio.current_task()
    assert parent is not None
    results: list[object] = [None] * len(steps)
    tasks: dict[int, asyncio.Task[object]] = {}
    failures: list[BaseException] = []
    for place, step in enumerate(steps):
        # As a task does, a step runs in a context of its own, and is the current task.
        stand_in, context = _StandIn(), copy_context()
        asyncio.tasks._leave_task(loop, parent)
        asyncio.tasks._enter_task(loop, cast("asyncio.Task[object]", stand_in))
        try:
            future = context.run(step.send, None)
        except StopIteration as end:
            results[place] = end.value
        except (Exception, asyncio.CancelledError) as failure:
            failures.append(failure)
        else:
            stand_in.task = tasks[place] = loop.create_task(_rest(Waiting(step, future)), context=context)
        finally:
            asyncio.tasks._leave_task(loop, cast("asyncio.Task[object]", stand_in))
            asyncio.tasks._enter_task(loop, parent)
    if tasks:
        try:
            if not failures and not await _have_all_succeeded(tasks.values()):
                failures = _failures(tasks.values())
        finally:
            if pending := [task for task in tasks.values() if not task.done()]:
                await _end(pending)
        if failures:
            failures += _failures(tasks.values())
    if failures:
        raise next((failure for failure in failures if isinstance(failure, Superseded)), failures[0])
    for place, task in tasks.items():
        results[place] = task.result()
    return tuple(results)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items, so many at a time: what is done beside each other is bounded."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


class _StandIn:
    """Stands for the task of a step until the step waits and gets one: a timeout or a group that the step enters
    remembers whom to cancel."""

    __slots__ = ("task",)

    def __init__(self) -> None:
        self.task: asyncio.Task[object] | None = None

    def cancel(self, message: object = None) -> bool:
        """See `asyncio.Task.cancel`."""
        return self.task is not None and self.task.cancel(message)

    def cancelling(self) -> int:
        """See `asyncio.Task.cancelling`."""
        return 0 if self.task is None else self.task.cancelling()

    def uncancel(self) -> int:
        """See `asyncio.Task.uncancel`."""
        return 0 if self.task is None else self.task.uncancel()

    def done(self) -> bool:
        """See `asyncio.Task.done`."""
        return self.task is not None and self.task.done()


async def _have_all_succeeded(tasks: Collection[asyncio.Task[object]]) -> bool:
    """Waits until all tasks have ended or one has failed: `asyncio.wait` for the one case, at a third of its cost.
    Returns whether each has a result."""
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


async def _rest(waiting: Waiting[T]) -> T:
    return await waiting


async def _end(pending: Sequence[asyncio.Task[object]]) -> None:
    """Cancels tasks and waits until they have ended, even if it is cancelled itself meanwhile."""
    for task in pending:
        task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while pending := [task for task in pending if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _failures(tasks: Iterable[asyncio.Task[object]]) -> list[BaseException]:
    ended = (task for task in tasks if task.done() and not task.cancelled())
    return [failure for task in ended if (failure := task.exception()) is not None]
