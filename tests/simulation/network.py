"""The way from a process to the store and back: latencies, faults, and what becomes of calls nobody waits for any more.

A call is a chain of three instants: it is *sent*, it *lands* (one atomic step of the bucket), it is *answered*. Random
latencies lie between them, so that seeds reach every order in which calls that overlap in time can land.
"""

import asyncio
import math
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from storage_backends import (
    Applied,
    Found,
    Missing,
    Outcome,
    Page,
    PreconditionFailed,
    StoreDenied,
    StoreUnavailable,
    Unchanged,
    Unknown,
    When,
)
from tests.simulation.bucket import Bucket
from tests.simulation.faults import NONE, WRITES, Fault, FaultPlan, Kind, Lands, PlannedFault, Then
from tests.simulation.history import Event
from tests.simulation.loop import Crashed, SimulatedLoop

Answer = Found | Unchanged | Missing | Page | Outcome
T = TypeVar("T", bound=Answer)

Observer = Callable[[Event], object]


class Chance(Protocol):
    """Faults that are drawn call by call, where no plan names them."""

    def fault(self, process: str, kind: Kind, key: str, when: When | None, lost: bool) -> Fault:
        """What befalls a call, `NONE` for nothing. `lost` says that the last compare-and-swap of this process was
        refused."""
        ...


@dataclass(slots=True, eq=False)
class Call:
    """One call in flight. `due` is its timer until it arrives at the store, then None."""

    process: str
    number: int
    kind: Kind
    key: str
    act: Callable[[], Answer]
    fault: Fault
    answer: asyncio.Future[Answer]
    task: asyncio.Task[object] | None
    context: Context
    due: asyncio.TimerHandle | None = None


class Network:
    """Joins every process to one bucket, keeps the history, and shows the observers each write as it takes effect."""

    def __init__(self, loop: SimulatedLoop, bucket: Bucket, plan: FaultPlan) -> None:
        self.loop = loop
        self.bucket = bucket
        self.history: list[Event] = []
        self.fired: list[PlannedFault] = []
        self.observers: list[Observer] = []
        self.calls: dict[str, list[Kind]] = {}
        self.chance: Chance | None = None
        self._plan = plan.by_call()
        self._lost: set[str] = set()
        self._stuck: dict[str, tuple[float, Fault]] = {}
        self._durations = loop.stream("stuck")
        self._own_context = copy_context()  # what is under way lands whatever becomes of its sender
        self._quiet_at = 0.0
        self.abandoned_s = math.inf
        """After how long a call has landed, or never does, of which whoever sent it is gone."""

    def next_call(self, process: str, kind: Kind, key: str, when: When | None) -> tuple[int, Fault]:
        """Counts a call and says what befalls it."""
        calls = self.calls.setdefault(process, [])
        calls.append(kind)
        until, stuck = self._stuck.get(key, (0.0, NONE))
        if self.loop.time() < until and stuck.befalls(kind):
            return len(calls), stuck
        fault = self._plan.get((process, len(calls)), NONE)
        if fault is NONE and self.chance is not None:
            fault = self.chance.fault(process, kind, key, when, process in self._lost)
        if fault is NONE or not fault.befalls(kind):
            return len(calls), NONE
        self.fired.append(PlannedFault(process, len(calls), fault))
        if fault.stays:
            self._stuck[key] = self.loop.time() + self._durations.uniform(1.0, 60.0), fault
        return len(calls), fault

    def remember(self, call: Call, told: Answer | Exception) -> None:
        """Whether the last compare-and-swap of a process was refused: what comes next is the riskiest of its calls."""
        if isinstance(told, PreconditionFailed):
            self._lost.add(call.process)
        elif isinstance(told, Applied):
            self._lost.discard(call.process)

    def record(self, call: Call, step: str, detail: object = None) -> Event:
        """Adds to the history."""
        event = Event(self.loop.time(), call.process, call.number, call.kind, call.key, step, detail)
        self.history.append(event)
        return event

    def land(self, call: Call, how: str) -> Answer:
        """The instant in which a call does what it does."""
        answer = call.act()
        event = self.record(call, how, answer)
        if isinstance(answer, Applied):
            for observer in self.observers:
                observer(event)
        return answer

    def after(self, seconds: float, callback: Callable[..., object], *args: object) -> asyncio.TimerHandle:
        """Sets a timer that belongs to no process."""
        self._quiet_at = max(self._quiet_at, self.loop.time() + seconds)
        return self.loop.call_later(seconds, callback, *args, context=self._own_context)

    async def settle(self) -> None:
        """Returns when nothing is under way to the store any more, late landings included."""
        while self.loop.time() <= self._quiet_at:  # noqa: ASYNC110 - no poll: whoever still runs may put it off
            await asyncio.sleep(self._quiet_at - self.loop.time() + 0.001)

    def kill(self, process: str, sparing: asyncio.Task[object] | None = None) -> None:
        """The end of a process: its tasks are cancelled, and each of its calls in flight lands or does not."""
        if not self.loop.is_dead(process):
            self.history.append(Event(self.loop.time(), process, step="dies"))
            self.loop.kill(process, sparing=sparing)


