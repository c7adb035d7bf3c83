"""Which tables expire, and when a worker looks for them (docs/design/expiry.md#rule-2)."""

from arco_catalog.iceberg.json import loads
from arco_catalog.operations.rename import rename_table
from arco_catalog.planning.access import Securable
from arco_catalog.state.task import EXPIRY_SWEEP
from tests.upkeep.expiry.conftest import DAY_MS, Expiries
from tools.support.catalog_fixture import NS


async def test_nothing_expires_without_a_policy(expiries: Expiries) -> None:
    await expiries.table(properties={"history.expire.max-snapshot-age-ms": "1"})
    await expiries.work()
    assert await expiries.snapshots() == [1, 2, 3, 4]
    assert await expiries.tasks(EXPIRY_SWEEP) == []


async def test_a_policy_that_is_off_excludes_a_table(expiries: Expiries) -> None:
    await expiries.table("a")
    await expiries.table("b")
    await expiries.policy()
    await expiries.policy(Securable(NS, "b"), enable=False)
    await expiries.work()
    assert (await expiries.snapshots("a"), await expiries.snapshots("b")) == ([4], [1, 2, 3, 4])


async def test_the_nearest_policy_counts(expiries: Expiries) -> None:
    await expiries.table("a")
    await expiries.policy()
    await expiries.policy(Securable(NS, "a"), max_snapshot_age_days=1, min_snapshot_to_keep=3)
    await expiries.work()
    assert await expiries.snapshots("a") == [2, 3, 4]


async def test_a_policy_with_an_unknown_setting_is_named_and_nothing_expires(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy(max_snapshots_age_days=1)
    await expiries.work()
    assert await expiries.snapshots() == [1, 2, 3, 4]
    [sweep] = await expiries.tasks(EXPIRY_SWEEP)
    details = loads(str(sweep.document["result_extended"]).encode())
    assert isinstance(details, dict)
    assert "unknown settings: max-snapshots-age-days" in str(details["unreadable"])


async def test_a_worker_looks_once_a_day(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy()
    for _ in range(3):
        await expiries.work()
    assert len(await expiries.tasks(EXPIRY_SWEEP)) == 1
    await expiries.append("new")
    expiries.runtime.ms += 2 * DAY_MS
    await expiries.append("newer")
    await expiries.work()
    assert await expiries.snapshots() == [6]
    assert len(await expiries.tasks(EXPIRY_SWEEP)) == 2
    assert len(await expiries.tasks()) == 2


async def test_two_workers_make_one_task_of_each(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy()
    await expiries.work()
    again = await Expiries.made()
    again.store, again.runtime, again.fixture = expiries.store, expiries.runtime, expiries.fixture.another()
    await again.work()
    assert len(await expiries.tasks()) == len(await expiries.tasks(EXPIRY_SWEEP)) == 1


async def test_a_table_of_which_nothing_has_expired_gets_no_task(expiries: Expiries) -> None:
    await expiries.table(days=1)
    await expiries.policy()
    await expiries.work()
    assert await expiries.tasks() == []


async def test_a_table_is_expired_under_its_new_name(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy()
    await expiries.expire()
    await rename_table(expiries.fixture.session(), (NS, "t"), (NS, "u"))
    await expiries.work()
    assert await expiries.data_files("u") == ["3"]
