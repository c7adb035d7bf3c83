"""Measures appends of many writers to one table: `make bench-appends`, `python -m tools.bench.appends`.

Each writer loads the table and appends a snapshot to main as an engine does. After a conflict it loads and tries again,
with the pauses and the four retries of Iceberg's Java client. With `--rebase`, table and commits ask that lost appends
are rebased (docs/design/appends.md), and the writers write manifests and lists. The servers are catalogs of this
process over one store in memory, each call of which takes as long as `--delay-ms`. For each number of servers the
committed appends a second, the conflicts and store calls of each, the slowest append and the appends that were given up
are printed.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from arco_catalog.iceberg.errors import CommitFailed
from arco_catalog.iceberg.json import loads
from arco_catalog.operations.load import load_table
from arco_catalog.protocol.advisory_locks import AdvisoryLocks
from arco_catalog.protocol.background_tasks import BackgroundTasks
from storage_backends.memory import MemoryStore
from tools.support.appended_files import ALLOWED, Lake
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import append
from tools.support.wrapped_stores import CountingStore, DelayingStore

RETRIES = 4
FIRST_PAUSE_S = 0.1
"""Iceberg's Java client doubles it after each retry and adds up to a tenth (`commit.retry.min-wait-ms`)."""


@dataclass
class Appends:
    """The counts of the appends of one run: the calls of the store, the appends that were refused as conflicts or given
    up, and how long each committed one took, its conflicts included."""

    seconds: float = 0.0
    calls: int = 0
    conflicts: int = 0
    given_up: int = 0
    durations: list[float] = field(default_factory=list)

    def row(self, servers: int) -> str:
        """A line of the printed table."""
        made = len(self.durations)
        return (
            f"| {servers} | {made / self.seconds:.1f} | {self.conflicts / made:.1f} | {self.calls / made:.0f} "
            f"| {max(self.durations):.2f} | {self.given_up} |"
        )


async def measure(servers: int, writers: int, seconds: float, delay_ms: float, *, rebase: bool = False) -> Appends:
    """Runs the writers, dealt out to the servers, for so many seconds. With `rebase` lost appends are rebased; the
    files of the writers are in the same store, without a delay."""
    stored = MemoryStore()
    counting = CountingStore(DelayingStore(stored, delay_ms / 1000))
    first = CatalogFixture(counting)
    await first.namespace()
    await first.table(properties={**ALLOWED} if rebase else {})
    lake = Lake(stored) if rebase else None
    snapshot_ids, found = count(1), Appends()
    began = time.perf_counter()
    with counting.measure() as measured:
        async with asyncio.TaskGroup() as group:
            served = [_server(first) for _ in range(servers)]
            for number in range(writers):
                group.create_task(_write(served[number % servers], snapshot_ids, began + seconds, found, lake))
    found.seconds = time.perf_counter() - began
    found.calls = measured.calls
    return found


def _server(fixture: CatalogFixture) -> CatalogFixture:
    server = fixture.another()
    server.catalog = replace(server.catalog, table_locks=AdvisoryLocks(), background_tasks=BackgroundTasks())
    return server


async def _write(
    server: CatalogFixture, snapshot_ids: Iterator[int], until: float, found: Appends, lake: Lake | None
) -> None:
    while time.perf_counter() < until:
        began = time.perf_counter()
        if await _append(server, next(snapshot_ids), found, lake):
            found.durations.append(time.perf_counter() - began)
        else:
            found.given_up += 1


async def _append(server: CatalogFixture, snapshot_id: int, found: Appends, lake: Lake | None) -> bool:
    """Appends once. False if every retry met a conflict."""
    for retry in range(RETRIES + 1):
        document = loads((await load_table(server.session(), NS, "t")).metadata)
        assert isinstance(document, dict)
        if lake is None:
            parent = document["current-snapshot-id"]
            assert isinstance(parent, int)
            body = append(str(document["location"]), snapshot_id, None if parent == -1 else parent)
        else:
            body = await lake.append(document, snapshot_id)
        try:
            await server.commit(body, key=server.key())
        except CommitFailed:
            found.conflicts += 1
            await asyncio.sleep(FIRST_PAUSE_S * 2**retry * (1 + random.random() / 10))
        else:
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--delay-ms", type=float, default=20.0)
    parser.add_argument("--rebase", action="store_true", help="let the catalog rebase the appends that lose")
    given = parser.parse_args()
    print("| servers | appends a second | conflicts of each | store calls of each | slowest, s | given up |")
    print("| --: | --: | --: | --: | --: | --: |")
    for servers in given.servers:
        made = measure(servers, given.writers, given.seconds, given.delay_ms, rebase=given.rebase)
        print(asyncio.run(made).row(servers), flush=True)


if __name__ == "__main__":
    main()
