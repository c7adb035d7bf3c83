"""Purges beside processes that propose their changes of the registry: those of a purge are proposals, too, and any
process may commit them (docs/design/registry.md#rule-16)."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.tasks.retry import TaskPolicies
from storage_backends import StoreError
from tests.simulation.explore import Scenario
from tests.simulation.purging import AT_ONCE, IMPATIENT, POLICIES, SHORT, Purging
from tests.simulation.world import DIED, World
from tests.support.registry_versions import raise_version
from tools.support.catalog_fixture import CatalogFixture

CREATORS = ("c1", "c2", "c3")
CREATES = 8


async def creates(purging: Purging, process: str) -> None:
    """Creates tables one after the other, so that the workers lose HEAD."""
    for number in range(CREATES):
        creator = purging.world.process(process)
        fixture = CatalogFixture(creator.store, creator.runtime, purging.settings)
        with suppress(CatalogError, StoreError):
            if await creator.run(fixture.table(f"{process}-{number}")) is DIED:
                process += "+"
        await purging.world.runtime.sleep(0.3 * purging.world.runtime.random())


def beside(policies: TaskPolicies, *more: Callable[[Purging], Awaitable[object]], name: str) -> Scenario:
    """A purge by two workers beside creates, and what else is listed."""

    async def played(world: World) -> None:
        purging = Purging(world, AT_ONCE, policies)
        await purging.table()
        await raise_version(purging.setup.session().state)
        await purging.drop()

        async def run(work: Awaitable[object]) -> None:
            await work

        async with asyncio.TaskGroup() as group:
            for worker in ("w1", "w2"):
                group.create_task(purging.worker(worker, pause_s=2))
            for process in CREATORS:
                group.create_task(creates(purging, process))
            for work in more:
                group.create_task(run(work(purging)))
        await world.settle()
        await purging.worker("last", pause_s=600, busy_s=7_200)  # by then, old hints are old
        purging.auditor.close()

    played.__qualname__ = name
    return played


a_purge_beside_creates = beside(POLICIES, name="a_purge_beside_creates")
leases_that_end_beside_creates = beside(SHORT, name="leases_that_end_beside_creates")
a_purge_that_gives_up_beside_creates = beside(IMPATIENT, name="a_purge_that_gives_up_beside_creates")

BESIDE_PROPOSERS = (
    a_purge_beside_creates,
    leases_that_end_beside_creates,
    a_purge_that_gives_up_beside_creates,
)
