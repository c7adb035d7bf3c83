"""The worker expires snapshots by policies, and deletes files two days later (docs/design/expiry.md)."""

from arco_catalog.state.task import Status
from arco_catalog.upkeep.expiry.executor import FILES_AGE_MS
from tests.upkeep.expiry.conftest import Expiries


async def test_snapshots_expire_at_once_and_their_files_two_days_later(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy()

    await expiries.work()

    assert await expiries.snapshots() == [4]
    assert await expiries.data_files() == ["0", "1", "2", "3"]
    task = await expiries.task()
    assert task.status is Status.RETRY_SCHEDULED
    expiries.runtime.ms += FILES_AGE_MS + 60_000
    await expiries.work()
    assert await expiries.data_files() == ["3"]
    [_, snapshot] = [name for name in await expiries.metadata_files() if name.endswith(".avro")]
    assert snapshot.startswith("snap-")
    assert (await expiries.task()).status is Status.SUCCESS
    assert (await expiries.task()).summary == "Removed 3 snapshots and 9 files"
