"""Measures purges of tables beside many other tables: `make bench-purge_neighbours`, `python -m
tools.bench.purge_neighbours`.

Beside so many tables of so many manifests, three tables with one file are dropped with purge, one after the other.
Between the second and the third some tables are committed to. For each purge its calls, the round trips that it steps
for, its seconds, the longest CPU time of one step of the event loop, and the peak of the process's memory are printed.
The manifests of the tables are made when they are read, so the memory is that of the purge and of the catalog. The
steps include garbage collections of the objects that the purge makes, and not of those that were there before: the
store in memory has millions.
"""

import argparse
import asyncio
import gc
import resource
import sys
import time
from contextlib import suppress
from dataclasses import dataclass

from arco_catalog.operations.drop import drop_table
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends.memory import MemoryStore
from storage_backends.wrappers.measuring import Kind, Measurement, StoreCall
from tools.bench.generated_files import GeneratedFiles
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property
from tools.support.wrapped_stores import CountingStore

PURGES = ("first", "second", "third")
MADE_AT_ONCE = 50


class CountedCalls(Measurement):
    """Counts calls of a store without a trace of them: a garbage collection goes through a million of them in one
    step."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    def call(self, kind: Kind, key: str, written: int = 0) -> StoreCall:
        """A call that begins now."""
        self.number += 1
        return StoreCall(self, kind, key, written)


@dataclass(frozen=True)
class MeasuredPurge:
    """The calls of a purge, the round trips that it waited for, the seconds, the longest step of the event loop in CPU
    time, and the peak of memory."""

    calls: int
    depth: int
    seconds: float
    longest_step_ms: float
    peak_mib: int


async def measure(tables: int, manifests: int, changed: int) -> list[MeasuredPurge]:
    """Measures the purges: the first, one after it, and one after so many tables have changed."""
    generated = GeneratedFiles(MemoryStore(), manifests)
    counting = CountingStore(generated)
    fixture = CatalogFixture(counting, settings=Settings("wh", purge=PurgeSettings(undrop_window_ms=0)))
    await fixture.namespace("db")
    for batch in batches(range(tables), MADE_AT_ONCE):
        await gather(*(generated.add(fixture, f"n{number:06}") for number in batch))
    found: list[MeasuredPurge] = []
    for name in PURGES:
        await fixture.table(name)
        if name == PURGES[-1]:
            for number in range(changed):
                await fixture.commit(set_property("a", "1"), f"n{number:06}")
        await drop_table(fixture.session(), NS, name, purge=True)
        found.append(await _measure_purge(fixture, counting))
    return found


async def _measure_purge(fixture: CatalogFixture, counting: CountingStore) -> MeasuredPurge:
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.thread_time()  # other processes of the machine don't count
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)

    gc.collect()
    gc.freeze()  # a full collection, one step of the loop, would go through all objects of the catalog that was made
    watching = asyncio.ensure_future(watch())
    await asyncio.sleep(0)
    began = time.perf_counter()
    calls = CountedCalls()
    with counting.measure(calls):
        await task_worker(fixture.another().catalog).run_due(lambda: False)
    seconds = time.perf_counter() - began
    gc.unfreeze()
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return MeasuredPurge(calls.number, calls.deepest_ended, seconds, longest * 1_000, peak_mib)


def main(arguments: list[str]) -> None:
    """Prints a row for each purge beside each number of tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, nargs="+", default=[300])
    parser.add_argument("--manifests", type=int, default=100)
    parser.add_argument("--changed", type=int, default=50)
    options = parser.parse_args(arguments)
    print("| tables | purge | calls | round trips | seconds | longest step, ms of CPU | peak, MiB |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for tables in options.tables:
        changed = min(tables, options.changed)
        for name, purge in zip(PURGES, asyncio.run(measure(tables, options.manifests, changed)), strict=True):
            cells = f"{purge.calls:,} | {purge.depth:,} | {purge.seconds:.1f}"
            print(f"| {tables:,} | {name} | {cells} | {purge.longest_step_ms:.0f} | {purge.peak_mib} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
