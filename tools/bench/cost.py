"""Computes what a deployment of the catalog costs, in US dollars: `python -m tools.bench.cost`.

Calls and bytes are counted, CPU is measured, both through the whole app over a table of 100 snapshots; `prices.py`
has what each costs. Functions and containers bill the time that a request waits, so its depth (docs/design/budgets.md)
costs money too.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from arco_catalog.http.app import create_app
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.catalogs import take_inventory
from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.telemetry.emf import COLLECTIONS, TASKS, WALKS, WATCHED
from arco_catalog.upkeep.jobs import Workplace, run_job
from storage_backends import ANY, Matches, ObjectStore, Outcome, When
from storage_backends.memory import MemoryStore
from storage_backends.probe import honours_conditions
from storage_backends.wrappers.measuring import Measurement
from tools.bench import prices
from tools.bench.prices import (
    AVAILABLE_SERVICE,
    DATED,
    DEPLOYMENTS,
    LAMBDA,
    MILLION,
    SMALL_SERVICE,
    Deployment,
    StorePrices,
)
from tools.support.asgi_client import Client
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.many_snapshots import table
from tools.support.request_bodies import set_property, uuid7
from tools.support.wrapped_stores import CountingStore, DelayingStore

SNAPSHOTS = 100
IDLE_TABLES = 1_000
LOG_BYTES = 2_048
"""A request's log line with its metrics, and the platform's own, rounded up."""
RUNS_A_MONTH = {"reconcile": 4 * prices.HOURS, "tasks": 12 * prices.HOURS, "collect": prices.HOURS / 24}
"""What the clock starts, as `infra/schedule.tf` has it."""
ALARMS = 19
"""Of `infra/alarms.tf`."""
ALARM_METRICS = ALARMS + 1
"""What alarms are billed by: the one on 5xx compares two metrics."""
METRICS = {"reconcile": WALKS, "tasks": TASKS, "collect": COLLECTIONS}
"""Of which a run that finds nothing to do writes those that are watched."""
POLLS_A_MONTH = 15 * 60 * prices.HOURS
"""How often Lambda asks an empty queue: five readers, each waiting twenty seconds."""
FARTHER_S = 0.002
ROUNDS = 40
TABLE = "/v1/wh/namespaces/db/tables/t"
RUNTIME = SystemRuntime()


@dataclass(frozen=True, slots=True)
class Usage:
    """What one request to the catalog uses: calls and bytes of the store, and CPU. Of the calls that wait for each
    other (`depth`), `swaps` replace an object by compare-and-swap."""

    name: str
    puts: int
    gets: int
    depth: int
    read: int
    written: int
    cpu_ms: float
    swaps: int = 0

    @classmethod
    def of(cls, name: str, counted: Measurement, cpu_ms: float, swapped: Collection[str] = ()) -> "Usage":
        """Lists cost what puts cost, and deletes nothing. `swapped` are the objects that were compared and swapped."""
        kinds = counted.by_kind
        puts, gets = kinds["put"] + kinds["list"], kinds["get"]
        swaps = len({call.depth for call in counted.trace if call.kind == "put" and call.key in swapped})
        return cls(name, puts, gets, counted.depth, counted.bytes_read, counted.bytes_written, cpu_ms, swaps)

    def store_dollars(self, store: StorePrices) -> float:
        """Of the store alone."""
        requests = (self.puts * store.put + self.gets * store.get) / 1_000
        return requests + (self.written * store.uploaded + self.read * store.downloaded) / (1 << 30)

    def billed_ms(self, deployment: Deployment) -> float:
        """What is billed: the calls that wait for each other, and CPU by the share that the instance has."""
        store = deployment.store
        waiting_ms = (self.depth - self.swaps) * store.step_ms + self.swaps * store.swap_ms
        return deployment.compute.billed_ms(waiting_ms, self.cpu_ms)

    def compute_dollars(self, deployment: Deployment) -> float:
        """Of function or container and logs, without what is in front of it."""
        compute = deployment.compute
        seconds = self.billed_ms(deployment) / 1_000
        return compute.request + seconds * compute.second + LOG_BYTES / (1 << 30) * compute.log_gb

    def dollars(self, deployment: Deployment) -> float:
        """Of one request, everything included."""
        store = self.store_dollars(deployment.store)
        return store + self.compute_dollars(deployment) + deployment.compute.gateway


class NotingSwaps(MemoryStore):
    """A store in memory that records the keys of the objects that were replaced by compare-and-swap."""

    def __init__(self) -> None:
        super().__init__()
        self.swapped: set[str] = set()

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        if isinstance(when, Matches):
            self.swapped.add(key)
        return await super().put(key, body, when)


class Site:
    """A catalog in memory with one table, and server processes of it, for which the use of a request is measured."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.client = self.process()

    def process(self) -> Client:
        """A process that remembers nothing."""
        catalog = build_catalog(Settings("wh"), self.store, "memory:///", (), RUNTIME)
        return Client(create_app({"wh": catalog}))

    async def prepare(self) -> None:
        """Registers the table, and commits to it: as of most tables, its last metadata file is one of the catalog's."""
        home = "memory:///wh/warehouse/t"
        await self.store.put("wh/warehouse/t/metadata/00000-0.metadata.json", _metadata(home), ANY)
        await expect(self.client.post("/v1/wh/namespaces", {"namespace": ["db"]}))
        register: JsonObject = {"name": "t", "metadata-location": f"{home}/metadata/00000-0.metadata.json"}
        await expect(self.client.post("/v1/wh/namespaces/db/register", register))
        await expect(self.client.post(TABLE, set_property("a", "first")))

    async def load(self, client: Client) -> None:
        """One load."""
        await expect(client.get(TABLE))

    async def commit(self, client: Client) -> None:
        """One commit under a key, as Java clients send them."""
        change = set_property("a", RUNTIME.uuid())
        await expect(client.post(TABLE, change, idempotency_key=uuid7(RUNTIME.now_ms(), RUNTIME)))


