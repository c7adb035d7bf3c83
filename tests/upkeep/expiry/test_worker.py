"""The worker removes snapshots, and deletes files two days later (docs/design/expiry.md)."""

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.receipts import receipts
from arco_catalog.state.expiry_record import read_expiry_records
from arco_catalog.state.task import Status
from arco_catalog.upkeep.expiry import deletion
from arco_catalog.upkeep.expiry.executor import FILES_AGE_MS
from storage_backends import ANY
from tests.support.table_files import key_of
from tests.upkeep.expiry.conftest import DAY_MS, Expiries
from tools.support.catalog_fixture import NS


async def test_snapshots_expire_at_once_and_their_files_two_days_later(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy()

    await expiries.work()

    assert await expiries.snapshots() == [4]
    assert await expiries.data_files() == ["0", "1", "2", "3"]
    assert (await expiries.task()).status is Status.RETRY_SCHEDULED
    expiries.runtime.ms += FILES_AGE_MS - 60_000
    await expiries.work()
    assert await expiries.data_files() == ["0", "1", "2", "3"], "a minute too early"
    expiries.runtime.ms += 120_000
    await expiries.work()
    assert await expiries.data_files() == ["3"]
    assert len([name for name in await expiries.metadata_files() if name.endswith(".avro")]) == 2
    ended = {task.summary for task in await expiries.tasks() if task.status is Status.SUCCESS}
    assert "Removed 3 snapshots and 9 files" in ended


async def test_a_file_that_a_kept_snapshot_names_stays(expiries: Expiries) -> None:
    await expiries.table()
    location = (await expiries.document())["location"]
    await expiries.name_files(f"{location}/data/3", f"{location}/data/1")
    await expiries.policy()
    await expiries.expire()
    await expiries.work()
    assert await expiries.data_files() == ["1", "3"]


async def test_a_snapshot_that_is_named_again_before_the_deletion_keeps_its_files(expiries: Expiries) -> None:
    await expiries.table()
    first = (await expiries.stored_snapshots())[0]
    await expiries.policy()
    await expiries.work()
    again: JsonObject = {**first, "snapshot-id": 77, "sequence-number": 77}
    tag: JsonObject = {"action": "set-snapshot-ref", "ref-name": "t", "snapshot-id": 77, "type": "tag"}
    await expiries.commit({"action": "add-snapshot", "snapshot": again}, tag)
    expiries.runtime.ms += FILES_AGE_MS + 60_000
    await expiries.work()
    assert await expiries.data_files() == ["0", "3"]


async def test_appends_between_the_commit_and_the_deletion_are_not_touched(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy()
    await expiries.expire()
    await expiries.append("new")
    await expiries.work()
    assert "new" in await expiries.data_files()


async def test_a_missing_manifest_of_the_table_stops_the_deletion(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy()
    await expiries.expire()
    place = key_of(str((await expiries.document())["location"]))
    [last] = await expiries.stored_snapshots()
    await expiries.store.delete(key_of(str(last["manifest-list"])))
    await expiries.work()
    assert [*expiries.store.keys(f"{place}/data/")] != []
    assert await expiries.data_files() == ["0", "1", "2", "3"]
    [failed] = [task for task in await expiries.tasks() if task.status is Status.FAILURE]
    assert "is missing, and which files of the table it names is unknown" in str(failed.summary)


async def test_files_of_expired_snapshots_that_are_gone_already_are_passed_over(expiries: Expiries) -> None:
    await expiries.table()
    first = (await expiries.stored_snapshots())[0]
    await expiries.policy()
    await expiries.expire()
    await expiries.store.delete(key_of(str(first["manifest-list"])))
    await expiries.work()
    assert await expiries.data_files() == ["0", "3"], "which file the missing list named is unknown"


async def test_many_files_are_deleted_in_parts(expiries: Expiries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "MAX_NAMES", 3)
    await expiries.fixture.table("t", None)
    await expiries.append(*(f"a{n:02}" for n in range(40)))
    expiries.runtime.ms += 2 * DAY_MS
    await expiries.append("last")
    await expiries.policy()
    await expiries.expire()
    await expiries.work()
    assert await expiries.data_files() == ["last"]
    assert (await expiries.tasks())[0].summary == "Removed 1 snapshots and 42 files"


async def test_files_outside_of_the_locations_stay(expiries: Expiries) -> None:
    await expiries.table()
    outside = "memory:///wh/warehouse/elsewhere/x"
    await expiries.store.put(key_of(outside), b"0123456789", ANY)
    await expiries.name_files(outside)
    expiries.runtime.ms += 2 * DAY_MS
    await expiries.append("last")
    await expiries.policy()
    await expiries.expire()
    await expiries.work()
    assert await expiries.data_files() == ["last"]
    assert [*expiries.store.keys("wh/warehouse/elsewhere/")] == [key_of(outside)]


async def test_gc_enabled_false_and_invalid_properties_prevent_an_expiry(expiries: Expiries) -> None:
    for name, properties in (
        ("forbidden", {"gc.enabled": "false"}),
        ("misspelt", {"history.expire.min-snapshots-to-keep": "many"}),
    ):
        await expiries.table(name, properties={**properties})
    await expiries.policy()
    await expiries.work()
    assert await expiries.snapshots("forbidden") == await expiries.snapshots("misspelt") == [1, 2, 3, 4]


async def test_the_receipt_of_the_commit_names_the_worker(expiries: Expiries) -> None:
    await expiries.table()
    await expiries.policy()
    await expiries.work()
    entity = (await expiries.state()).entity
    records = [each async for each in read_expiry_records(expiries.fixture.session().state, entity)]
    assert [(each.record.snapshots, len(each.record.lists)) for each in records] == [(3, 3)]
    made = await receipts(expiries.fixture.session(), NS, "t")
    assert [each["principal"] for each in made if "remove-snapshots" in str(each)] == ["tasks"]
