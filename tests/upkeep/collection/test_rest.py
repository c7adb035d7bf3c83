"""Claims, tasks and hints; stops, refusals, and two collectors at once."""

import asyncio

import pytest

from arco_catalog.operations.catalogs import Inventory
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.reports import take_report
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.collection import Kind, is_older
from arco_catalog.planning.upkeep_settings import DAY_MS, HOUR_MS
from arco_catalog.upkeep.collection import tasks
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.jobs import Workplace, run_job
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import ABSENT, StoreUnavailable, memory
from tests.support.scripted_store import DOWN, Rule, delete
from tests.upkeep.collection.conftest import PATHS, PROPERTIES, Collections
from tools.support.catalog_fixture import NS
from tools.support.request_bodies import commit_report, set_property


async def test_the_claim_on_a_file_that_was_removed_goes_a_week_later(collections: Collections) -> None:
    await collections.fixture.table("cleaned", properties=PROPERTIES)
    for number in range(4):
        await collections.fixture.commit(set_property("n", str(number)), "cleaned")
    assert len(collections.listed(PATHS.metadata_claims)) == 3
    collections.days(8)
    assert (await collections.collected())[Kind.CLAIM] == 3
    assert await collections.codes() == []


async def test_the_claim_on_a_file_that_is_there_stays(collections: Collections) -> None:
    await collections.fixture.table("cleaned", properties=PROPERTIES)
    collections.store.rules = [Rule(delete(".metadata.json"), fails=DOWN)]
    for number in range(3):
        await collections.fixture.commit(set_property("n", str(number)), "cleaned")
    collections.store.rules = []
    collections.days(8)
    assert Kind.CLAIM not in await collections.collected()


async def test_the_task_of_a_purge_that_was_undone_goes_and_so_does_its_hint(collections: Collections) -> None:
    await drop_table(collections.fixture.session(), NS, "t", purge=True)
    await undrop(collections.fixture.session(), NS, "t")
    collections.days(7.5)
    assert Kind.HINT not in await collections.collected()  # its task has a version, and has not ended
    await task_worker(collections.fixture.another().catalog).run_due(lambda: False)
    collections.days(31)
    counts = await collections.collected()
    assert counts[Kind.TASK] == 1
    assert collections.listed(PATHS.tasks) == []


async def test_a_hint_of_a_task_that_never_came_goes(collections: Collections) -> None:
    key = PATHS.open_task("00000000-0000-4000-8000-00000000abcd", collections.runtime.ms)
    await collections.store.put(key, b"", ABSENT)
    collections.days(8)
    assert (await collections.collected())[Kind.HINT] == 1
    assert key not in collections.listed()


async def test_a_collector_that_dies_at_a_delete_leaves_the_rest_to_the_next(collections: Collections) -> None:
    """At each delete in turn: fsck finds nothing, and the next run ends with what the first would have left."""
    for number in range(1, 200):
        scene = Collections()
        await scene.fixture.namespace("db")
        await scene.fixture.table("t")
        for _ in range(3):
            await scene.commit(key=scene.fixture.key())
        await scene.lost_try(key=scene.fixture.key())
        scene.days(100)
        deletes = 0

        def dies(call: object, number: int = number) -> bool:
            nonlocal deletes
            deletes += getattr(call, "method", "") == "delete"
            return deletes >= number

        scene.store.rules = [Rule(dies, fails=DOWN)]
        try:
            await scene.collect()
        except StoreUnavailable:
            scene.store.rules = []
        else:
            assert number > 10
            return
        assert set(await scene.codes()) <= {"receipt-missing"}
        await scene.collect()
        await scene.collect()
        assert await scene.codes() == []
        assert len(scene.listed(PATHS.events)) == 1
        assert scene.listed(PATHS.markers) == []
        assert len(scene.listed("wh/warehouse")) == 4
    raise AssertionError("collections do not end")


async def test_two_collectors_at_once_do_no_harm(collections: Collections) -> None:
    for _ in range(5):
        await collections.commit(key=collections.fixture.key())
        await collections.lost_try(key=collections.fixture.key())
    collections.days(100)
    await asyncio.gather(collections.collect(), collections.collect())
    await collections.collect()
    assert await collections.codes() == []
    assert len(collections.listed("wh/warehouse")) == 6
    await collections.commit()


async def test_a_run_that_is_stopped_reports_it_and_the_next_goes_on(collections: Collections) -> None:
    await collections.commit(key=collections.fixture.key())
    collections.days(100)
    session = collections.fixture.another().session(deadline_ms=DAY_MS)
    stopped = await collect(session, delete=True, should_stop=lambda: True)
    assert stopped.stopped
    assert collections.listed(PATHS.markers) != []
    assert not (await collections.collect()).stopped
    assert collections.listed(PATHS.markers) == []


async def test_runs_that_are_all_too_short_come_to_each_kind(collections: Collections) -> None:
    session = collections.fixture.another().session()
    await take_report(session, NS, "t", commit_report(), keep=True)
    await collections.commit(key=collections.fixture.key())
    await collections.lost_try()
    collections.days(100)
    await collections.fixture.another().namespace("moves_head")
    collections.days(8)
    collected = {*await collections.collected(delete=False)}
    assert Kind.REPORT in collected
    kinds: set[Kind] = set()
    for _ in range(100):
        stats = await collections.collect(steps=6)
        assert stats.stopped
        kinds |= {*stats.kinds}
        collections.runtime.ms += 1
    assert kinds >= collected


