"""Tasks of each catalog of a deployment, within a time; and the notification of workers when one is due."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.operations.catalogs import DeployedCatalog
from arco_catalog.operations.drop import drop_table
from arco_catalog.planning.upkeep_settings import PurgeMode, PurgeSettings
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.state.task import Status, Task
from arco_catalog.state.task_log import list_tasks, read_task
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.work_stats import WorkStats
from arco_catalog.upkeep.run_tasks import run_tasks
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, anything, delete, put
from tools.support.catalog_fixture import NS, CatalogFixture

MINUTE = 60_000


def purging(window_ms: int = 0, mode: PurgeMode = PurgeMode.ASYNC) -> Settings:
    return Settings("wh", purge=PurgeSettings(mode, window_ms))


@pytest.fixture
async def fixture() -> CatalogFixture:
    """A catalog with a table that was dropped with purge."""
    made = CatalogFixture(ScriptedStore(), settings=purging())
    await made.namespace("db")
    await made.table()
    await drop_table(made.session(), NS, "t", purge=True)
    return made


def never_opened() -> Catalog:
    raise BadRequest("its locations are not allowed any more")


def deployed(fixture: CatalogFixture) -> list[DeployedCatalog]:
    return [DeployedCatalog("broken", never_opened), DeployedCatalog("wh", lambda: fixture.another().catalog)]


async def run(fixture: CatalogFixture, ms: int = 10 * MINUTE, *properties: str) -> dict[str, WorkStats]:
    end_ms = fixture.runtime.now_ms() + ms
    worked = run_tasks(deployed(fixture), fixture.runtime, end_ms, TaskPolicies.of_pairs(properties))
    async with aclosing(worked):
        return {catalog.name: stats async for catalog, stats in worked}


async def task_of(fixture: CatalogFixture) -> Task:
    state = fixture.another().session().state
    [task] = await list_tasks(state)
    stored = await read_task(state, task)
    assert stored is not None
    return stored.task


def rules(fixture: CatalogFixture, *rules: Rule) -> None:
    assert isinstance(fixture.store, ScriptedStore)
    fixture.store.rules = list(rules)


async def test_a_catalog_that_cannot_be_opened_stops_no_other(fixture: CatalogFixture) -> None:
    found = await run(fixture)

    assert found["broken"].error == "catalog broken: its locations are not allowed any more"
    assert (found["wh"].error, found["wh"].completed) == (None, 1)
    assert (await task_of(fixture)).status is Status.SUCCESS


async def test_a_catalog_whose_store_does_not_answer_has_an_error(fixture: CatalogFixture) -> None:
    rules(fixture, Rule(anything("/tasks/open/"), fails=DOWN))
    assert (await run(fixture))["wh"].error == "catalog wh: down"


async def test_time_ends_the_work_and_the_next_run_goes_on_at_once(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arco_catalog.tasks.worker.MARGIN_MS", 0)  # or the release waits for it
    rules(fixture, Rule(delete("/warehouse/"), first=asyncio.Event().wait))
    stopped = (await run(fixture, 2_000))["wh"]
    assert (stopped.stopped, stopped.completed) == (True, 0)
    rules(fixture)
    done = (await run(fixture))["wh"]
    assert (done.completed, done.leases_lost, done.stopped) == (1, 0, False)


async def test_properties_say_how_often_a_task_is_tried(fixture: CatalogFixture) -> None:
    rules(fixture, Rule(anything("/iceberg_pointers/"), fails=DOWN))
    found = await run(fixture, 10 * MINUTE, "delegation.retry.TABLE_PURGE.max-attempts=1")
    assert (found["wh"].failed, found["wh"].retried) == (1, 0)
    assert (await task_of(fixture)).status is Status.FAILURE


@pytest.mark.parametrize(
    ("settings", "purge", "report"),
    [
        (purging(), True, [("wh", 0)]),
        (purging(5 * MINUTE), True, [("wh", 5 * MINUTE)]),
        (purging(), False, []),
        (purging(mode=PurgeMode.OFF), True, []),
    ],
    ids=["at once", "after a window", "no purge", "purges are off"],
)
async def test_a_drop_notifies_workers_of_the_due_time(
    settings: Settings, purge: bool, report: list[tuple[str, int]]
) -> None:
    heard: list[tuple[str, int]] = []

    async def notify(root: str, in_ms: int) -> None:
        heard.append((root, in_ms))

    fixture = CatalogFixture(settings=settings)
    fixture.catalog = replace(fixture.catalog, notify_workers=notify)
    await fixture.namespace("db")
    await fixture.table()
    await drop_table(fixture.session(), NS, "t", purge=purge)
    assert heard == report


async def test_no_worker_is_notified_of_a_drop_that_was_not_made() -> None:
    heard: list[str] = []

    async def notify(root: str, in_ms: int) -> None:
        heard.append(root)

    store = ScriptedStore()
    fixture = CatalogFixture(store, settings=purging())
    fixture.catalog = replace(fixture.catalog, notify_workers=notify)
    await fixture.namespace("db")
    await fixture.table()
    store.rules = [Rule(put("/manifest.json"), fails=DOWN)]
    with pytest.raises(Exception, match="down"):
        await drop_table(fixture.session(), NS, "t", purge=True)
    assert heard == []
