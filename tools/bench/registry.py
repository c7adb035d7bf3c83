"""What a large registry costs: store calls, bytes and milliseconds of each operation on catalogs of 100, 10,000 and
100,000 tables, `make bench-registry`, `python -m tools.bench.registry`.

The registries are built as objects, as that many creates would have left them: segments three quarters full, a full
list of recent commits, and a buffer of recent edits that a thousand creates in random places have filled. A table that
is loaded has a small metadata file; all others have none, which nothing here reads.
"""

import argparse
import asyncio
import os
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.listing import Paging, list_relations
from arco_catalog.operations.load import load_table
from storage_backends import ANY, Applied
from storage_backends.open import open_store
from storage_backends.wrappers.counting import CountingStore
from tools.bench.calls import place
from tools.support.catalog_fixture import CountingFixture
from tools.support.registry_builder import RegistryBuilder, spread
from tools.support.request_bodies import schema

SIZES = (100, 10_000, 100_000)
RUNS = 40
"""How often each operation is measured, each time on another table."""
CHURN = 1_000
"""Creates, in random places, that leave their edits in the buffer."""
TABLE: JsonObject = {"schema": schema("a", "b", "c")}


@dataclass(frozen=True, slots=True)
class Cost:
    """One operation, once."""

    calls: int
    depth: int
    read: int
    written: int
    ms: float


async def cost(fixture: CountingFixture, operation: Awaitable[object]) -> Cost:
    """What an operation costs."""
    began = time.perf_counter()
    measured = await fixture.cost(operation)
    ms = 1_000 * (time.perf_counter() - began)
    return Cost(measured.calls, measured.depth, measured.bytes_read, measured.bytes_written, ms)


Name: TypeAlias = tuple[str, str]
Measured: TypeAlias = Callable[[CountingFixture, Name], Awaitable[Cost]]
"""Measures one operation on, or beside, a table."""


async def load_cold(fixture: CountingFixture, name: Name) -> Cost:
    return await cost(fixture, load_table(fixture.another().session(), (name[0],), name[1]))


async def load_warm(fixture: CountingFixture, name: Name) -> Cost:
    await load_table(fixture.session(), (name[0],), name[1])
    return await cost(fixture, load_table(fixture.session(), (name[0],), name[1]))


async def miss(fixture: CountingFixture, name: Name) -> Cost:
    return await cost(fixture, load_table(fixture.another().session(), (name[0],), f"{name[1]}_not"))


async def create_cold(fixture: CountingFixture, name: Name) -> Cost:
    body: JsonObject = {"name": f"{name[1]}_cold", **TABLE}
    return await cost(fixture, create_table(fixture.another().session(body), (name[0],), body))


async def create_warm(fixture: CountingFixture, name: Name) -> Cost:
    body: JsonObject = {"name": f"{name[1]}_warm", **TABLE}
    return await cost(fixture, create_table(fixture.session(body), (name[0],), body))


async def create_elsewhere(fixture: CountingFixture, name: Name) -> Cost:
    other = fixture.another()
    body: JsonObject = {"name": f"{name[1]}_elsewhere", **TABLE}
    await other.session().state.head()
    return await cost(fixture, create_table(other.session(body), (name[0],), body))


async def page(fixture: CountingFixture, name: Name) -> Cost:
    return await cost(fixture, list_relations(fixture.another().session(), (name[0],), "table", Paging("", None)))


async def next_page(fixture: CountingFixture, name: Name) -> Cost:
    first = await list_relations(fixture.session(), (name[0],), "table", Paging("", 50))
    other = fixture.another()
    return await cost(fixture, list_relations(other.session(), (name[0],), "table", Paging(first.next_page_token, 50)))


async def drop(fixture: CountingFixture, name: Name) -> Cost:
    return await cost(fixture, drop_table(fixture.session(), (name[0],), name[1], purge=False))


