"""Starts a coroutine at once, as a task: it runs until it first waits before the caller goes on.

From Python 3.12 on asyncio has such tasks. Python 3.11 has none: there a step runs outside of a task until it waits,
and a stand-in is the current task meanwhile. That needs two functions of asyncio which are not public. They stay as
they are, since Python 3.11 gets no more than fixes of security, and no later version uses them here.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any, Generic, TypeAlias, TypeVar, cast

from storage_backends.eager import Waiting
from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Result(Generic[T]):
    """The result of a coroutine that did not wait."""

    value: T


@dataclass(frozen=True, slots=True)
class Failure:
    """The exception of a coroutine that failed before it waited."""

    error: BaseException


Started: TypeAlias = asyncio.Task[T] | Result[T] | Failure

if sys.version_info >= (3, 12):

    def start(step: Coroutine[Any, Any, T]) -> Started[T]:
        """Runs a coroutine until it waits, in a context of its own. Returns the task of the rest of it if it waits, a
        `Result` if it ended without waiting, and a `Failure` with the exception if it failed before."""
        task = asyncio.Task(step, loop=asyncio.get_running_loop(), eager_start=True)
        if not task.done():
            return task
        if task.cancelled():
            return Failure(asyncio.CancelledError())
        error = task.exception()
        return Result(task.result()) if error is None else Failure(error)

else:

    def start(step: Coroutine[Any, Any, T]) -> Started[T]:
        """Runs a coroutine until it waits, in a context of its own. Returns the task of the rest of it if it waits, a
        `Result` if it ended without waiting, and a `Failure` with the exception if it failed before."""
        loop, parent = asyncio.get_running_loop(), asyncio.current_task()
        assert parent is not None
        stand_in, context = _StandIn(), copy_context()
        asyncio.tasks._leave_task(loop, parent)
        asyncio.tasks._enter_task(loop, cast("asyncio.Task[object]", stand_in))
        try:
            future = context.run(step.send, None)
        except StopIteration as end:
            return Result(end.value)
        except (Exception, asyncio.CancelledError) as error:
            return Failure(error)
        else:
            task = loop.create_task(_rest(Waiting(step, future)), context=context)
            stand_in.cancel, stand_in.done = task.cancel, task.done
            stand_in.cancelling, stand_in.uncancel = task.cancelling, task.uncancel
            return task
        finally:
            asyncio.tasks._leave_task(loop, cast("asyncio.Task[object]", stand_in))
            asyncio.tasks._enter_task(loop, parent)

    async def _rest(waiting: Waiting[T]) -> T:
        return await waiting


class _StandIn:
    """Stands for the task of a step until the step waits and gets one: a timeout or a group that the step enters
    remembers the task to cancel. Its methods are then those of the task. Before, nothing can have cancelled the step,
    and `int()` and `bool()` are 0 and False."""

    cancel: Callable[..., bool] = staticmethod(lambda message=None: False)
    cancelling: Callable[[], int] = int
    uncancel: Callable[[], int] = int
    done: Callable[[], bool] = bool
