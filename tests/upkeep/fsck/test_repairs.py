"""Repairs: what they mend is as it was, and what they must not touch stays as it is (docs/fsck.md#repair)."""

import pytest

from arco_catalog.iceberg.json import dumps, loads
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.task import Status
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.repairs import ClaimFile, CopyHead, PutHint, RemoveHint, SettleNames, WriteReceipt
from storage_backends import ANY
from tests.operations.test_transactions import change, creation, transact
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, put
from tests.upkeep.fsck.conftest import HOUR_MS, STATE, StoredCatalog
from tests.upkeep.purge.conftest import Purges
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property


async def snapshot(stored: StoredCatalog) -> dict[str, bytes]:
    """All objects."""
    return {key: await stored.body(key) for key in stored.store.keys("")}


def passes(fixture: CatalogFixture, ms: int) -> None:
    """Lets time pass."""
    assert isinstance(fixture.runtime, FakeRuntime)
    fixture.runtime.ms += ms


async def repair(stored: StoredCatalog, mend: object) -> bool:
    """Carries out one repair, as another process."""
    assert callable(mend)
    done = await mend(stored.fixture.another().session())
    assert isinstance(done, bool)
    return done


async def committed_receipts(stored: StoredCatalog) -> list[str]:
    return [key for key in stored.keys("events/") if "/committed/" in key]


async def test_every_committed_receipt_that_is_gone_is_reported_and_written_again(stored: StoredCatalog) -> None:
    before = await snapshot(stored)
    for key in await committed_receipts(stored):
        await stored.store.delete(key)
        assert await stored.codes() == {Code.RECEIPT_MISSING}
        assert await stored.mend() == {Code.RECEIPT_MISSING}
        assert await snapshot(stored) == before
        passes(stored.fixture, HOUR_MS)  # else the receipt just written proves nothing yet about the one before it


async def test_a_receipt_of_which_nothing_is_left_is_made_of_the_metadata(stored: StoredCatalog) -> None:
    key = (await committed_receipts(stored))[-1]
    await stored.store.delete(key)
    await stored.store.delete(key.replace("/committed/", "/pending/"))

    assert await stored.mend() == {Code.RECEIPT_MISSING}
    assert await stored.codes() == set()


async def test_the_commit_object_of_head_is_copied_from_it(stored: StoredCatalog) -> None:
    before = await snapshot(stored)
    head = loads(before[f"{STATE}core/manifest.json"])
    assert isinstance(head, dict)
    await stored.store.delete(f"{STATE}core/commits/{head['id']}.json")

    assert await stored.mend() == {Code.COMMIT_MISSING}
    assert await snapshot(stored) == before


async def test_a_commit_that_head_has_left_is_not_made_up(stored: StoredCatalog) -> None:
    key = stored.keys("core/commits/")[3]
    await stored.store.delete(key)
    name = key.rpartition("/")[2].removesuffix(".json")

    assert await stored.mend() == set()
    assert not await repair(stored, CopyHead(name))


async def test_the_claim_on_a_registered_file_is_made_again(stored: StoredCatalog) -> None:
    [key] = stored.keys("metadata_claims/")
    await stored.store.delete(key)

    assert await stored.mend() == {Code.CLAIM_MISSING}
    assert await stored.codes() == set()


async def test_a_file_that_was_claimed_for_its_removal_stays_so(stored: StoredCatalog) -> None:
    [key] = stored.keys("metadata_claims/")
    document = loads(await stored.body(key))
    assert isinstance(document, dict)
    removed = dumps({**document, "claim": "removed"})
    await stored.put(key, removed)

    assert not await repair(stored, ClaimFile(str(document["entity"]), str(document["file"])))
    assert await stored.body(key) == removed


async def test_repairs_of_what_is_sound_write_nothing(stored: StoredCatalog) -> None:
    before = await snapshot(stored)
    relation = stored.keys("iceberg_pointers/")[0]
    pointer = loads(await stored.body(relation))
    assert isinstance(pointer, dict)
    file = MetadataFile(str(pointer["metadata_location"]), int(str(pointer["metadata_ms"])))

    assert not await repair(stored, WriteReceipt(str(pointer["entity"]), file))
    assert not await repair(stored, WriteReceipt("01KAN0Y7Q2M3C4D5E6F7G8H9JK", file))
    assert not await repair(stored, PutHint("no-task"))
    assert not await repair(stored, RemoveHint("no-task", f"{STATE}tasks/open/x"))
    assert not await repair(stored, SettleNames("01KAN0Y7Q2M3C4D5E6F7G8H9JK"))
    assert await snapshot(stored) == before


