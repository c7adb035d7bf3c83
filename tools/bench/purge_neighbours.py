"""Calls of purges beside other tables: `make bench-purge_neighbours`, `python -m tools.bench.purge_neighbours`.

Beside so many tables of so many snapshots, each with a manifest, three tables with one file are dropped with purge, one
after the other. The calls of each purge are printed, beside those of a purge that knows nothing of the tables. Between
the second and the third some tables are committed to.
"""

import argparse
import asyncio
import sys

from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.purge.worker import task_worker
from arco_catalog.planning.purge import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.file_directories import SHARDS
from storage_backends import ANY
from storage_backends.memory import MemoryStore
from storage_backends.wrappers.counting import CountingStore, Measurement
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property
from tools.support.synthetic_table import Shape, location_of


async def make_table(fixture: CatalogFixture, name: str, snapshots: int) -> None:
    """Makes a table of so many snapshots, each with a manifest more."""
    await fixture.table(name)
    shape = Shape(manifests=snapshots, files_each=1, snapshots=snapshots)
    location = await location_of(fixture, name)
    for file, body in shape.objects(location):
        await fixture.store.put(f"{location.removeprefix('memory:///')}/{file}", body, ANY)
    await shape.commit(fixture, name)


async def measure(tables: int, snapshots: int, changed: int) -> list[Measurement]:
    """The calls of the purges: the first, one after it, one after so many tables have changed, and one that knows
    nothing of the tables."""
    store = MemoryStore()
    counting = CountingStore(store)
    fixture = CatalogFixture(counting, settings=Settings("wh", purge=PurgeSettings(undrop_window_ms=0)))
    await fixture.namespace("db")
    for number in range(tables):
        await make_table(fixture, f"n{number}", snapshots)
    found: list[Measurement] = []
    for name in ("first", "second", "third", "fourth"):
        await make_table(fixture, name, 1)
        for number in range(changed if name == "third" else 0):
            await fixture.commit(set_property("a", "1"), f"n{number}")
        if name == "fourth":
            for shard in range(SHARDS):
                await store.delete(fixture.session().state.paths.file_directories(shard))
        await drop_table(fixture.session(), NS, name, purge=True)
        with counting.measure() as measured:
            await task_worker(fixture.another().catalog).run_due(lambda: False)
        found.append(measured)
    return found


def main(arguments: list[str]) -> None:
    """Prints a row for each number of tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, nargs="+", default=[10, 80, 300])
    parser.add_argument("--snapshots", type=int, default=5)
    parser.add_argument("--changed", type=int, default=5)
    options = parser.parse_args(arguments)
    print("| tables | knows nothing: calls, depth | first | second | after changes |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for tables in options.tables:
        first, second, third, without = asyncio.run(measure(tables, options.snapshots, min(tables, options.changed)))
        cells = [f"{each.calls:,}, {each.depth}" for each in (without, first, second, third)]
        print(f"| {tables:,} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
