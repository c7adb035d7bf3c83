"""The deadlines of calls that wait for a store, by one timer of the event loop.

A timeout for each call takes a tenth of the CPU time of a warm load. Hardly any call lasts until its deadline, so the
timer is set once, for the earliest, and then for the earliest of those that wait by that time.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import TypeVar

from storage_backends.base import DeadlinePassed
from storage_backends.eager import Waiting
from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T")


class CallTimedOut(DeadlinePassed):
    """The deadline of a request passed while a call of the store was under way: the call was ended without its
    answer."""


@dataclass(eq=False, slots=True)
class _Call:
    """A call that waits: its task, until when by the clock of the event loop, and how often the task had been cancelled
    before. `is_over` is whether the timer has cancelled it, too."""

    task: asyncio.Task[object]
    ends: float
    cancelling: int
    is_over: bool = False


class CallTimer:
    """The timers of all calls that wait, one for each event loop, of which several may run in threads."""

    def __init__(self) -> None:
        self._timers: dict[asyncio.AbstractEventLoop, _LoopTimer] = {}

    async def wait(self, waiting: Waiting[T], seconds: float, reason: str) -> T:
        """Waits for the rest of a call, and returns its result. Raises what the call raises; after so many `seconds`,
        cancels it and raises `CallTimedOut` with the `reason`, where `asyncio.timeout` would raise `TimeoutError`."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        call = _Call(task, loop.time() + seconds, task.cancelling())
        timer = self._timers.get(loop) or self._begin(loop)
        timer.calls[call] = None
        if call.ends < timer.ends:
            timer.set(call.ends)
        try:
            return await waiting
        except asyncio.CancelledError as error:
            if not call.is_over or task.cancelling() > call.cancelling + 1:
                raise
            raise CallTimedOut(reason) from error
        finally:
            timer.calls.pop(call, None)
            if call.is_over:
                task.uncancel()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> "_LoopTimer":
        """Makes and returns the timer for the calls of an event loop, and forgets the timers of event loops that are
        closed."""
        kept = {each: timer for each, timer in list(self._timers.items()) if not each.is_closed()}
        timer = _LoopTimer(loop)
        self._timers = {**kept, loop: timer}
        return timer


class _LoopTimer:
    """The timer of the calls that wait in one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.calls: dict[_Call, None] = {}  # in their order, which a set does not have
        self.ends = math.inf
        """When the timer ends, which is no later than the end of each call."""
        self._handle: asyncio.TimerHandle | None = None

    def set(self, ends: float) -> None:
        """Sets the timer of the calls that wait to go off at `ends`, a time by the clock of the event loop, and at no
        other time."""
        if self._handle is not None:
            self._handle.cancel()
        self.ends, self._handle = ends, self._loop.call_at(ends, self._end_late_calls)

    def _end_late_calls(self) -> None:
        """Ends, in the next turn of the event loop, the calls whose time is over, and sets the timer for the earliest
        of the others. The task of a call that was sent in this turn may not have begun, and would end with the
        cancellation unseen."""
        self.ends, self._handle, now = math.inf, None, self._loop.time()
        late = [call for call in self.calls if call.ends <= now]
        if late:
            self._loop.call_soon(self._end, late)
        if left := [call.ends for call in self.calls if call.ends > now]:
            self.set(min(left))

    def _end(self, late: Sequence[_Call]) -> None:
        """Cancels the tasks of these calls, except of calls that have ended, or were cancelled by the timer before."""
        for call in late:
            if call in self.calls and not call.is_over:
                call.is_over = True
                call.task.cancel()