async def test_a_hint_of_a_task_that_was_submitted_again_stays() -> None:
    purges = Purges()
    await purges.fixture.namespace("db")
    await purges.table()
    await purges.drop()
    [hint] = purges.store.keys(f"{STATE}tasks/open/")
    task = str((await purges.tombstone()).task)
    assert (await purges.task(task)).status is Status.SUBMITTED

    assert not await RemoveHint(task, hint)(purges.fixture.session())
    assert purges.store.keys(f"{STATE}tasks/open/") == [hint]


@pytest.fixture
async def unsettled() -> CatalogFixture:
    """A transaction that created a table, and whose coordinator died before it could settle the name."""
    clock = FakeRuntime()
    store = ScriptedStore(clock.now_ms)
    fixture = CatalogFixture(store, clock, Settings("wh"))
    await fixture.namespace("db")
    await fixture.table("t")

    async def die() -> None:
        store.rules = [Rule(put(), fails=DOWN)]

    store.rules = [Rule(put("/transactions/", b'"committed"'), then=die)]
    await transact(fixture, [change("t", set_property("a", "1")), creation("made")])
    store.rules = []
    clock.ms += HOUR_MS
    return fixture


async def found(fixture: CatalogFixture) -> list[Finding]:
    return [each async for each in check(Examination(fixture.another().session()))]


async def test_a_name_whose_transaction_is_decided_is_settled(unsettled: CatalogFixture) -> None:
    [left] = [each for each in await found(unsettled) if each.code is Code.INTENT_LEFT]
    assert left.repair is not None

    assert await left.repair(unsettled.another().session())
    assert Code.INTENT_LEFT not in {each.code for each in await found(unsettled)}
    assert "db.made" in {
        relation.name for relation in (await examined(unsettled)).relations.values() if relation.state == "live"
    }


async def examined(fixture: CatalogFixture) -> Examination:
    examination = Examination(fixture.another().session())
    _ = [each async for each in check(examination)]
    return examination


async def test_a_transaction_whose_decision_is_gone_is_reported_and_left_alone(unsettled: CatalogFixture) -> None:
    store = unsettled.store
    assert isinstance(store, ScriptedStore)
    [key] = store.keys(f"{STATE}transactions/")
    await store.delete(key)

    report = [each for each in await found(unsettled) if each.code is Code.TRANSACTION_MISSING]
    assert {each.where for each in report} == {key}
    assert len(report) == 2  # the name, and the pointer of the other table
    assert all(each.repair is None for each in report)


async def test_a_transaction_that_is_not_decided_is_left_to_those_who_may(unsettled: CatalogFixture) -> None:
    """One whose object was restored to an older version must not be aborted by us."""
    store = unsettled.store
    assert isinstance(store, ScriptedStore)
    [key] = store.keys(f"{STATE}transactions/")
    body = next(call.body for call in store.calls if call.method == "put" and call.key == key)
    await store.put(key, body, ANY)
    passes(unsettled, HOUR_MS)
    transaction = key.rpartition("/")[2].removesuffix(".json")

    assert not await SettleNames(transaction)(unsettled.another().session())
    assert Code.TRANSACTION_UNDECIDED in {each.code for each in await found(unsettled)}


async def test_what_a_finding_repairs_is_reported_beside_its_code(stored: StoredCatalog) -> None:
    """Of each code that is ever found with a repair here, and in the other tests of repairs."""
    for key in [*await committed_receipts(stored), *stored.keys("metadata_claims/")]:
        await stored.store.delete(key)
    repaired = [each for each in await stored.found() if each.repair is not None]

    assert repaired
    assert all(each.code.repair for each in repaired)
    assert all(each.to_json()["repair"] == each.code.repair for each in repaired)