OPERATIONS: Sequence[tuple[str, Measured]] = (
    ("load, cold", load_cold),
    ("load, warm", load_warm),
    ("load of a name that is not there, cold", miss),
    ("list a first page, cold", page),
    ("list a later page, cold", next_page),
    ("create, warm", create_warm),
    ("create, warm, segment not seen before", create_elsewhere),
    ("create, cold", create_cold),
    ("drop, warm", drop),
)


async def build(fixture: CountingFixture, tables: int, seed: int) -> tuple[list[Name], list[int]]:
    """Stores a registry. Returns tables that can be loaded, spread over it, and the bytes of segments that each of the
    last creates wrote."""
    chance = random.Random(seed)
    builder = RegistryBuilder(
        fixture.catalog.mounts[0].root, fixture.catalog.paths, fixture.runtime, fixture.settings.spill
    )
    names = spread(tables)
    whole = set(chance.sample(names, RUNS))
    written: list[int] = []
    for namespace in dict.fromkeys(namespace for namespace, _ in names):
        await keep(fixture, dict(builder.namespace(namespace)))
    for namespace, name in names:
        if (namespace, name) in whole:
            await keep(fixture, dict(builder.whole_table(namespace, name, TABLE)))
        else:
            builder.table(namespace, name)
    churn = chance.choices(names, k=min(CHURN, tables // 10))
    later = [(namespace, f"{name}_{number}") for number, (namespace, name) in enumerate(churn)]
    await keep(fixture, dict(builder.registry(later, written)))
    return sorted(whole), written


async def keep(fixture: CountingFixture, objects: dict[str, bytes]) -> None:
    for key, body in objects.items():
        assert isinstance(await fixture.store.put(key, body, ANY), Applied)


async def measure(url: str, tables: int) -> None:
    """Prints a size's figures."""
    store = CountingStore(open_store(url, os.environ))
    fixture = CountingFixture(store)
    began = time.perf_counter()
    names, written = await build(fixture, tables, seed=tables)
    head = await fixture.session().state.head()
    refs = head.index.directory.refs
    show(f"\n{tables:,} tables, built in {time.perf_counter() - began:.1f} s")
    show(
        f"manifest {len(head.body):,} bytes, {len(refs)} segments of {sum(ref.size for ref in refs):,} bytes, "
        f"{len(head.index.edits)} recent edits"
    )
    if any(written):
        flushes = [size for size in written if size]
        show(
            f"of {len(written):,} creates in random places {len(flushes):,} flushed, "
            f"{statistics.mean(flushes):,.0f} bytes each"
        )
    show(f"{'':40}{'calls':>12}{'depth':>8}{'read':>10}{'most':>10}{'written':>10}{'most':>10}{'ms':>8}")
    for operation, measured in OPERATIONS:
        costs = [await measured(fixture, name) for name in names]
        show(line(operation, costs))
    await store.close()


def line(operation: str, costs: Sequence[Cost]) -> str:
    """Medians, and the most of what a flush makes uneven."""

    def middle(values: Sequence[int]) -> int:
        return int(statistics.median_high(values))

    calls = [cost.calls for cost in costs]
    read, written = [cost.read for cost in costs], [cost.written for cost in costs]
    spread_ = f"{middle(calls)}" if min(calls) == max(calls) else f"{middle(calls)} ({min(calls)}-{max(calls)})"
    return (
        f"{operation:40}{spread_:>12}{middle([cost.depth for cost in costs]):8}"
        f"{middle(read):10,}{max(read):10,}{middle(written):10,}{max(written):10,}"
        f"{statistics.median(cost.ms for cost in costs):8.2f}"
    )


def show(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.registry", description=__doc__)
    parser.add_argument("--store", choices=("memory", "local"), default="memory")
    parser.add_argument("--tables", type=int, nargs="+", default=list(SIZES), help="sizes, 100 at least")
    options = parser.parse_args(arguments)
    for tables in options.tables:
        with place(options.store) as url:
            asyncio.run(measure(url, tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