def _metadata(home: str) -> bytes:
    return dumps(table(SNAPSHOTS, home))


async def expect(sending: Awaitable[object]) -> None:
    """Raises `RuntimeError` unless the answer is a success."""
    answer = await sending
    if getattr(answer, "status", None) != 200:
        raise RuntimeError(f"unexpected answer: {answer!r}")


Step = Callable[[Site, Client], Awaitable[None]]


async def usage(name: str, step: Step, *, warm: bool) -> Usage:
    """Counts one request over a store that takes an even time, and times many over one that takes none."""
    noting = NotingSwaps()
    counting = CountingStore(DelayingStore(noting, FARTHER_S))
    site = Site(counting)
    await site.prepare()
    client = site.client if warm else site.process()
    if warm:
        await step(site, client)
    noting.swapped.clear()
    with counting.measure() as counted:
        await step(site, client)
    return Usage.of(name, counted, await cpu_ms(step, warm=warm), noting.swapped)


async def cpu_ms(step: Step, *, warm: bool) -> float:
    """CPU of one request."""
    site = Site(MemoryStore())
    await site.prepare()
    clients = [site.client if warm else site.process() for _ in range(ROUNDS)]
    await step(site, clients[0])
    began = time.process_time()
    for client in clients:
        await step(site, client)
    return 1_000 * (time.process_time() - began) / ROUNDS


async def idle_runs() -> tuple[Mapping[str, Usage], int]:
    """What the clock starts for tables of which none has changed, each behind the probe of the store that every run
    begins with, and the bytes that the catalog's state takes."""
    counting = CountingStore(MemoryStore())
    fixture = CatalogFixture(counting, settings=Settings("wh"))
    await fixture.namespace(*NS)
    for number in range(IDLE_TABLES):
        await fixture.table(f"t{number}")
    used: dict[str, Usage] = {}
    for job in RUNS_A_MONTH:
        await _run(job, fixture)
        began = time.process_time()
        with counting.measure() as counted:
            await honours_conditions(counting, RUNTIME.ulid())
            await _run(job, fixture)
        used[job] = Usage.of(job, counted, 1_000 * (time.process_time() - began))
    return used, await _bytes_in(counting)


