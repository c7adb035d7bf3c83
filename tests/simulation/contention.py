"""How long changes of the registry take, and how many calls, where many processes make them at once. `make
bench-creates` prints it for a number of processes and clients, in the time of a simulated world.

Each client makes changes one after the other, each under a key: tables that it creates, or creates, renames and drops.
Processes beside them may do other work, which needs registry commits of the catalog itself. The store answers every
call after about 20 ms. It may allow one write of an object a second, as Google Cloud Storage does, and refuse others,
which a backend sends another time after a pause.
"""

import argparse
import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.recorded_locations import change_locations
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.planning.relation_change import MissingLocations
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.evidence import cancel_in_registry
from arco_catalog.protocol.lookup import load
from arco_catalog.protocol.reservations import reserve_locations
from arco_catalog.state.entries import find_relation
from arco_catalog.state.index import relation_key
from arco_catalog.state.locations import Location
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.needs import Needs
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import Applied, ObjectStore, StoreUnavailable
from storage_backends.backoff import full_jitter
from storage_backends.memory import MemoryStore
from storage_backends.wrappers.measuring import Kind
from tests.simulation.clients import build_from_nothing
from tests.simulation.loop import SimulatedLoop
from tests.simulation.runtime import SimRuntime, wall_ms
from tests.support.registry_versions import raise_version
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.wrapped_stores import WrappedStore

LATENCY_S = 0.02
SETTINGS = Settings("wh", purge=PurgeSettings(undrop_window_ms=0))
MAX_STEPS = 200_000_000
HEADINGS = "processes x clients   a second   p50     p99   worst s   calls a change   swaps of HEAD a second   errors"
T = TypeVar("T")
Client = Callable[[CatalogFixture, str], Awaitable[None]]


@dataclass
class Contention:
    """The result of a run: the seconds that each change took, the errors by type, and the calls by kind and object."""

    processes: int
    clients: int
    seconds: float
    changes_s: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    swaps: int = 0
    beside_s: list[float] = field(default_factory=list)
    """The seconds that each step of the work beside took."""

    @property
    def per_second(self) -> float:
        """Changes made in a second."""
        return (len(self.changes_s) - self.errors.total()) / self.seconds

    @property
    def calls_per_change(self) -> float:
        """Calls of the store for each change."""
        return self.calls.total() / max(1, len(self.changes_s))

    def quantile(self, share: float) -> float:
        """The seconds in which this share of the changes ended."""
        ordered = sorted(self.changes_s)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def __str__(self) -> str:
        """A line of the table with `HEADINGS`."""
        beside = f"   beside {len(self.beside_s)}, worst {max(self.beside_s):.3f} s" if self.beside_s else ""
        return (
            f"{self.processes:>9} x {self.clients:<7} {self.per_second:>10.1f} {self.quantile(0.5):>7.3f} "
            f"{self.quantile(0.99):>7.3f} {self.quantile(1.0):>7.3f} {self.calls_per_change:>14.1f} "
            f"{self.swaps / self.seconds:>22.1f}   {dict(self.errors) or 'none'}{beside}"
        )


class DistantStore(WrappedStore):
    """A store that answers a call after about 20 ms, and counts it. It may allow one write of an object a second."""

    def __init__(
        self, inner: ObjectStore, result: Contention, runtime: SimRuntime, last: dict[str, int] | None
    ) -> None:
        """Makes a store over `inner` that counts calls in `result`. `last` has the time of the last write of each
        object, which processes share; None if objects may be written as often as they like."""
        super().__init__(inner)
        self._result = result
        self._runtime = runtime
        self._last = last

    async def _pass_on(self, kind: Kind, key: str, written: int, call: Callable[[], Awaitable[T]]) -> T:
        is_swap = kind == "put" and key.endswith("manifest.json")
        for pause_s in full_jitter(self._runtime.random):
            await self._runtime.sleep(pause_s + LATENCY_S * (0.35 + 0.3 * self._runtime.random()))
            self._result.calls[f"{kind} {key.split('/')[2] if key.startswith('wh/_catalog/') else 'other'}"] += 1
            self._result.swaps += is_swap
            last_ms = None if self._last is None else self._last.get(key)
            if kind == "put" and last_ms is not None and self._runtime.boot_ms() < last_ms + 1_000:
                continue
            answer = await call()
            if self._last is not None and isinstance(answer, Applied):
                self._last[key] = self._runtime.boot_ms()
            await self._runtime.sleep(LATENCY_S * (0.35 + 0.3 * self._runtime.random()))
            return answer
        raise StoreUnavailable("the object is written too often")


async def create(fixture: CatalogFixture, name: str) -> None:
    """Creates a table."""
    await fixture.table(name, key=fixture.key())


def mixed(draw: random.Random, mine: list[str], fixture: CatalogFixture, name: str) -> Awaitable[None]:
    """Creates, renames or drops a table of this client."""

    async def change() -> None:
        action = draw.choice(("create", "rename", "drop")) if mine else "create"
        session = fixture.session(key=fixture.key(), path=f"/{action}/{name}")
        if action == "create":
            await create(fixture, name)
            mine.append(name)
        elif action == "rename":
            await rename_table(session, (NS, mine[0]), (NS, name))
            mine[0] = name
        else:
            await drop_table(session, NS, mine.pop(0), purge=False)

    return change()


async def transact(fixture: CatalogFixture, name: str) -> None:
    """Creates two tables in a transaction, which places intents on the names, and settles them."""
    body = build_from_nothing("tester")
    changes = [(NS, name, body), (NS, f"{name}-b", body)]
    await commit_transaction(fixture.session({}, path=f"/transact/{name}"), changes)


