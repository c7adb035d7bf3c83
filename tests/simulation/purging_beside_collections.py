"""Purges beside a collector, whose ages are of seconds: it may take away nothing that a worker has yet to read."""

from collections.abc import Awaitable, Iterable
from contextlib import suppress
from dataclasses import replace

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.operations.undrop import undrop
from arco_catalog.upkeep.collection.collect import collect
from storage_backends import StoreError
from tests.simulation.collecting import RETENTION, RUN_MS
from tests.simulation.purging import AT_ONCE, IN_A_MINUTE, Purging, scenario
from tests.simulation.repairing import Thief
from tests.simulation.world import DIED
from tools.support.catalog_fixture import NS, CatalogFixture

TIMES = 12
PAUSE_S = 30.0


async def collector(purging: Purging, name: str = "g1") -> None:
    """Collects again and again; when it dies, another goes on."""
    for _ in range(TIMES):
        await purging.world.runtime.sleep(PAUSE_S * purging.world.runtime.random())
        process = purging.world.process(name)
        session = CatalogFixture(process.store, process.runtime, purging.settings).session(deadline_ms=RUN_MS)
        with suppress(StoreError, CatalogError):
            if await process.run(collect(session, delete=True)) is DIED:
                name += "+"


@scenario(replace(AT_ONCE, retention=RETENTION), keeps_tasks=False)
def a_purge_beside_a_collector(purging: Purging) -> Iterable[Awaitable[object]]:
    return [purging.worker("w1"), purging.worker("w2"), collector(purging)]


@scenario(replace(IN_A_MINUTE, retention=RETENTION), keeps_tasks=False)
def a_purge_and_an_undrop_beside_a_collector(purging: Purging) -> Iterable[Awaitable[object]]:
    async def undo(fixture: CatalogFixture) -> object:
        return await undrop(fixture.session(), NS, "t")

    return [purging.worker("w1"), purging.client("c1", 120, undo), collector(purging)]


async def collected_at_last(purging: Purging) -> None:
    """A collection when all is quiet, to which nothing happens."""
    await purging.world.runtime.sleep(600)
    process = purging.world.process("last", skew_ms=0)
    session = CatalogFixture(process.store, process.runtime, purging.settings).session(deadline_ms=10 * RUN_MS)
    await collect(session, delete=True)


@scenario(replace(IN_A_MINUTE, retention=RETENTION), keeps_tasks=False)
def a_purge_whose_hints_are_stolen_beside_a_collector(purging: Purging) -> Iterable[Awaitable[object]]:
    return [
        purging.worker("w1"),
        purging.worker("w2"),
        Thief(purging).steal(4, 30),
        collector(purging),
        collected_at_last(purging),
    ]


SCENARIOS = [
    a_purge_beside_a_collector,
    a_purge_and_an_undrop_beside_a_collector,
    a_purge_whose_hints_are_stolen_beside_a_collector,
]