async def test_a_collector_that_stood_still_past_its_deadline_deletes_nothing(collections: Collections) -> None:
    await collections.lost_try()
    collections.days(8)
    frozen = False

    async def freeze() -> None:
        nonlocal frozen
        frozen = True
        collections.days(2)

    collections.store.rules = [Rule(delete(), first=freeze)]
    with pytest.raises(StoreUnavailable):
        await collections.collect()
    assert frozen


async def test_the_queued_job_deletes(collections: Collections) -> None:
    await collections.lost_try()
    collections.days(8)
    other = collections.fixture.another()
    request = other.session(deadline_ms=HOUR_MS).request
    place = Workplace(Inventory.of_one(other.catalog), request, other.runtime, lambda: False)
    await run_job('{"version": 1, "work": "collect"}', place)
    assert len(collections.listed("wh/warehouse")) == 1


def test_what_seems_to_come_from_the_future_is_not_old() -> None:
    assert not is_older(1_000, 500, 100)
    assert is_older(400, 500, 100)


async def test_what_a_recovery_kept_aside_stays(collections: Collections) -> None:
    key = PATHS.kept_aside("01KAN0Y7Q2M3C4D5E6F7G8H9JK", PATHS.manifest)
    await collections.store.put(key, b"{}", ABSENT)
    collections.days(400)
    await collections.collect()
    assert key in collections.listed()


async def test_reports_go_with_the_receipts_of_their_time(collections: Collections) -> None:
    session = collections.fixture.another().session()
    await take_report(session, NS, "t", commit_report(), keep=True)
    collections.days(89)
    assert Kind.REPORT not in await collections.collected()
    assert len(collections.listed(PATHS.reports)) == 1
    collections.days(1)
    assert (await collections.collected())[Kind.REPORT] == 1
    assert collections.listed(PATHS.reports) == []


async def test_an_object_from_the_future_stays(collections: Collections) -> None:
    await take_report(collections.fixture.another().session(), NS, "t", commit_report(), keep=True)
    collections.days(-100)  # the store's clock was wrong
    assert await collections.collected() == {}
    assert len(collections.listed(PATHS.reports)) == 1


async def test_a_waiting_task_that_has_lost_its_hint_gets_it_again(collections: Collections) -> None:
    await drop_table(collections.fixture.session(), NS, "t", purge=True)
    [hint] = collections.listed(PATHS.open_tasks)
    assert (await collections.collect()).hints_put == 0
    await collections.store.delete(hint)
    assert (await collections.collect(delete=False)).hints_put == 1
    assert collections.listed(PATHS.open_tasks) == []
    assert (await collections.collect()).hints_put == 1
    assert collections.listed(PATHS.open_tasks) == [hint]
    assert (await collections.collect()).hints_put == 0


async def test_a_task_gets_its_hint_again_before_its_first_version_is_there(collections: Collections) -> None:
    await drop_table(collections.fixture.session(), NS, "t", purge=True)
    for key in collections.listed(PATHS.tasks):
        await collections.store.delete(key)
    assert (await collections.collect()).hints_put == 1
    collections.days(1)
    assert await task_worker(collections.fixture.another().catalog).run_due(lambda: False) == 1
    assert collections.listed("wh/warehouse") == []


async def test_a_purge_that_has_begun_and_whose_versions_are_gone_gets_no_hint(collections: Collections) -> None:
    await drop_table(collections.fixture.session(), NS, "t", purge=True)
    collections.days(1)
    collections.store.rules = [Rule(delete("wh/warehouse"), fails=DOWN)]
    await task_worker(collections.fixture.another().catalog).run_due(lambda: False)
    collections.store.rules = []
    for key in collections.listed(PATHS.tasks):
        await collections.store.delete(key)
    assert (await collections.collect()).hints_put == 0
    assert await collections.codes() == ["task-missing"]


async def test_a_task_that_has_failed_gets_no_hint(collections: Collections) -> None:
    await drop_table(collections.fixture.session(), NS, "t", purge=True)
    [pointer] = collections.listed(PATHS.pointers)
    await collections.store.delete(pointer)
    collections.days(1)
    await task_worker(collections.fixture.another().catalog).run_due(lambda: False)
    assert collections.listed(PATHS.open_tasks) == []
    assert (await collections.collect()).hints_put == 0


async def test_a_dry_run_counts_a_task_once_though_its_versions_are_in_two_batches(
    collections: Collections, monkeypatch: pytest.MonkeyPatch
) -> None:
    await drop_table(collections.fixture.session(), NS, "t", purge=True)
    await undrop(collections.fixture.session(), NS, "t")
    collections.days(2)
    await task_worker(collections.fixture.another().catalog).run_due(lambda: False)
    collections.days(100)
    monkeypatch.setattr(tasks, "BATCH", 1)
    monkeypatch.setattr(memory, "PAGE_SIZE", 1)

    assert (await collections.collected(delete=False))[Kind.TASK] == 1
