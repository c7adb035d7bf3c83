"""Counts the calls of the store that each operation of the catalog makes, and compares them with
docs/design/budgets.md: `python -m tools.bench.calls`."""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.operations.listing import Paging, list_relations
from arco_catalog.operations.load import load_table, require_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.open import open_store
from storage_backends.wrappers.measuring import Measurement
from tools.support.catalog_fixture import NS, CountingFixture
from tools.support.emulators import store_server
from tools.support.request_bodies import schema, set_property
from tools.support.served_realm import ServedRealm
from tools.support.wrapped_stores import CountingStore, DelayingStore

S3_URL = "s3://arco-bench/calls"
FARTHER_S = 0.020
"""Every call takes this much longer, so that calls beside each other are seen as such."""
RUNS = 3
TABLES = 3
"""How many a transaction names."""
NAMESPACES = "/v1/main/namespaces"
TABLES_OF_NS = f"{NAMESPACES}/{NS[0]}/tables"
T = f"{TABLES_OF_NS}/t"
SET = set_property("a", "1")
NEW: JsonObject = {"name": "u", "schema": schema("x")}


Scenario: TypeAlias = Callable[[CountingFixture], Awaitable[Measurement]]
"""Measures one operation at a catalog that has a table `t` in `db`, made by this very process."""


async def warm_load(fixture: CountingFixture) -> Measurement:
    await load_table(fixture.session(), NS, "t")
    return await fixture.cost(load_table(fixture.session(), NS, "t"))


async def cold_load(fixture: CountingFixture) -> Measurement:
    return await fixture.cost(load_table(fixture.another().session(), NS, "t"))


async def load_of_what_moved(fixture: CountingFixture) -> Measurement:
    await load_table(fixture.session(), NS, "t")
    await fixture.another().commit(set_property("a", "1"))
    return await fixture.cost(load_table(fixture.session(), NS, "t"))


async def missing_load(fixture: CountingFixture) -> Measurement:
    return await fixture.cost(load_table(fixture.session(), NS, "nothing"))


async def missing_head(fixture: CountingFixture) -> Measurement:
    return await fixture.cost(require_table(fixture.another().session(), NS, "nothing"))


async def warm_keyed_commit(fixture: CountingFixture) -> Measurement:
    return await fixture.cost(fixture.commit(set_property("a", "1"), key=fixture.key()))


async def cold_keyed_commit(fixture: CountingFixture) -> Measurement:
    return await fixture.cost(fixture.another().commit(set_property("a", "1"), key=fixture.key()))


async def warm_commit(fixture: CountingFixture) -> Measurement:
    return await fixture.cost(fixture.commit(set_property("a", "1")))


async def overtaken_commit(fixture: CountingFixture) -> Measurement:
    await fixture.commit(set_property("a", "1"))
    await fixture.another().commit(set_property("b", "1"))
    return await fixture.cost(fixture.commit(set_property("a", "2"), key=fixture.key()))


async def warm_create(fixture: CountingFixture) -> Measurement:
    return await fixture.cost(fixture.table("u"))


async def warm_keyed_create(fixture: CountingFixture) -> Measurement:
    return await fixture.cost(fixture.table("u", key=fixture.key()))


async def create_under_a_moved_head(fixture: CountingFixture) -> Measurement:
    await fixture.another().table("u")
    return await fixture.cost(fixture.table("v", key=fixture.key()))


async def later_page(fixture: CountingFixture) -> Measurement:
    await fixture.table("u")
    first = await list_relations(fixture.session(), NS, "table", Paging("", 1))
    await fixture.namespace("another")
    return await fixture.cost(
        list_relations(fixture.another().session(), NS, "table", Paging(first.next_page_token, 1))
    )


async def warm_keyed_transaction(fixture: CountingFixture) -> Measurement:
    names = [f"t{number}" for number in range(TABLES)]
    for name in names:
        await fixture.table(name)
    changes = [(NS, name, set_property("a", "1")) for name in names]
    bodies: list[JsonValue] = [body for _, _, body in changes]
    session = fixture.session(bodies, key=fixture.key(), path="/transaction")
    return await fixture.cost(commit_transaction(session, changes))


def in_realm(
    method: str, target: str, body: JsonObject | None = None, *, keyed: bool = False, cold: bool = False
) -> Scenario:
    """The scenario of a request to the catalog of a realm, by a principal whose grants are checked: of a process that
    has changed the table and loaded it before, or of a `cold` one. With `keyed` it has an idempotency key."""

    async def measure(fixture: CountingFixture) -> Measurement:
        realm = await ServedRealm.made(fixture.store, SystemRuntime(), fixture.settings.warehouse)
        client = realm.client()
        await client.post(NAMESPACES, {"namespace": [*NS]})
        await client.post(TABLES_OF_NS, {"name": "t", "schema": schema("x")})
        await client.get(T)
        client = realm.client() if cold else client
        headers = {"idempotency-key": fixture.key()} if keyed else {}
        with fixture.store.measure() as measured:
            answer = await client.send(method, target, b"" if body is None else dumps(body), headers)
        if answer.status >= 300:
            raise RuntimeError(f"{method} {target}: {answer.status}: {answer.body!r}")
        return measured

    return measure


