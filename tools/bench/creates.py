"""What sharing registry commits brings: clients that create tables at once in one process, `make bench-creates`,
`python -m tools.bench.creates`.

Each client creates one table after the other, under an idempotency key as engines do. With sharing, and with a commit
for each; in memory with 20 ms of delay on every store call, and on local files, every write fsynced.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.protocol.background_tasks import BackgroundTasks
from storage_backends import ObjectStore
from storage_backends.memory import MemoryStore
from storage_backends.open import open_store
from storage_backends.wrappers.counting import CountingStore
from storage_backends.wrappers.delaying import DelayingStore
from tools.support.catalog_fixture import CatalogFixture

CLIENTS = (1, 8, 64)
DELAY_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Figure:
    """One run: creates and registry commits a second, milliseconds of a create, store calls of one, what failed."""

    creates: float
    commits: float
    p50: float
    p99: float
    calls: float
    failed: int


async def measure(store: ObjectStore, url: str, clients: int, seconds: float, *, shared: bool) -> Figure:
    """So many clients, each creating one table after the other until the time is over."""
    counting, background_tasks = CountingStore(store), BackgroundTasks()
    fixture = CatalogFixture(counting, url=url)
    fixture.catalog = replace(fixture.catalog, background_tasks=background_tasks)
    if not shared:
        fixture.catalog = replace(fixture.catalog, group_committer=None)
    await fixture.namespace()
    await fixture.table()
    took: list[float] = []
    failed = 0

    async def client(number: int) -> None:
        nonlocal failed
        made = 0
        while (began := time.perf_counter()) < end:
            try:
                await fixture.table(f"t{number}_{made}", key=fixture.key())
            except CatalogError:
                failed += 1
            else:
                took.append(1_000 * (time.perf_counter() - began))
            made += 1

    before = (await fixture.session().state.head()).sequence
    with counting.measure() as measured:
        began = time.perf_counter()
        end = began + seconds
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(client(number))
        lasted = time.perf_counter() - began
        await background_tasks.drain()
    commits = (await fixture.session().state.head()).sequence - before
    p99 = statistics.quantiles(took, n=100)[98] if len(took) > 1 else took[0]
    return Figure(
        len(took) / lasted, commits / lasted, statistics.median(took), p99, measured.calls / len(took), failed
    )


async def compare(where: str, seconds: float) -> None:
    """Prints one line a number of clients and a way to commit; the ratio is to the other way with as many clients."""
    for clients in CLIENTS:
        alone = 0.0
        for shared in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                if where == "memory":
                    figure = await measure(
                        DelayingStore(MemoryStore(), DELAY_SECONDS), "memory:///", clients, seconds, shared=shared
                    )
                else:
                    url = f"file://{folder}"
                    figure = await measure(open_store(url, os.environ), url, clients, seconds, shared=shared)
            ratio = f"{figure.creates / alone:5.1f}x" if shared and alone else ""
            alone = figure.creates
            rates = f"{figure.creates:>10.1f} {figure.commits:>10.1f} {figure.p50:>9.0f} {figure.p99:>9.0f}"
            rest = f"{figure.calls:>6.1f} {figure.failed:>6} {ratio:>7}"
            print(f"{where:>8} {clients:>8} {'shared' if shared else 'one each':>9} {rates} {rest}", flush=True)


def main() -> int:
    """Prints the table. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.creates", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="how long each run goes on")
    parser.add_argument("--store", choices=("memory", "local"), action="append", help="only this one")
    options = parser.parse_args()
    print(
        f"{'store':>8} {'clients':>8} {'commits':>9} {'creates/s':>10} {'commits/s':>10} {'p50 ms':>9} {'p99 ms':>9} "
        f"{'calls':>6} {'failed':>6} {'ratio':>7}"
    )
    for where in options.store or ("memory", "local"):
        asyncio.run(compare(where, options.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
