"""An asyncio event loop on which time is a number.

Nothing sleeps: when no callback is ready, the clock jumps to the next timer. There are no sockets and no threads, so
what a program does is decided by its own code and by the seed alone, and a week of waiting takes no time at all.

Code runs in the name of an *owner* (a simulated process): tasks and timers inherit it from whoever made them. An owner
can be killed, and it can be suspended for a while with all its timers, like a machine that sleeps.
"""

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context, ContextVar
from typing import Any, TypeVar, TypeVarTuple

from tests.simulation.garbage import collect

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_STEPS = 20_000
MAX_SECONDS = 30 * 24 * 3600.0
MAX_PASSING = 24 * 3600.0
"""How far the clock moves in one turn."""
MAX_CANCELLED = 100
"""Timers of which most may be cancelled before those are taken out."""

OWNER: ContextVar[str] = ContextVar("owner", default="")
"""In whose name this code runs; empty for the scenario itself."""


class SimulationError(Exception):
    """The run cannot go on, or something in it failed with nobody looking."""


class DeadlockError(SimulationError):
    """Nothing is ready, no timer is set, and the main task is not done."""


class RunawayError(SimulationError):
    """The run took more steps, or more virtual time, than it may."""


class Crashed(BaseException):
    """The owner of the code that gets this is dead. Like `KeyboardInterrupt`, it is no business of error handlers."""


class SimulatedTask(asyncio.Task[Any]):
    """A task with a number, which makes the order of sets of tasks (those of `TaskGroup`, of `wait`) repeatable."""

    def __init__(self, work: Coroutine[Any, Any, Any], loop: "SimulatedLoop", number: int, context: Context | None):
        self.number = number
        self.owner = _owner(context)
        super().__init__(work, loop=loop, name=f"task-{number}", context=context)

    def __hash__(self) -> int:
        return self.number

    def describe(self) -> str:
        """Its name, its owner, and the line of the outermost coroutine that waits."""
        owner = f" of {self.owner}" if self.owner else ""
        place = "".join(f" at {frame.f_code.co_qualname}:{frame.f_lineno}" for frame in self.get_stack(limit=1))
        return f"{self.get_name()}{owner}{place}"


