"""In a process that outlives its answers, the last step of a mutation runs after the answer; else before it."""

import asyncio
from dataclasses import replace

import pytest

from arco_catalog.protocol.background_tasks import BackgroundTasks
from storage_backends import Found
from storage_backends.clock import system_now_ms
from tests.support.scripted_store import Rule, ScriptedStore, put
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property

COMMITTED = "/iceberg/committed/"


class SlowReceipts(ScriptedStore):
    """A store that takes committed receipts only when it is let."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        super().__init__(system_now_ms, Rule(put(COMMITTED), first=self.open.wait))

    async def receipts(self) -> int:
        return sum(COMMITTED in entry.key for entry in (await self.list("")).entries)


@pytest.fixture
def store() -> SlowReceipts:
    return SlowReceipts()


@pytest.fixture
async def fixture(store: SlowReceipts) -> CatalogFixture:
    fixture = CatalogFixture(store)
    store.open.set()
    await fixture.namespace()
    await fixture.table()
    store.open.clear()
    return fixture


def in_background(fixture: CatalogFixture, background_tasks: BackgroundTasks) -> CatalogFixture:
    fixture.catalog = replace(fixture.catalog, background_tasks=background_tasks)
    return fixture


async def test_the_answer_waits_for_no_receipt_where_the_process_lives_on(
    fixture: CatalogFixture, store: SlowReceipts
) -> None:
    background_tasks = BackgroundTasks()

    state = await asyncio.wait_for(in_background(fixture, background_tasks).commit(set_property("a", "1")), 10)

    assert isinstance(await store.get(state.metadata_location.removeprefix("memory:///")), Found)
    assert (await store.receipts(), len(background_tasks)) == (1, 1)
    store.open.set()
    await background_tasks.drain()
    assert (await store.receipts(), len(background_tasks)) == (2, 0)


async def test_the_answer_waits_for_the_receipt_where_nothing_runs_after_it(
    fixture: CatalogFixture, store: SlowReceipts
) -> None:
    commit = asyncio.create_task(fixture.commit(set_property("a", "1")))

    done, _ = await asyncio.wait([commit], timeout=0.05)

    assert not done
    store.open.set()
    await commit
    assert await store.receipts() == 2


async def test_a_retry_that_comes_before_the_final_slot_gets_the_same_answer(
    fixture: CatalogFixture, store: SlowReceipts
) -> None:
    background_tasks, key = BackgroundTasks(), fixture.key()
    first = await in_background(fixture, background_tasks).commit(set_property("a", "1"), key=key)

    again = await fixture.commit(set_property("a", "1"), key=key)

    assert again.metadata_location == first.metadata_location
    store.open.set()
    await background_tasks.drain()


async def test_a_step_above_the_limit_is_awaited(fixture: CatalogFixture, store: SlowReceipts) -> None:
    background_tasks = BackgroundTasks(limit=1)
    in_background(fixture, background_tasks)
    await fixture.commit(set_property("a", "1"))

    second = asyncio.create_task(fixture.commit(set_property("a", "2")))
    done, _ = await asyncio.wait([second], timeout=0.05)

    assert not done
    store.open.set()
    await second
    await background_tasks.drain()
    assert await store.receipts() == 3


async def test_a_failed_step_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise RuntimeError("planted")

    background_tasks = BackgroundTasks()
    await background_tasks.run(fail())
    await background_tasks.drain()

    assert background_tasks.failed == 1
    assert "planted" in caplog.text
