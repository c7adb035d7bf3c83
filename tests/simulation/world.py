"""The simulated world: one bucket, and processes that live and die around it."""

import asyncio
from collections.abc import Coroutine, Mapping
from contextvars import copy_context
from enum import Enum
from typing import Any, Final, Literal, TypeVar

from storage_backends import ObjectStore
from tests.simulation.bucket import Bucket, Stored, Versions, digest
from tests.simulation.faults import NO_FAULTS, FaultPlan, Kind, PlannedFault
from tests.simulation.history import Event
from tests.simulation.loop import OWNER, SimulatedLoop
from tests.simulation.network import Chance, Link, Network, Observer
from tests.simulation.runtime import SimRuntime, wall_ms
from tests.simulation.store import SimulatedStore

T = TypeVar("T")

MAX_SKEW_MS = 2_000


class Died(Enum):
    """What comes of work whose process died over it: no answer."""

    DIED = "died"


DIED: Final[Literal[Died.DIED]] = Died.DIED


class World:
    """Everything in one run.

    `plan` says which calls go wrong. The store tells its time in steps of `tick_ms` (S3 tells whole seconds).
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        plan: FaultPlan = NO_FAULTS,
        *,
        versions: Versions = digest,
        page_size: int = 5,
        tick_ms: int = 1_000,
    ) -> None:
        self.loop = loop
        self.plan = plan
        self.runtime = SimRuntime(f"{loop.seed}/world", loop)
        self._store_off_ms = 0
        self._bucket = Bucket(lambda: (wall_ms(loop) + self._store_off_ms) // tick_ms * tick_ms, versions, page_size)
        self._network = Network(loop, self._bucket, plan)
        self._processes: dict[str, Process] = {}

    @property
    def seed(self) -> int:
        """The root of everything random in this run."""
        return self.loop.seed

    def process(self, name: str, skew_ms: int | None = None) -> "Process":
        """The process of this name, started if need be. Its wall clock is off by `skew_ms`, else by a seeded amount."""
        if name not in self._processes:
            skew = self.loop.stream(f"{name}/skew").randint(-MAX_SKEW_MS, MAX_SKEW_MS) if skew_ms is None else skew_ms
            self._processes[name] = Process(name, skew, self._network)
        return self._processes[name]

    def handle(self, process: str) -> ObjectStore:
        """The store as this process sees it."""
        return self.process(process).store

    def observe(self, observer: Observer) -> None:
        """Calls `observer` in the very instant after each applied write; what it raises ends the run."""
        self._network.observers.append(observer)

    def snapshot(self) -> dict[str, bytes]:
        """Every object's body by key, as of now."""
        return {key: stored.body for key, stored in self._bucket.objects.items()}

    def peek(self, key: str) -> bytes | None:
        """One object's body as of now."""
        stored = self._bucket.objects.get(key)
        return None if stored is None else stored.body

    def stored(self) -> dict[str, Stored]:
        """All objects as of now, as `fill` takes them."""
        return dict(self._bucket.objects)

    def fill(self, objects: Mapping[str, Stored]) -> None:
        """Puts objects there that were there all along."""
        self._bucket.objects.update(objects)

    def lose(self, prefix: str) -> None:
        """Removes objects, as a disaster does, without an event."""
        for key in self.keys(prefix):
            del self._bucket.objects[key]

    def keys(self, prefix: str) -> list[str]:
        """The keys of the objects that there are now."""
        return [key for key in self._bucket.objects if key.startswith(prefix)]

    def set_store_clock(self, off_ms: int) -> None:
        """Sets the clock of the store: by how much it is ahead of the true time."""
        self._store_off_ms = off_ms

    def bound_abandoned_calls(self, seconds: float) -> None:
        """From now on, a call lands within this time after whoever sent it is gone, or never."""
        self._network.abandoned_s = seconds

    def draw_faults(self, chance: Chance | None) -> None:
        """From now on, calls that no plan names meet what `chance` draws."""
        self._network.chance = chance

    async def settle(self) -> None:
        """Waits until nothing is on its way to the store any more: what is true then stays true."""
        await self._network.settle()

    @property
    def history(self) -> list[Event]:
        """Every step of every call so far."""
        return self._network.history

    @property
    def calls(self) -> Mapping[str, list[Kind]]:
        """The kinds of the calls that each process has made, in order: what `every_single_fault` asks for."""
        return self._network.calls

    @property
    def fired(self) -> list[PlannedFault]:
        """The planned faults that did befall a call."""
        return self._network.fired


class Process:
    """A machine that runs our code: its own clock, its own ids, its own line to the store."""

    def __init__(self, name: str, skew_ms: int, network: Network) -> None:
        loop = network.loop
        self.name = name
        self.runtime = SimRuntime(f"{loop.seed}/{name}", loop, process=name, skew_ms=skew_ms)
        self.store: ObjectStore = SimulatedStore(Link(network, name), network.bucket)
        self._network = network
        self._loop = loop

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return not self._loop.is_dead(self.name)

    def crash(self) -> None:
        """Kills the process here and now, with all that it is doing."""
        self._network.kill(self.name)

    async def run(self, work: Coroutine[Any, Any, T]) -> T | Died:
        """Does `work` in this process. Returns or raises what it does; `DIED` once the process is dead, whatever the
        remains of the work make of that."""
        if not self.alive:
            work.close()
            return DIED
        context = copy_context()
        context.run(OWNER.set, self.name)
        task = self._loop.create_task(work, context=context)
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            raise
        return task.result() if self.alive else DIED
