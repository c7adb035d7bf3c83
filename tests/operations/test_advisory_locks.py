"""Writers of one table in one process commit one after another; correctness does not depend on it."""

import asyncio
from dataclasses import replace

from arco_catalog.iceberg.json import loads
from arco_catalog.protocol.advisory_locks import AdvisoryLocks
from storage_backends.memory import MemoryStore
from storage_backends.wrappers.counting import CountingStore
from storage_backends.wrappers.delaying import DelayingStore
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property

WRITERS = 8


async def busy_fixture(locks: AdvisoryLocks | None) -> CatalogFixture:
    fixture = CatalogFixture(CountingStore(DelayingStore(MemoryStore(), 0.001)))
    await fixture.namespace()
    await fixture.table()
    await fixture.commit(set_property("warm", "1"))
    fixture.catalog = replace(fixture.catalog, table_locks=locks)
    return fixture


async def calls_of_writers(fixture: CatalogFixture) -> int:
    """Store calls of writers who all begin at once; all must commit."""
    assert isinstance(fixture.store, CountingStore)
    with fixture.store.measure() as measured:
        await asyncio.gather(*(fixture.commit(set_property(f"p{number}", "1")) for number in range(WRITERS)))
    document = loads((await fixture.commit(set_property("warm", "1"))).metadata)
    assert isinstance(document, dict)
    properties = document["properties"]
    assert isinstance(properties, dict)
    assert {f"p{number}" for number in range(WRITERS)} <= properties.keys()
    return measured.calls


async def test_writers_of_one_process_do_not_conflict() -> None:
    locks = AdvisoryLocks()

    assert await calls_of_writers(await busy_fixture(locks)) == 5 * WRITERS  # as many as for each alone
    assert len(locks) == 0


async def test_without_locks_they_conflict_and_commit_all_the_same() -> None:
    assert await calls_of_writers(await busy_fixture(None)) > 5 * WRITERS


async def test_tables_do_not_wait_for_each_other() -> None:
    locks = AdvisoryLocks()
    async with locks.hold("one"), asyncio.timeout(10), locks.hold("another"):
        assert len(locks) == 2


async def test_a_writer_that_waits_too_long_goes_on_without_the_lock() -> None:
    locks = AdvisoryLocks(timeout_seconds=0.01)
    async with locks.hold("table"):
        async with asyncio.timeout(10), locks.hold("table"):
            assert len(locks) == 1
        async with asyncio.timeout(10), locks.hold("table"):
            assert len(locks) == 1
    assert len(locks) == 0


async def test_a_cancelled_writer_does_not_stop_those_behind_it() -> None:
    locks, order = AdvisoryLocks(), []

    async def write(number: int) -> None:
        async with locks.hold("table"):
            order.append(number)

    async with locks.hold("table"):
        waiting = [asyncio.create_task(write(number)) for number in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
    await asyncio.wait(waiting)

    assert order == [1, 2]
    assert len(locks) == 0
