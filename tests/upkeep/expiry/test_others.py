"""Files that another table may use stay, and those of copies and dropped tables (docs/design/expiry.md#rule-7)."""

import pytest

from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.register import register_table
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.task import Status
from arco_catalog.upkeep.expiry import executor
from tests.support.table_files import key_of
from tests.upkeep.expiry.conftest import Expiries
from tools.support.catalog_fixture import NS


async def result(expiries: Expiries) -> str:
    ended = [task for task in await expiries.tasks() if task.status is Status.SUCCESS]
    [task] = [task for task in ended if str(task.summary).startswith("Removed")]
    return str(task.summary)


async def lend(expiries: Expiries, name: str = "borrower") -> None:
    """Another table names a file of a snapshot of `t` that will expire."""
    location = (await expiries.document())["location"]
    await expiries.fixture.table(name, None)
    await expiries.name_files(f"{location}/data/1", name=name)


async def test_a_file_that_another_table_names_stays(expiries: Expiries) -> None:
    await expiries.table()
    await lend(expiries)
    await expiries.policy()
    await expiries.expire()
    await expiries.work()
    assert await expiries.data_files() == ["0", "1", "2", "3"]
    assert "their files are kept: db.borrower" in await result(expiries)


async def test_a_file_that_a_dropped_table_names_stays(expiries: Expiries) -> None:
    await expiries.table()
    await lend(expiries)
    await drop_table(expiries.fixture.session(), NS, "borrower", purge=False)
    await expiries.policy()
    await expiries.expire()
    await expiries.work()
    assert await expiries.data_files() == ["0", "1", "2", "3"]


async def test_a_worker_that_does_not_search_other_tables_deletes_their_files(
    expiries: Expiries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug, which the tests above find."""

    async def none(*_: object) -> None:
        return None

    monkeypatch.setattr(executor, "_sharer", none)
    await expiries.table()
    await lend(expiries)
    await expiries.policy()
    await expiries.expire()
    await expiries.work()
    assert await expiries.data_files() == ["3"]


async def test_a_table_that_shares_its_location_is_not_expired() -> None:
    expiries = await Expiries.made(Settings("wh", allow_location_overlap=True))
    state = await expiries.table()
    await expiries.policy()
    await register_table(expiries.fixture.session(), NS, "copy", state.metadata_location, False)
    await expiries.work()
    assert await expiries.snapshots() == [1, 2, 3, 4]


async def test_a_table_registered_between_commit_and_deletion_keeps_the_files() -> None:
    expiries = await Expiries.made(Settings("wh", allow_location_overlap=True))
    before = await expiries.table()
    await expiries.policy()
    await expiries.expire()
    await register_table(expiries.fixture.session(), NS, "copy", before.metadata_location, False)
    await expiries.work()
    assert await expiries.snapshots("copy") == [1, 2, 3, 4]
    assert await expiries.data_files() == ["0", "1", "2", "3"]
    assert "db.copy" in await result(expiries)


async def test_the_files_of_a_dropped_table_are_left_to_its_purge(expiries: Expiries) -> None:
    state = await expiries.table()
    place = key_of(state.metadata_location).partition("/metadata/")[0]
    await expiries.policy()
    await expiries.expire()
    await drop_table(expiries.fixture.session(), NS, "t", purge=False)
    await expiries.work()
    assert [key.rpartition("/")[2] for key in sorted(expiries.store.keys(f"{place}/data/"))] == ["0", "1", "2", "3"]
    assert "their files are kept: the table was dropped, or follows" in await result(expiries)
