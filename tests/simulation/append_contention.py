"""How long appends to one table take, and how many calls, where writers of several processes make them at once: `python
-m tests.simulation.append_contention`, in the time of a simulated world.

Each writer loads the table and appends a snapshot as an engine does, again and again, each append under a key. After a
conflict it loads and tries again, with the pauses and the four retries of Iceberg's Java client. Servers beside them
may make transactions, which change this table and another one. The processes are servers: their writers take turns, and
what follows a commit comes after its answer. The store answers every call after about 20 ms; the writers' own files
take no time.
"""

import argparse
import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from arco_catalog.iceberg.errors import CatalogError, CommitFailed
from arco_catalog.iceberg.json import loads
from arco_catalog.operations.load import load_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.protocol.advisory_locks import AdvisoryLocks
from arco_catalog.protocol.background_tasks import BackgroundTasks
from arco_catalog.protocol.catalog import Settings
from storage_backends.memory import MemoryStore
from tests.simulation.contention import MAX_STEPS, Contention, DistantStore
from tests.simulation.loop import SimulatedLoop
from tests.simulation.runtime import SimRuntime, wall_ms
from tools.bench.appends import FIRST_PAUSE_S, RETRIES
from tools.support.appended_files import ALLOWED, REBASE, Lake
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property

HEADINGS = (
    "servers x writers   rebase   a second   p50     p99   worst s   calls an append   swaps   conflicts   given up   "
    "transactions   worst s"
)


class AppendContention(Contention):
    """The result of a run: the seconds that each append took, those that were given up included."""

    conflicts: int = 0
    """How often the requirement of an append was refused."""

    def __str__(self) -> str:
        """A line of the table with `HEADINGS`, without the column "rebase"."""
        swaps = self.calls["put iceberg_pointers"] / max(1, len(self.changes_s))
        return (
            f"{self.per_second:>10.1f} {self.quantile(0.5):>7.3f} {self.quantile(0.99):>7.3f} "
            f"{self.quantile(1.0):>7.3f} {self.calls_per_change:>17.1f} {swaps:>7.2f} {self.conflicts:>11} "
            f"{self.errors.total():>10} {len(self.beside_s):>14} {max(self.beside_s, default=0.0):>9.3f}"
        )


def contend(
    servers: int, writers: int, seconds: float, *, transactions: int = 0, rebase: bool = True, seed: int = 1
) -> AppendContention:
    """Lets so many writers of each server append to one table for so many virtual seconds, and returns the result.
    With `rebase`, table and commits request that lost appends are rebased. So many servers beside them make
    `transactions`; the result has the seconds that those took which were committed."""
    loop = SimulatedLoop(seed, max_steps=MAX_STEPS)
    result = AppendContention(servers, writers, seconds)
    store = MemoryStore(now_ms=lambda: wall_ms(loop))
    lake = Lake(store)
    snapshot_ids = count(1)

    def server(name: str) -> CatalogFixture:
        runtime = SimRuntime(f"{seed}/{name}", loop)
        fixture = CatalogFixture(DistantStore(store, result, runtime, None), runtime, Settings("wh"))
        fixture.catalog = replace(fixture.catalog, table_locks=AdvisoryLocks(), background_tasks=BackgroundTasks())
        return fixture

    async def append(fixture: CatalogFixture, summary: Mapping[str, str]) -> None:
        for retry in range(RETRIES + 1):
            document = loads((await load_table(fixture.session(), NS, "t")).metadata)
            body = await lake.append(document, next(snapshot_ids), summary=summary)
            try:
                await fixture.commit(body, key=fixture.key())
                return
            except CommitFailed:
                result.conflicts += 1
                if retry == RETRIES:
                    raise
            await fixture.runtime.sleep(FIRST_PAUSE_S * 2**retry * (1 + fixture.runtime.random() / 10))

    async def writer(fixture: CatalogFixture, end: float) -> None:
        while loop.time() < end:
            since = loop.time()
            try:
                await append(fixture, REBASE if rebase else {})
            except CatalogError as error:
                result.errors[type(error).__name__] += 1
            result.changes_s.append(loop.time() - since)

    async def transact(fixture: CatalogFixture, other: str, end: float) -> None:
        while loop.time() < end:
            since, body = loop.time(), set_property("n", str(next(snapshot_ids)))
            session = fixture.session(body, key=fixture.key(), path="/transactions/commit")
            try:
                await commit_transaction(session, [(NS, name, body) for name in ("t", other)])
                result.beside_s.append(loop.time() - since)
            except CatalogError as error:
                result.errors[type(error).__name__] += 1

    async def run() -> None:
        first = CatalogFixture(store, SimRuntime(f"{seed}/setup", loop), Settings("wh"))
        await first.namespace()
        await first.table(properties={**ALLOWED} if rebase else {})
        others = [f"u{number}" for number in range(transactions)]
        for name in others:
            await first.table(name)
        end = loop.time() + seconds
        async with asyncio.TaskGroup() as group:
            for number in range(servers):
                fixture = server(f"s{number}")
                for _ in range(writers):
                    group.create_task(writer(fixture, end))
            for name in others:
                group.create_task(transact(server(name), name, end))

    loop.run(run())
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line for each number of servers and writers of each, such as 2x8."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", default=["1x1", "1x16", "2x8", "4x4", "16x1"], metavar="SxW")
    parser.add_argument("--seconds", type=float, default=20.0, help="virtual seconds of each run (default: 20)")
    parser.add_argument("--transactions", type=int, default=0, help="servers beside them that make transactions")
    parser.add_argument("--no-rebase", action="store_true", help="lost appends are conflicts")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each size (default: 1)")
    chosen = parser.parse_args(arguments)
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)
    print(HEADINGS)
    for size in chosen.sizes:
        servers, _, writers = size.partition("x")
        for seed in range(1, chosen.seeds + 1):
            rebase = not chosen.no_rebase
            result = contend(
                int(servers),
                int(writers or 1),
                chosen.seconds,
                transactions=chosen.transactions,
                rebase=rebase,
                seed=seed,
            )
            print(f"{size:>17} {'yes' if rebase else 'no':>8} {result}", flush=True)


if __name__ == "__main__":
    main()
