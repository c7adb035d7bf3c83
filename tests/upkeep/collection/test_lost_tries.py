"""Metadata files and pending receipts of tries that were lost, and pending receipts of commits
(docs/design/collection.md#rule-4)."""

from contextlib import suppress

import pytest

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.load import load_table
from arco_catalog.operations.register import register_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.planning.collection import Kind
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.pointer import Pointer
from arco_catalog.upkeep.collection.collect import collect
from storage_backends import StoreUnavailable
from tests.simulation.rule_mutations_for_collections import intents_that_a_walk_does_not_fence
from tests.support.fake_runtime import WrongClock
from tests.support.scripted_store import DOWN, Call, Match, Rule, delete, put, swap
from tests.upkeep.collection.conftest import PATHS, Collections
from tools.support.appended_files import ALLOWED, Lake
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property


async def test_a_lost_try_of_an_idle_table_goes_behind_a_fence(collections: Collections) -> None:
    left = await collections.lost_try()
    before = await pointer(collections)
    collections.days(8)
    assert await collections.collected() == {Kind.METADATA_FILE: 1, Kind.PENDING_RECEIPT: 2}
    assert not {*left} & {*collections.listed()}
    assert (await pointer(collections)).sequence == before.sequence + 1
    assert await collections.codes() == []


async def test_what_a_collection_left_is_counted_without_the_files_that_it_deleted(collections: Collections) -> None:
    for _ in range(10):
        await collections.lost_try()
    collections.days(8)

    stats = await collections.collect()

    assert stats.kinds[Kind.METADATA_FILE].count == 10
    assert stats.left == stats.listed - stats.kinds[Kind.PENDING_RECEIPT].count


async def pointer(collections: Collections) -> Pointer:
    [key] = collections.listed(PATHS.pointers)
    entity = key.removeprefix(PATHS.pointers).removesuffix(".json")
    found = await collections.fixture.another().session().state.pointer(entity)
    assert found is not None
    return found


async def test_a_lost_try_of_a_busy_table_goes_without_a_fence(collections: Collections) -> None:
    left = await collections.lost_try()
    collections.days(8)
    await collections.commit()
    before = await pointer(collections)
    assert (await collections.collected())[Kind.METADATA_FILE] == 1
    assert (await pointer(collections)).sequence == before.sequence
    assert not {*left} & {*collections.listed()}


async def test_a_metadata_file_stays_past_the_deadline_though_the_clock_was_set_back(collections: Collections) -> None:
    left = await collections.lost_try()

    def is_read_of_the_lost_file(call: Call) -> bool:
        return call.method.startswith("get") and call.key in left and call.key.endswith(".metadata.json")

    collections.days(8)
    await collect_asleep(collections, is_read_of_the_lost_file)
    assert {*left} <= {*collections.listed()}


async def test_a_delete_of_unknown_outcome_is_not_sent_again_past_the_deadline(collections: Collections) -> None:
    left = await collections.lost_try()
    [pending] = [key for key in left if "/pending/" in key]
    collections.days(8)
    await collect_asleep(collections, delete(pending), made=False)
    assert pending in collections.listed()


async def collect_asleep(collections: Collections, match: Match, *, made: bool = True) -> None:
    """Collects on a machine that sleeps past the deadline at the first call that matches, and wakes with its clock set
    back."""
    machine = WrongClock(collections.runtime, ahead_ms=1)
    collector = CatalogFixture(collections.store, machine, collections.fixture.catalog.settings)

    async def sleep() -> None:
        collections.days(2)
        machine.ahead_ms = -2 * DAY_MS

    collections.store.rules = [Rule(match, first=sleep, made=made, times=1)]
    with pytest.raises(StoreUnavailable, match="deadline"):
        await collect(collector.session(deadline_ms=DAY_MS), delete=True)
    collections.store.rules = []


async def test_what_is_younger_than_a_week_stays(collections: Collections) -> None:
    left = await collections.lost_try()
    collections.days(6.9)
    assert await collections.collected() == {}
    assert {*left} <= {*collections.listed()}


async def test_a_dry_run_counts_the_same_and_writes_nothing(collections: Collections) -> None:
    await collections.lost_try()
    collections.days(8)
    before = collections.listed()
    written = sum(call.method in ("put", "delete") for call in collections.store.calls)
    planned = await collections.collect(delete=False)
    assert collections.listed() == before
    assert sum(call.method in ("put", "delete") for call in collections.store.calls) == written
    assert planned.kinds == (await collections.collect()).kinds
    assert planned.kinds[Kind.METADATA_FILE].bytes > 0