class Link:
    """One process's line to the store."""

    def __init__(self, network: Network, process: str) -> None:
        self._network = network
        self._loop = network.loop
        self._process = process
        self._random = network.loop.stream(f"{process}/network")
        self._pace = self._new_pace()

    async def call(self, kind: Kind, key: str, when: When | None, act: Callable[[], T]) -> T:
        """Carries one call. Raises `StoreUnavailable` where planned and `Crashed` once the process is dead."""
        self._loop.check_alive(self._process)
        call = self._send(kind, key, when, act)
        try:
            return cast(T, await call.answer)
        except asyncio.CancelledError:
            self._abandon(call)
            raise

    def _send(self, kind: Kind, key: str, when: When | None, act: Callable[[], Answer]) -> Call:
        number, fault = self._network.next_call(self._process, kind, key, when)
        answer: asyncio.Future[Answer] = self._loop.create_future()
        call = Call(self._process, number, kind, key, act, fault, answer, asyncio.current_task(), copy_context())
        self._network.record(call, "sent" if fault is NONE else f"sent [{fault}]", when)
        seconds = self._latency() + (self._minutes() if fault.lands is Lands.SLOWLY else 0.0)
        seconds += self._random.uniform(0.3, 3.0) if fault.lands is Lands.SOON else 0.0
        call.due = self._network.after(seconds, self._arrive, call)
        return call

    def _arrive(self, call: Call) -> None:
        call.due = None
        answer = None
        if call.fault.lands in (Lands.NOW, Lands.TWICE, Lands.SOON, Lands.SLOWLY):
            answer = self._network.land(call, "lands")
        if call.fault.lands in (Lands.LATER, Lands.TWICE):
            self._network.after(self._later(), self._network.land, call, "lands late")
        if call.fault.then is Then.DIES:
            self._die(call)
        else:
            self._answer(call, self._told(call, answer))

    def _told(self, call: Call, answer: Answer | None) -> Answer | Exception:
        match call.fault.then:
            case Then.IS_TOLD_UNKNOWN:
                return Unknown(f"simulated: {call.fault}")
            case Then.IS_TOLD_UNAVAILABLE:
                return StoreUnavailable(f"simulated: {call.fault}")
            case Then.IS_TOLD_DENIED:
                return StoreDenied(f"simulated: {call.fault}")
            case Then.IS_TOLD_REFUSED if isinstance(answer, Applied):
                return PreconditionFailed(self._network.bucket.version(call.key), answer.now_ms)
            case _:
                assert answer is not None, f"{call.fault} answers for a request that has not landed"
                return answer

    def _answer(self, call: Call, told: Answer | Exception) -> None:
        seconds = self._latency()
        if call.fault.then is Then.IS_ANSWERED_SLOWLY:
            seconds += self._minutes()
        if call.fault.then is Then.STANDS_STILL:
            self._loop.suspend(self._process, self._minutes())
        # A timer of the process, not of the network: who stands still hears no answer.
        self._loop.call_later(seconds, self._deliver, call, told, context=call.context)

    def _deliver(self, call: Call, told: Answer | Exception) -> None:
        if call.answer.done():
            return
        self._network.record(call, "answered", told)
        self._network.remember(call, told)
        if isinstance(told, Exception):
            call.answer.set_exception(told)
        else:
            call.answer.set_result(told)

    def _die(self, call: Call) -> None:
        if not call.answer.done():
            call.answer.set_exception(Crashed(self._process))
        self._network.kill(self._process, sparing=call.task)

    def _abandon(self, call: Call) -> None:
        """Who sent the call is gone (a deadline, or its death); a write on its way may land all the same."""
        if call.due is None:
            return
        due_in = call.due.when() - self._loop.time()
        call.due.cancel()
        lands = call.fault.lands
        if call.kind not in WRITES:
            lands = Lands.NEVER
        elif call.fault is NONE:
            lands = self._random.choice((Lands.NOW, Lands.NEVER, Lands.LATER))
        self._network.record(call, "abandoned", f"lands {lands.name.lower()}")
        if lands is Lands.LATER:
            due_in = self._later()
        due_in = min(due_in, self._network.abandoned_s)
        if lands is not Lands.NEVER:
            self._network.after(due_in, self._network.land, call, "lands unheard")

    def _latency(self) -> float:
        """Seconds. The pace changes every other time, by up to a thousand: one process must be able to do all of its
        work between two steps of another."""
        if self._random.random() < 0.5:
            self._pace = self._new_pace()
        return -self._pace * math.log(1.0 - self._random.random())

    def _new_pace(self) -> float:
        return self._log_uniform(0.000_3, 0.3)

    def _minutes(self) -> float:
        """Longer than a request may take, and than a marker waits for its taker."""
        return self._random.uniform(25.0, 150.0)

    def _later(self) -> float:
        """From at once to minutes."""
        return self._log_uniform(0.01, 200.0)

    def _log_uniform(self, least: float, most: float) -> float:
        return least * math.exp(self._random.random() * math.log(most / least))