async def _run(job: str, fixture: CatalogFixture) -> None:
    """By a process that remembers nothing."""
    deadline_ms = RUNTIME.now_ms() + 900_000
    call = OperationRequest("SCHEDULE", job, "", None, "work", {"kind": "Reconciler"}, deadline_ms)
    inventory = await take_inventory(fixture.another().catalog, "memory:///")
    body = dumps({"version": 1, "work": job}).decode()
    await run_job(body, Workplace(inventory, call, RUNTIME, lambda: False))


async def _bytes_in(store: ObjectStore) -> int:
    size, after = 0, None
    while True:
        page = await store.list("", after)
        size += sum(item.size for item in page.entries)
        after = page.after
        if after is None:
            return size


def quiet_metrics() -> float:
    """How many metrics runs without anything to do write all month: one is billed for the hours in which it is told."""
    return sum(
        sum(name in WATCHED for _, metrics in METRICS[job] for name in metrics) * min(1.0, runs / prices.HOURS)
        for job, runs in RUNS_A_MONTH.items()
    )


def idle_month(runs: Mapping[str, Usage], stored: int, deployment: Deployment) -> dict[str, float]:
    """Dollars a month for a catalog that nobody calls, by what they are for: what the clock starts, the state, and on
    Amazon what watches it."""
    store, compute = deployment.store, deployment.compute
    items = {
        job: RUNS_A_MONTH[job] * (run.store_dollars(store) + run.compute_dollars(deployment) + compute.schedule)
        for job, run in runs.items()
    }
    items["state"] = stored / (1 << 30) * store.stored
    if compute.schedule_month:
        items["schedule"] = compute.schedule_month * len(runs)
    if compute is LAMBDA:
        items["queue"] = POLLS_A_MONTH * prices.QUEUE_REQUEST
        items["alarms"] = ALARM_METRICS * prices.ALARM_MONTH
        items["metrics"] = quiet_metrics() * prices.METRIC_MONTH
        items["dashboard"] = prices.DASHBOARD_MONTH
    return items


async def run() -> None:
    """Prints the tables as Markdown, for docs/cost.md."""
    usages = [
        await usage("loadTable, warm", Site.load, warm=True),
        await usage("loadTable, cold", Site.load, warm=False),
        await usage("commit with key, warm", Site.commit, warm=True),
        await usage("commit with key, cold", Site.commit, warm=False),
    ]
    print(f"A table of {SNAPSHOTS} snapshots, list prices as of {DATED}.\n")
    print("| request | PUT | GET | depth | of which swaps | KB read | KB written | CPU ms |")
    print("| --- | --: | --: | --: | --: | --: | --: | --: |")
    for used in usages:
        sizes = f"{used.read / 1024:.0f} | {used.written / 1024:.0f}"
        print(
            f"| {used.name} | {used.puts} | {used.gets} | {used.depth} | {used.swaps} | {sizes} | {used.cpu_ms:.1f} |"
        )
    print(f"\n| billed ms / $ a million | {' | '.join(used.name for used in usages)} |")
    print(f"| --- |{' --: |' * len(usages)}")
    for deployment in DEPLOYMENTS:
        told = [f"{used.billed_ms(deployment):,.0f} / {used.dollars(deployment) * MILLION:.2f}" for used in usages]
        print(f"| {deployment.name} | {' | '.join(told)} |")
    print()
    runs, stored = await idle_runs()
    print(f"| a month without a call, {IDLE_TABLES:,} tables | $ | of which |\n| --- | --: | --- |")
    for deployment in DEPLOYMENTS:
        items = idle_month(runs, stored, deployment)
        print(f"| {deployment.name} | {sum(items.values()):.2f} | {_told(items)} |")
    for name, rented in (("a small RDS and a container", SMALL_SERVICE), ("the same, two of each", AVAILABLE_SERVICE)):
        months = {item.name: item.a_month * rented.count(item) for item in rented}
        print(f"| {name} | {sum(months.values()):.2f} | {_told(months)} |")
    print()
    for job, run in runs.items():
        print(
            f"`{job}`, {RUNS_A_MONTH[job]:,.0f} times: {run.puts} LISTs and PUTs, {run.gets} GETs, depth {run.depth}."
        )
    print(f"The state of {IDLE_TABLES:,} tables is {stored / (1 << 20):.1f} MB.")


def _told(items: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {dollars:.2f}" for name, dollars in items.items())


def main() -> int:
    """Measures everything."""
    asyncio.run(run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
