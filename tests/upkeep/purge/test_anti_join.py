"""What a purge by the anti-join may do that others may not, and who goes on with it (docs/design/purge.md#rule-20).
What it finds out on Spark is tested there."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.generic_tables import GenericTable, create_generic_table, drop_generic_table
from arco_catalog.operations.tasks import retry_task
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.purge_progress import Progress
from arco_catalog.state.task import Status, Task
from arco_catalog.state.tombstone import DROPPED, PURGING, Tombstone
from arco_catalog.tasks.execution import Execution
from arco_catalog.upkeep.purge.deletion import Deletion
from arco_catalog.upkeep.purge.sharing import known_tables
from arco_catalog.upkeep.purge.worker import task_worker
from tests.support.scripted_store import Nth, Rule, delete, put
from tests.support.table_files import append, key_of, write
from tests.upkeep.purge.conftest import DAY_MS, Purges
from tools.support.catalog_fixture import NS
from tools.support.request_bodies import set_property

PLACE = "memory:///wh/warehouse/place"


class KnownFiles:
    """An anti-join for which all is known: whether others lead to anything."""

    def __init__(self, *, shared: bool = True, fails: Exception | None = None) -> None:
        self.shared = shared
        self.fails = fails

    @asynccontextmanager
    async def deletion(self, execution: Execution, tombstone: Tombstone) -> AsyncIterator[Deletion]:
        if self.fails is not None:
            raise self.fails
        await known_tables(execution, tombstone.entity, tombstone.locations)
        progress = replace(Progress.parse(execution.checkpoint), shared=self.shared)
        yield Deletion(execution, tombstone.locations, progress)


@pytest.fixture(name="overlapping")
async def a_table_around_another() -> Purges:
    return await overlapping_tables()


async def overlapping_tables() -> Purges:
    """A table, and another around it."""
    made = Purges(Settings("wh", allow_location_overlap=True, purge=PurgeSettings(whole_location=True)))
    await made.fixture.namespace("db")
    await append(made.fixture, await made.table("outer", location=PLACE), "a", name="outer")
    await append(made.fixture, await made.table("t", location=f"{PLACE}/inner"), "b")
    return made


async def join(purges: Purges, anti_join: KnownFiles) -> int:
    return await task_worker(purges.fixture.another().catalog, anti_join=anti_join).run_due(lambda: False)


async def refused(purges: Purges, name: str = "t") -> Task:
    task = await purges.purge(name)
    assert task.status is Status.FAILURE
    return task


async def submit(purges: Purges, task: Task, *, anti_join: bool) -> None:
    await retry_task(purges.fixture.session(), task.id, purges.runtime, anti_join=anti_join)


async def test_an_overlap_is_not_in_its_way_and_the_neighbour_goes_on(overlapping: Purges) -> None:
    async def commit() -> None:
        body = set_property("a", "1")
        await commit_table(overlapping.fixture.another().session(body, deadline_ms=DAY_MS), NS, "outer", body)

    neighbour = {key for key in overlapping.files() if "/inner/" not in key}
    task = await refused(overlapping)
    await submit(overlapping, task, anti_join=True)
    overlapping.store.rules = [Rule(delete("/inner/data/"), first=commit, times=1)]

    assert await join(overlapping, KnownFiles()) == 1

    left = {*overlapping.files()}
    assert neighbour < left
    assert len(left - neighbour) == 1  # what the commit wrote
    ended = await overlapping.task(task.id)
    assert (ended.status, ended.summary) == (Status.SUCCESS, "Purged 5 files")


async def test_what_it_has_begun_workers_leave_alone(overlapping: Purges) -> None:
    """It dies after the beginning, and after that could delete everything."""
    task = await refused(overlapping)
    await submit(overlapping, task, anti_join=True)
    before = overlapping.files()
    assert await overlapping.run() == 0

    assert await join(overlapping, KnownFiles(fails=RuntimeError("the driver died"))) == 1

    assert (await overlapping.tombstone()).state == PURGING
    overlapping.runtime.ms += 600_000
    assert await overlapping.run() == 0
    assert overlapping.files() == before
    assert await join(overlapping, KnownFiles()) == 1
    assert (await overlapping.task(task.id)).status is Status.SUCCESS


async def test_what_it_was_the_first_to_take_workers_leave_alone(overlapping: Purges) -> None:
    await overlapping.drop("t")
    overlapping.window_passes()
    before = overlapping.files()

    assert await join(overlapping, KnownFiles(fails=RuntimeError("the driver died"))) == 1

    assert (await overlapping.tombstone()).state == PURGING
    overlapping.runtime.ms += 600_000
    assert await overlapping.run() == 0
    assert overlapping.files() == before


async def test_when_all_is_deleted_anybody_does_the_rest(overlapping: Purges) -> None:
    task = await refused(overlapping)
    await submit(overlapping, task, anti_join=True)
    overlapping.store.rules = [Rule(Nth(2, put("/manifest.json")), made=False, fails=RuntimeError("the driver died"))]
    assert await join(overlapping, KnownFiles()) == 1
    assert (await overlapping.tombstone()).state == PURGING
    overlapping.store.rules = []
    overlapping.runtime.ms += 600_000

    assert await overlapping.run() == 1

    assert (await overlapping.task(task.id)).status is Status.SUCCESS


async def test_a_purge_of_a_place_that_is_being_purged_waits(overlapping: Purges) -> None:
    inner, outer = await refused(overlapping), await refused(overlapping, "outer")
    await submit(overlapping, inner, anti_join=True)
    await join(overlapping, KnownFiles(fails=RuntimeError("the driver died")))
    await submit(overlapping, outer, anti_join=True)

    await join(overlapping, KnownFiles())

    waits = await overlapping.task(outer.id)
    assert waits.status is Status.RETRY_SCHEDULED
    assert "which is being purged" in str(waits.summary)
    assert (await overlapping.tombstone("outer")).state == DROPPED
    for _ in range(2):  # the outer one is read before the inner one is finished
        overlapping.runtime.ms += 600_000
        assert await join(overlapping, KnownFiles()) >= 1
    assert overlapping.files() == []


async def test_a_task_that_deleted_nothing_can_be_given_back_to_workers(overlapping: Purges) -> None:
    task = await refused(overlapping)
    await submit(overlapping, task, anti_join=True)
    assert await overlapping.run() == 0
    for _ in range(20):
        overlapping.runtime.ms += 3_600_000
        await join(overlapping, KnownFiles(fails=RuntimeError("no executors")))
        if (await overlapping.task(task.id)).status is Status.FAILURE:
            break
    assert (await overlapping.tombstone()).state == DROPPED

    await submit(overlapping, task, anti_join=False)

    assert await overlapping.run() == 1
    assert "--spark" in str((await overlapping.task(task.id)).summary)


@pytest.mark.parametrize("shared", [True, False])
async def test_a_whole_location_is_emptied_only_if_others_lead_to_nothing_there(*, shared: bool) -> None:
    purges = Purges(Settings("wh", purge=PurgeSettings(whole_location=True)))
    await purges.fixture.namespace("db")
    state = await append(purges.fixture, await purges.table(), "a")
    stray = await write(purges.store, f"{state.metadata_location.partition('/metadata/')[0]}/data/stray.parquet")
    await purges.drop()
    purges.window_passes()

    assert await join(purges, KnownFiles(shared=shared)) == 1

    assert purges.files() == ([key_of(stray)] if shared else [])
    report = json.loads(str((await purges.task(str((await purges.tombstone()).task))).document["result_extended"]))
    assert (report["left_behind"], report["kept"], report["kept_for"]) == (int(shared), 0, {})


@pytest.mark.parametrize("place", [PLACE, f"{PLACE}/inner/more"])
@pytest.mark.parametrize("dropped", [False, True])
async def test_a_table_of_another_format_there_ends_the_purge(place: str, *, dropped: bool) -> None:
    purges = Purges(Settings("wh", allow_location_overlap=True))
    await purges.fixture.namespace("db")
    await append(purges.fixture, await purges.table(location=f"{PLACE}/inner"), "a")
    session = purges.fixture.session
    await create_generic_table(session(), NS, GenericTable("g", "delta", place, None, {}))
    if dropped:
        await drop_generic_table(session(), NS, "g")
    before = purges.files()
    await submit(purges, await refused(purges), anti_join=True)

    assert await join(purges, KnownFiles()) == 1

    tombstone = await purges.tombstone()
    task = await purges.task(str(tombstone.task))
    assert (task.status, tombstone.state) == (Status.FAILURE, DROPPED)
    assert "db.g, a table of another format or another catalog's, live or dropped, is at a location" in str(
        task.summary
    )
    assert purges.files() == before