async def test_a_commit_whose_receipt_is_missing_is_receipted_and_not_taken_for_lost(collections: Collections) -> None:
    collections.store.rules = [Rule(put("/committed/"), fails=DOWN)]
    made = await collections.commit()
    collections.store.rules = []
    collections.days(8)
    assert await collections.collected(delete=False) == {}
    assert await collections.collected() == {Kind.PENDING_RECEIPT: 2}
    assert (await load_table(collections.fixture.another().session(), NS, "t")).metadata == made.metadata
    assert len([key for key in collections.listed(PATHS.events) if "/committed/" in key]) == 2
    assert await collections.codes() == []


async def test_a_lost_file_that_was_registered_stays(collections: Collections) -> None:
    collections = Collections(Settings("wh", allow_location_overlap=True))
    await collections.fixture.namespace("db")
    await collections.fixture.table("t")
    [file] = [key for key in await collections.lost_try() if key.endswith(".metadata.json")]
    await register_table(collections.fixture.session(), NS, "u", f"memory:///{file}", overwrite=False)
    collections.days(8)
    await collections.commit()
    await collections.collect()
    assert file in collections.listed()
    await load_table(collections.fixture.another().session(), NS, "u")


async def test_a_try_whose_pending_receipt_alone_landed_is_forgotten(collections: Collections) -> None:
    [file] = [key for key in await collections.lost_try() if key.endswith(".metadata.json")]
    await collections.store.delete(file)
    collections.days(8)
    assert await collections.collected() == {Kind.PENDING_RECEIPT: 2}


async def test_a_table_that_cannot_be_walked_keeps_everything(collections: Collections) -> None:
    await collections.commit()
    for key in collections.listed(PATHS.events):  # the chain is broken: the first file is not known any more
        await collections.store.delete(key)
    left = await collections.lost_try()
    [first] = [key for key in collections.listed("wh/warehouse") if "/00000-" in key]
    await collections.store.delete(first)
    collections.days(8)
    stats = await collections.collect()
    assert stats.kinds == {}
    assert {*left} <= {*collections.listed()}


async def decides_first(collections: Collections) -> bool:
    """Whether a collection that begins with receipts decides a transaction before it deletes the files of its intents,
    which may become current until then."""
    await collections.fixture.table("u")
    collections.store.rules = [Rule(swap("/transactions/"), fails=DOWN)]
    with suppress(CommitStateUnknown):
        changes = [(NS, name, set_property("a", "1")) for name in ("t", "u")]
        await commit_transaction(collections.fixture.another().session(), changes)
    collections.store.rules = []
    collections.days(8)
    collections.runtime.ms += (3 - collections.runtime.ms) % 12  # receipts are the fourth of twelve parts
    before = len(collections.store.calls)
    await collections.collect()
    calls = collections.store.calls[before:]
    decided = [at for at, call in enumerate(calls) if call.method == "put" and "/transactions/" in call.key]
    deleted = [at for at, call in enumerate(calls) if "delete" in call.method and call.key.endswith("metadata.json")]
    assert deleted
    return bool(decided) and decided[0] < deleted[0]


async def test_an_intent_is_decided_before_its_file_is_taken_for_lost(collections: Collections) -> None:
    assert await decides_first(collections)


async def test_an_intent_that_is_not_fenced_is_found(collections: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    intents_that_a_walk_does_not_fence(monkeypatch)
    assert not await decides_first(collections)


async def test_the_manifest_list_of_a_lost_rebase_goes_with_its_metadata_file(collections: Collections) -> None:
    fixture, lake = collections.fixture, Lake(collections.store)
    await fixture.table("appended", properties={**ALLOWED})

    async def append(number: int) -> JsonObject:
        document = loads((await load_table(fixture.another().session(), NS, "appended")).metadata)
        body: JsonObject = await lake.append(document, number)
        return body

    await fixture.commit(await append(1), "appended")
    late = await append(9)
    await fixture.commit(await append(2), "appended")
    before = {*collections.listed()}
    collections.store.rules = [Rule(swap("/iceberg_pointers/"), fails=DOWN)]
    with suppress(CommitStateUnknown):
        await fixture.another().commit(late, "appended")
    collections.store.rules = []
    left = {*collections.listed()} - before
    assert sorted(key.rpartition(".")[2] for key in left) == ["avro", "json", "json"]
    collections.days(8)
    found = await collections.collected(delete=False)
    assert await collections.collected() == found
    assert (found[Kind.METADATA_FILE], found[Kind.MANIFEST_LIST]) == (1, 1)
    assert not left & {*collections.listed()}
    assert before <= {*collections.listed()} | {key for key in before if "/pending/" in key}
    assert await collections.codes() == []
