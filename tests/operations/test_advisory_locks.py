"""Writers of one table in one process commit one after another; correctness does not depend on it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from arco_catalog.iceberg.errors import CommitFailed
from arco_catalog.iceberg.json import loads
from arco_catalog.operations.load import load_table
from arco_catalog.protocol.advisory_locks import AdvisoryLocks
from storage_backends.memory import MemoryStore
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import append, set_property
from tools.support.wrapped_stores import CountingStore, DelayingStore

WRITERS = 8
PATIENCE_SECONDS = 3_600.0


async def busy_fixture(locks: AdvisoryLocks | None) -> CatalogFixture:
    fixture = CatalogFixture(CountingStore(DelayingStore(MemoryStore(), 0.001)))
    await fixture.namespace()
    await fixture.table()
    await fixture.commit(set_property("warm", "1"))
    fixture.catalog = replace(fixture.catalog, table_locks=locks)
    return fixture


async def location(fixture: CatalogFixture) -> str:
    document = loads((await load_table(fixture.session(), NS, "t")).metadata)
    assert isinstance(document, dict)
    return str(document["location"])


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


async def test_a_writer_that_is_cancelled_as_the_lock_passes_to_it_passes_it_on() -> None:
    locks, order = AdvisoryLocks(PATIENCE_SECONDS), []

    async def write(number: int) -> None:
        async with locks.hold("table"):
            order.append(number)

    async with asyncio.timeout(10):
        async with locks.hold("table"):
            waiting = [asyncio.create_task(write(number)) for number in range(2)]
            await asyncio.sleep(0)
        waiting[0].cancel()  # the lock is its own by now
        await asyncio.wait(waiting)

    assert order == [1]
    assert len(locks) == 0


async def test_a_writer_that_no_longer_needs_the_lock_goes_on_when_another_releases_it() -> None:
    locks, needed = AdvisoryLocks(PATIENCE_SECONDS), True
    async with asyncio.timeout(10):
        async with locks.hold("table"):
            released = asyncio.Event()
            holder = asyncio.create_task(hold_until(locks, released))
            waiting = asyncio.create_task(hold_once(locks, lambda: needed))
            await asyncio.sleep(0)
            needed = False
            assert not waiting.done()
        await waiting
        assert not holder.done()
        released.set()
        await holder


async def test_an_error_of_a_waiting_writer_is_raised_to_that_one_alone() -> None:
    locks = AdvisoryLocks(PATIENCE_SECONDS)
    answers = [True]
    async with asyncio.timeout(10):
        async with locks.hold("table"):
            failing = asyncio.create_task(hold_once(locks, answers.pop))
            behind = asyncio.create_task(hold_once(locks, lambda: True))
            await asyncio.sleep(0)
        await behind
    with pytest.raises(IndexError):
        await failing


async def hold_until(locks: AdvisoryLocks, released: asyncio.Event) -> None:
    async with locks.hold("table"):
        await released.wait()


async def hold_once(locks: AdvisoryLocks, is_needed: Callable[[], bool]) -> None:
    async with locks.hold("table", is_needed):
        return


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_commit_whose_requirement_fails_is_refused_while_another_holds_the_lock(keyed: bool) -> None:
    locks = AdvisoryLocks(PATIENCE_SECONDS)
    fixture = await busy_fixture(locks)
    await fixture.commit(append(await location(fixture), 1, parent=None))
    key = fixture.key() if keyed else None
    async with asyncio.timeout(10), locks.hold((NS, "t")):
        for _ in range(2):
            with pytest.raises(CommitFailed, match="created concurrently"):
                await fixture.commit(append(await location(fixture), 2, parent=None), key=key)


async def test_a_waiting_commit_is_refused_as_soon_as_another_moves_its_branch() -> None:
    locks = AdvisoryLocks(PATIENCE_SECONDS)
    fixture = await busy_fixture(locks)
    released = asyncio.Event()
    async with asyncio.timeout(10):
        async with locks.hold((NS, "t")):
            first = asyncio.create_task(fixture.commit(append(await location(fixture), 1, parent=None)))
            await asyncio.sleep(0.01)
            holder = asyncio.create_task(hold_table(locks, released))
            second = asyncio.create_task(fixture.commit(append(await location(fixture), 2, parent=None)))
            await asyncio.sleep(0.01)
            assert not first.done()
            assert not second.done()
        await first
        with pytest.raises(CommitFailed, match="created concurrently"):
            await second
        assert not holder.done()
        released.set()
        await holder


async def test_a_retry_of_a_commit_that_was_made_is_answered_while_another_holds_the_lock() -> None:
    locks = AdvisoryLocks(PATIENCE_SECONDS)
    fixture = await busy_fixture(locks)
    key = fixture.key()
    made = await fixture.commit(append(await location(fixture), 1, parent=None), key=key)
    async with asyncio.timeout(10), locks.hold((NS, "t")):
        assert await fixture.commit(append(await location(fixture), 1, parent=None), key=key) == made


async def test_a_commit_on_a_newer_snapshot_than_the_cached_one_is_made() -> None:
    fixture = await busy_fixture(AdvisoryLocks(PATIENCE_SECONDS))
    await fixture.another().commit(append(await location(fixture), 1, parent=None))
    async with asyncio.timeout(10):
        made = await fixture.commit(append(await location(fixture), 2, parent=1))
    document = loads(made.metadata)
    assert isinstance(document, dict)
    assert document["current-snapshot-id"] == 2


async def hold_table(locks: AdvisoryLocks, released: asyncio.Event) -> None:
    async with locks.hold((NS, "t")):
        await released.wait()