@dataclass(frozen=True, slots=True)
class Budget:
    """A row of the table of budgets: what an operation may cost in calls of the store, and the scenario that measures
    what it does cost."""

    operation: str
    depth: int
    calls: int
    scenario: Scenario


BUDGETS = (
    Budget("loadTable, warm", 1, 2, warm_load),
    Budget("loadTable, cold", 3, 3, cold_load),
    Budget("loadTable, warm, committed to elsewhere", 2, 3, load_of_what_moved),
    Budget("load of a name that does not exist", 1, 1, missing_load),
    Budget("HEAD of a name that does not exist, cold", 1, 1, missing_head),
    Budget("commit with key, warm", 3, 7, warm_keyed_commit),
    Budget("commit with key, cold", 6, 10, cold_keyed_commit),
    Budget("commit without key, warm", 3, 5, warm_commit),
    Budget("commit with key, warm, overtaken once", 7, 14, overtaken_commit),
    Budget("createTable without key, warm", 3, 7, warm_create),
    Budget("createTable with key, warm", 3, 9, warm_keyed_create),
    Budget("createTable with key, registry moved", 4, 10, create_under_a_moved_head),
    Budget(f"transaction over {TABLES} tables with key, warm", 4, 5 * TABLES + 5, warm_keyed_transaction),
    Budget("a later page of a listing", 2, 2, later_page),
    Budget("in a realm: loadTable, warm", 1, 3, in_realm("GET", T)),
    Budget("in a realm: loadTable, cold", 4, 5, in_realm("GET", T, cold=True)),
    Budget("in a realm: HEAD of a table, warm", 1, 2, in_realm("HEAD", T)),
    Budget("in a realm: HEAD of a table, cold", 2, 3, in_realm("HEAD", T, cold=True)),
    Budget("in a realm: commit with key, warm", 3, 8, in_realm("POST", T, SET, keyed=True)),
    Budget("in a realm: commit with key, cold", 7, 12, in_realm("POST", T, SET, keyed=True, cold=True)),
    Budget("in a realm: commit without key, warm", 3, 6, in_realm("POST", T, SET)),
    Budget("in a realm: createTable with key, warm", 3, 10, in_realm("POST", TABLES_OF_NS, NEW, keyed=True)),
    Budget("in a realm: createTable without key, warm", 3, 8, in_realm("POST", TABLES_OF_NS, NEW)),
    Budget("in a realm: a page of a listing", 2, 4, in_realm("GET", f"{TABLES_OF_NS}?pageSize=1")),
)


@dataclass(frozen=True, slots=True)
class Count:
    """The calls of the store that were counted for one operation, with the bytes read and written."""

    budget: Budget
    depth: int
    calls: int
    read: int
    written: int

    @property
    def kept(self) -> bool:
        """Whether it is within its budget."""
        return self.depth <= self.budget.depth and self.calls <= self.budget.calls


async def count(store: CountingStore, budget: Budget, warehouses: Iterator[str]) -> Count:
    """The least depth of a few runs: a store whose calls take uneven times makes a chain look longer, never shorter."""
    runs: list[Measurement] = []
    for _ in range(RUNS):
        fixture = CountingFixture(
            store, settings=Settings(next(warehouses))
        )  # its locations say `memory:`, wherever it is
        await fixture.namespace(*NS)
        await fixture.table("t")
        runs.append(await budget.scenario(fixture))
    least = min(runs, key=lambda run: (run.depth, run.calls))
    return Count(budget, least.depth, least.calls, least.bytes_read, least.bytes_written)


async def count_all(url: str) -> list[Count]:
    """Every row, each run at a catalog of its own."""
    store = CountingStore(DelayingStore(open_store(url, os.environ), FARTHER_S))
    warehouses = (f"wh{number}" for number in range(RUNS * len(BUDGETS)))
    try:
        return [await count(store, budget, warehouses) for budget in BUDGETS]
    finally:
        await store.close()


HEADER = f"{'':42}{'depth':>7}{'':>9}{'calls':>8}{'':>9}{'bytes':>9}\n" + (
    f"{'operation':42}{'budget':>7}{'counted':>9}{'budget':>8}{'counted':>9}{'read':>9}{'written':>9}"
)


def line(count: Count) -> str:
    """One row."""
    budget = count.budget
    return (
        f"{budget.operation:42}{budget.depth:7}{count.depth:9}{budget.calls:8}{count.calls:9}"
        f"{count.read:9,}{count.written:9,}{'' if count.kept else '  OVER'}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Zero if every operation keeps to its budget."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.calls", description=__doc__)
    parser.add_argument("--store", default=S3_URL, metavar="URL", help=f"an empty store (default: {S3_URL}, on moto)")
    url = parser.parse_args(arguments).store
    with store_server(url):
        counts = asyncio.run(count_all(url))
    print(f"Store calls of each operation (docs/design/budgets.md), on {url}\n")
    print(HEADER)
    for each in counts:
        print(line(each))
    return 0 if all(each.kept for each in counts) else 1


if __name__ == "__main__":
    sys.exit(main())