class SimulatedLoop(asyncio.BaseEventLoop):
    """One run: a clock that starts at 0 s, and a seed from which everything random in the run is derived.

    `max_steps` bounds the turns of the loop and `max_seconds` the virtual time; beyond, the run ends in `RunawayError`.
    """

    # What asyncio's base class shares with the loops built on it.
    _ready: deque[asyncio.Handle]
    _scheduled: list[tuple[float, asyncio.TimerHandle]]
    _stopping: bool
    _timer_cancelled_count: int

    def __init__(self, seed: int = 0, *, max_steps: int = MAX_STEPS, max_seconds: float = MAX_SECONDS) -> None:
        super().__init__()
        self.seed = seed
        self.steps = 0
        """How many turns the loop has taken."""
        self._now = 0.0
        self._max_steps = max_steps
        self._max_seconds = max_seconds
        # The host's own would make runs differ between machines. Months have no nanoseconds in a float.
        self._resolution = 1e-9 if max_seconds <= MAX_SECONDS else 1e-6
        self._tasks: list[SimulatedTask] = []  # asyncio holds them weakly: garbage collection would decide who lives
        self._dead: set[str] = set()
        self._suspended_until: dict[str, float] = {}
        self._failure: BaseException | None = None
        self.set_task_factory(self._make_task)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Runs `main` to its end, cancels what it left behind, closes the loop; returns or raises what `main` did.

        Raises `DeadlockError` or `RunawayError` where there is no end, and as soon as it is known whatever a callback
        raised, or a task that nobody awaits: no failure passes unseen, but those of owners that were killed.
        """
        collect()
        task = self.create_task(main)
        task.add_done_callback(lambda _: self.stop())
        try:
            self.run_forever()
            self._raise_failure()
            self._raise_unseen(task)
            return task.result()
        finally:
            self._wind_down()

    def stream(self, name: str) -> random.Random:
        """A source of randomness of its own for `name`: what others draw does not shift it."""
        return random.Random(f"{self.seed}/{name}")

    def time(self) -> float:
        """Virtual seconds since the run began."""
        return self._now

    def pending(self) -> list[SimulatedTask]:
        """The tasks that are not done, oldest first."""
        return [task for task in self._tasks if not task.done()]

    # Owners

    def kill(self, owner: str, *, sparing: asyncio.Task[Any] | None = None) -> None:
        """Declares `owner` dead and cancels its tasks, but for one to which the caller tells the news itself."""
        self._dead.add(owner)
        for task in self.pending():
            if task.owner == owner and task is not sparing:
                task.cancel()

    def is_dead(self, owner: str) -> bool:
        """Whether `owner` was killed."""
        return owner in self._dead

    def check_alive(self, owner: str) -> None:
        """Raises `Crashed` if `owner` was killed: what is left of its code has no effect on the world."""
        if owner in self._dead:
            raise Crashed(owner)

    def suspend(self, owner: str, seconds: float) -> None:
        """Puts off every timer of `owner`, and those it sets until then. What is ready in this instant still runs."""
        self._suspended_until[owner] = max(self.time(), self._suspended_until.get(owner, 0.0)) + seconds
        for _, timer in self._scheduled:
            if _owner(timer._context) == owner:  # type: ignore[attr-defined]
                timer._when += seconds  # type: ignore[attr-defined]
        self._scheduled = [(timer.when(), timer) for _, timer in self._scheduled]
        heapq.heapify(self._scheduled)

    # What asyncio asks of a loop

    def __del__(self) -> None:
        """Does not insist on having been closed: there is no socket to leak."""

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Sets a timer. That of a suspended owner rings as much later as the suspension still lasts."""
        if self._suspended_until:
            when += max(0.0, self._suspended_until.get(_owner(context), 0.0) - self._now)
        timer = _Timer(when, callback, args, self, context)
        timer._scheduled = True  # type: ignore[attr-defined]
        heapq.heappush(self._scheduled, (when, timer))
        return timer

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Sets a timer, from now on."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Has `callback` called in the next turn."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Does a thread's work at once and in place: there are no threads here."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Ends the run with what a callback raised, or a future that failed with nobody asking."""
        if self._failure is None:
            self._failure = context.get("exception") or SimulationError(context["message"])
            self.stop()

    def _make_task(self, _: asyncio.AbstractEventLoop, work: Any, *, context: Context | None = None) -> SimulatedTask:
        task = SimulatedTask(work, self, len(self._tasks), context)
        self._tasks.append(task)
        return task

    def _run_once(self) -> None:
        """One turn: time passes until something is ready, and all that is ready is called. asyncio's own does the same
        at more than twice the cost: it asks a selector for events, and compares timers in Python."""
        ready = self._ready
        self._forget_cancelled_timers()
        if not ready and not self._stopping:
            self._pass_time()
        self.steps += 1
        if self.steps > self._max_steps or self._now > self._max_seconds:
            raise RunawayError(f"no end after {self.steps} steps and {self._now:.0f} virtual s: {self._waiting()}")
        end, scheduled = self._now + self._resolution, self._scheduled
        while scheduled and scheduled[0][0] < end:
            _, timer = heapq.heappop(scheduled)
            timer._scheduled = False  # type: ignore[attr-defined]
            ready.append(timer)
        for _ in range(len(ready)):
            handle: Any = ready.popleft()
            if not handle._cancelled:
                try:
                    handle._context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    self.call_exception_handler({"message": "a callback failed", "exception": error})
                del handle

    def _forget_cancelled_timers(self) -> None:
        scheduled = self._scheduled
        if len(scheduled) > MAX_CANCELLED and self._timer_cancelled_count > len(scheduled) / 2:
            for _, timer in scheduled:
                timer._scheduled = not timer.cancelled()  # type: ignore[attr-defined]
            self._scheduled = [entry for entry in scheduled if not entry[1].cancelled()]
            heapq.heapify(self._scheduled)
            self._timer_cancelled_count = 0
        else:
            while scheduled and scheduled[0][1].cancelled():
                self._timer_cancelled_count -= 1
                heapq.heappop(scheduled)[1]._scheduled = False  # type: ignore[attr-defined]

    def _pass_time(self) -> None:
        """Moves the clock to the next timer, by a day at most."""
        if not self._scheduled:
            raise DeadlockError(f"nothing can happen any more, and tasks wait: {self._waiting()}")
        self._now += min(max(0.0, self._scheduled[0][0] - self._now), MAX_PASSING)

    def _waiting(self) -> str:
        return "; ".join(task.describe() for task in self.pending())

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _raise_unseen(self, main: asyncio.Task[Any]) -> None:
        for task in self._tasks:
            unseen = task.done() and task._log_traceback  # asyncio's own mark of an exception not yet asked for
            if unseen and task is not main and not self.is_dead(task.owner):
                task.result()

    def _wind_down(self) -> None:
        left = self.pending()
        for task in left:
            task.cancel()
        # The run may have used up its bounds: this is for cleaning up.
        self._max_steps, self._max_seconds = self.steps + 10_000, self._now + 3600.0
        try:
            if left:
                self.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.run_until_complete(self.shutdown_asyncgens())
        finally:
            self.close()
            for task in self._tasks:  # they would collide with those of other loops, whose numbers they share
                asyncio._unregister_task(task)


class _Timer(asyncio.TimerHandle):
    """A timer that differs from every other: entries of the schedule with equal times are compared by it."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


def run(main: Coroutine[Any, Any, T], seed: int = 0) -> T:
    """Runs `main` on a loop of its own."""
    return SimulatedLoop(seed).run(main)


def _owner(context: Context | None) -> str:
    return OWNER.get() if context is None else context.get(OWNER, "")