async def add_location(fixture: CatalogFixture, name: str) -> None:
    """Adds a location to those that the worker's table holds, after it has given back the last one, which no commit has
    named: three registry commits."""
    table = name.partition("-")[0]
    state = fixture.session().state
    index = (await state.head()).index
    await load(state, index, Needs(keys=[relation_key(NS, table)]))
    found = find_relation(index, NS, table)
    assert found is not None
    place = Location.parse(f"memory:///wh/warehouse/{name}")
    await reserve_locations(fixture.session(), NS, table, MissingLocations(found.entity, [place]))


async def purge(fixture: CatalogFixture, name: str) -> None:
    """Purges a table: one registry commit drops it, one begins, one releases its locations."""
    await fixture.table(name)
    await drop_table(fixture.session(path=f"/drop/{name}"), NS, name, purge=True)
    await task_worker(fixture.catalog).run_due(lambda: False)


async def cancel(fixture: CatalogFixture, name: str) -> None:
    """Cancels an attempt of a dead process, as a takeover does."""
    head = await fixture.session().state.head()
    await cancel_in_registry(fixture.session(), {fixture.runtime.ulid(): WriteSet(registry=head.sequence)})


async def change_settings(fixture: CatalogFixture, name: str) -> None:
    """Changes a setting that HEAD has outside of the index, which no proposal contains."""
    await change_locations(fixture.session(), added=[f"memory:///{name}"])


BESIDE: Mapping[str, Client] = {
    "transaction": transact,
    "location": add_location,
    "purge": purge,
    "cancellation": cancel,
    "settings": change_settings,
}
"""Work that needs registry commits of the catalog itself."""


def contend(
    processes: int,
    clients: int,
    seconds: float,
    *,
    with_proposals: bool = True,
    one_write_a_second: bool = False,
    url: str | None = None,
    is_mixed: bool = False,
    beside: Client | None = None,
    workers: int = 4,
    seed: int = 1,
) -> Contention:
    """Lets clients of several processes change one registry for so many virtual seconds, and returns the result. The
    registry has version 2 if it is `with_proposals`. So many processes of `workers` repeat `beside`. `url` is that of
    the store, by default Google's if an object may have `one_write_a_second`."""
    url = url or ("gs://bench/" if one_write_a_second else "memory:///")
    loop = SimulatedLoop(seed, max_steps=MAX_STEPS)
    result = Contention(processes, clients, seconds)
    store = MemoryStore(now_ms=lambda: wall_ms(loop))
    last: dict[str, int] | None = {} if one_write_a_second else None

    def process(name: str) -> CatalogFixture:
        runtime = SimRuntime(f"{seed}/{name}", loop)
        return CatalogFixture(DistantStore(store, result, runtime, last), runtime, SETTINGS, url=url)

    async def client(fixture: CatalogFixture, name: str, change: Client, end: float) -> None:
        number = 0
        while loop.time() < end:
            since, number = loop.time(), number + 1
            try:
                await change(fixture, f"{name}-{number}")
            except CatalogError as error:
                result.errors[type(error).__name__] += 1
            result.changes_s.append(loop.time() - since)

    async def work(change: Client, name: str, end: float) -> None:
        fixture, number = process(name), 0
        while loop.time() < end:
            since, number = loop.time(), number + 1
            try:
                await change(fixture, f"{name}-{number}")
            except CatalogError as error:
                result.errors[f"{type(error).__name__} beside"] += 1
            result.beside_s.append(loop.time() - since)

    async def run() -> None:
        first = CatalogFixture(store, SimRuntime(f"{seed}/setup", loop), Settings("wh"), url=url)
        await first.namespace()
        for number in range(workers if beside is not None else 0):
            await first.table(f"w{number}")
        if with_proposals:
            await raise_version(first.session().state)
        end = loop.time() + seconds
        async with asyncio.TaskGroup() as group:
            for number in range(workers if beside is not None else 0):
                assert beside is not None
                group.create_task(work(beside, f"w{number}", end))
            for number in range(processes):
                fixture = process(f"p{number}")
                for each in range(clients):
                    draw, mine = random.Random(f"{seed}/{number}/{each}"), list[str]()
                    change: Client = partial(mixed, draw, mine) if is_mixed else create
                    group.create_task(client(fixture, f"p{number}c{each}", change, end))

    loop.run(run())
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line for each number of processes and clients, such as 16x4."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", default=["1x1", "2x1", "8x1", "16x1", "64x1", "16x4"], metavar="PxC")
    parser.add_argument("--seconds", type=float, default=10.0, help="virtual seconds of each run (default: 10)")
    parser.add_argument("--version", type=int, choices=(1, 2), default=2, help="version of the registry (default: 2)")
    parser.add_argument(
        "--one-write-a-second", action="store_true", help="an object takes one write a second, as on GCS"
    )
    parser.add_argument("--beside", choices=[*BESIDE], help="work of other processes, timed by itself")
    parser.add_argument("--workers", type=int, default=4, help="how many processes do that work (default: 4)")
    parser.add_argument("--mixed", action="store_true", help="creates, renames and drops instead of creates")
    chosen = parser.parse_args(arguments)
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)
    print(HEADINGS)
    for size in chosen.sizes:
        processes, _, clients = size.partition("x")
        result = contend(
            int(processes),
            int(clients or 1),
            chosen.seconds,
            with_proposals=chosen.version == 2,
            one_write_a_second=chosen.one_write_a_second,
            is_mixed=chosen.mixed,
            beside=None if chosen.beside is None else BESIDE[chosen.beside],
            workers=chosen.workers,
        )
        print(result, flush=True)


if __name__ == "__main__":
    main()
