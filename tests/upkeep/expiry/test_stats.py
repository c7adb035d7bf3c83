"""What a worker reports of the expiries that it executes."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.access import Securable
from arco_catalog.protocol.catalog import Settings
from arco_catalog.tasks.work_stats import ExpiryStats
from arco_catalog.upkeep.purge.worker import task_worker
from tests.support.fake_runtime import ShortSleeps
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, delete, put, swap
from tests.support.table_files import key_of
from tests.upkeep.expiry.conftest import Expiries
from tests.upkeep.expiry.test_others import lend
from tools.support.catalog_fixture import NS, CatalogFixture


async def test_snapshots_are_reported_when_they_are_removed_and_files_when_they_are_deleted(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy()
    await expiries.expire()
    assert expiries.stats.expiries == ExpiryStats(snapshots=3)

    await expiries.work()
    assert expiries.stats.expiries == ExpiryStats(snapshots=3, cleaned=3, files=9)


async def test_snapshots_are_reported_also_if_a_report_is_made_while_the_task_is_written(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy()
    worker = task_worker(expiries.fixture.another().catalog)

    async def report() -> None:
        expiries.stats.add(worker.take_stats())

    expiries.store.rules = [Rule(put("tasks/"), then=report)]
    await worker.run_until_idle()
    await report()
    assert expiries.stats.expiries == ExpiryStats(snapshots=3)


async def test_snapshots_that_another_removed_first_do_not_count_as_removed() -> None:
    runtime = ShortSleeps()  # no time passes while another commits
    store = ScriptedStore(runtime.now_ms)
    expiries = Expiries(runtime, store, CatalogFixture(store, runtime, Settings("wh")))
    await expiries.fixture.namespace("db")
    await expiries.table()
    await expiries.policy()

    async def remove_first() -> None:
        removed: JsonObject = {"action": "remove-snapshots", "snapshot-ids": [1, 2, 3]}
        await expiries.fixture.another().commit({"requirements": [], "updates": [removed]})

    expiries.store.rules = [Rule(swap("/iceberg_pointers/"), first=remove_first, times=1)]
    await expiries.work()

    assert await expiries.snapshots() == [4]
    assert expiries.stats.expiries.snapshots == 0
    assert "Removed 0 snapshots" in str((await expiries.task()).summary)


async def test_files_that_another_table_names_are_reported_as_held_back(expiries: Expiries) -> None:
    await expiries.table()
    await lend(expiries)
    await expiries.policy()
    await expiries.expire()
    await expiries.work()
    assert expiries.stats.expiries == ExpiryStats(snapshots=3, cleaned=3, held_back=1)


async def test_an_attempt_that_fails_reports_the_files_that_it_deleted(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy()
    await expiries.expire()
    expiries.store.rules = [Rule(delete(".avro"), fails=DOWN)]
    await expiries.work()
    assert expiries.stats.expiries == ExpiryStats(snapshots=3, files=3)

    expiries.store.rules = []
    expiries.runtime.ms += 3_600_000
    await expiries.work()
    assert expiries.stats.expiries == ExpiryStats(snapshots=3, cleaned=3, files=9)


async def test_an_expiry_that_fails_for_good_is_reported(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy()
    await expiries.expire()
    [last] = await expiries.stored_snapshots()
    await expiries.store.delete(key_of(str(last["manifest-list"])))
    await expiries.work()
    assert expiries.stats.expiries == ExpiryStats(snapshots=3, failed=1)


async def test_a_policy_that_cannot_be_read_is_reported_as_a_failure(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy(Securable(NS, "t"), max_snapshots_age_days=1)
    await expiries.work()
    assert expiries.stats.expiries == ExpiryStats(failed=1)
