"""Awaits steps concurrently: each runs at once until it first waits, and the first failure is raised as it is."""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from contextvars import copy_context
from itertools import islice
from typing import Any, Generic, TypeVar, cast, overload

from storage_backends.eager import Done, Waiting, run_until_it_waits

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


class Superseded(Exception):
    """Another sending of the request holds a later slot of the marker: it decides the answer, this attempt can't."""


@overload
async def gather(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B], /) -> tuple[A, B]: ...
@overload
async def gather(*steps: Coroutine[Any, Any, T]) -> tuple[T, ...]: ...
async def gather(*steps: Coroutine[Any, Any, object]) -> tuple[object, ...]:
    """Awaits the steps concurrently and returns their results in order.

    Steps are begun in order, and one that need not wait has ended before the next begins. The first failure cancels the
    others, and is raised when they have ended; `Superseded` goes before any other.
    """
    if len(steps) == 1:
        return (await steps[0],)
    begun = [_Step(step) for step in steps]
    for step in begun:
        step.begin()
    tasks = [step.task for step in begun if step.task is not None]
    failures = [step.failure for step in begun if step.failure is not None]
    if tasks:
        try:
            if not failures:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                failures = _failures(tasks)
        finally:
            await _end(task for task in tasks if not task.done())
        if failures:
            failures += _failures(tasks)
    if failures:
        raise next((failure for failure in failures if isinstance(failure, Superseded)), failures[0])
    return tuple(step.result() for step in begun)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items, so many at a time: what is done beside each other is bounded."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


class _Step(Generic[T]):
    """One step. Until it waits it has no task, and this object stands for it: a timeout or a group that the step enters
    remembers whom to cancel."""

    __slots__ = ("_coroutine", "_done", "failure", "task")

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._done: Done[T] | None = None
        self.failure: BaseException | None = None
        self.task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        """Runs the step until it waits, as a task does: with a context of its own."""
        loop, parent, context = asyncio.get_running_loop(), asyncio.current_task(), copy_context()
        assert parent is not None
        stand_in = cast("asyncio.Task[T]", self)
        asyncio.tasks._leave_task(loop, parent)
        asyncio.tasks._enter_task(loop, stand_in)
        try:
            begun = context.run(run_until_it_waits, self._coroutine)
        except (Exception, asyncio.CancelledError) as failure:
            self.failure = failure
        else:
            if isinstance(begun, Waiting):
                self.task = loop.create_task(_rest(begun), context=context)
            else:
                self._done = begun
        finally:
            asyncio.tasks._leave_task(loop, stand_in)
            asyncio.tasks._enter_task(loop, parent)

    def result(self) -> T:
        """Of a step that has ended. Raises `CancelledError` if it was cancelled."""
        if self._done is not None:
            return self._done.value
        assert self.task is not None
        return self.task.result()

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


async def _rest(waiting: Waiting[T]) -> T:
    return await waiting


async def _end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels tasks and waits until they have ended, even if it is cancelled itself meanwhile."""
    pending = list(tasks)
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


def _failures(tasks: Iterable[asyncio.Task[Any]]) -> list[BaseException]:
    ended = (task for task in tasks if task.done() and not task.cancelled())
    return [failure for task in ended if (failure := task.exception()) is not None]
