"""Markers of idempotency keys, and decisions of transactions (docs/design/collection.md#rule-6)."""

import pytest

from arco_catalog.iceberg.errors import CommitFailed, CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject, JsonValue, loads
from arco_catalog.operations.environment import settings_from_env
from arco_catalog.operations.load import load_table
from arco_catalog.operations.transaction import TableChange, commit_transaction
from arco_catalog.planning.collection import Kind
from arco_catalog.planning.upkeep_settings import DAY_MS, Retention
from arco_catalog.state.marker import Slot, WriteSet
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.collection.markers import Marker
from storage_backends import ABSENT, Found
from tests.support.scripted_store import DOWN, Nth, Rule, delete, put, swap
from tests.upkeep.collection.conftest import PATHS, Collections
from tools.support.catalog_fixture import NS
from tools.support.request_bodies import set_property

FAILS: JsonObject = {
    "requirements": [{"type": "assert-table-uuid", "uuid": "00000000-0000-4000-8000-00000000dead"}],
    "updates": [{"action": "set-properties", "updates": {"n": "1"}}],
}


def change(name: str, body: JsonObject) -> TableChange:
    return NS, name, body


async def value(collections: Collections, name: str = "t", of: str = "p") -> JsonValue:
    document = loads((await load_table(collections.fixture.another().session(), NS, name)).metadata)
    assert isinstance(document, dict)
    found = document["properties"]
    assert isinstance(found, dict)
    return found.get(of)


async def test_a_finished_marker_goes_after_two_days(collections: Collections) -> None:
    await collections.commit(key=collections.fixture.key())
    assert len(collections.listed(PATHS.markers)) == 2
    collections.days(2)
    assert await collections.collected() == {}
    collections.days(0.1)
    assert await collections.collected() == {Kind.MARKER: 1}
    assert collections.listed(PATHS.markers) == []


@pytest.mark.parametrize(("text", "left"), [("false", 2), ("true", 0)])
async def test_a_collector_reads_from_its_environment_whether_markers_go(text: str, left: int) -> None:
    environment = {"ARCO_STORE": "memory:", "ARCO_WAREHOUSE": "wh", "ARCO_IDEMPOTENCY_CLEANUP_ENABLED": text}
    collections = Collections(settings_from_env(environment))
    await collections.fixture.namespace(*NS)
    await collections.fixture.table("t")
    await collections.commit(key=collections.fixture.key())
    collections.days(3)

    await collections.collect()

    assert len(collections.listed(PATHS.markers)) == left


async def test_where_markers_are_not_to_go_they_stay_and_so_does_every_decision(collections: Collections) -> None:
    await collections.fixture.table("u")
    await both(collections, "1", key=collections.fixture.key())
    collections.days(5)
    kept = collections.listed(PATHS.markers), collections.listed(PATHS.transactions)

    session = collections.fixture.another().session(deadline_ms=DAY_MS)
    stats = await collect(session, delete=True, retention=Retention(markers=False))

    assert stats.kinds.keys().isdisjoint({Kind.MARKER, Kind.TRANSACTION})
    assert (collections.listed(PATHS.markers), collections.listed(PATHS.transactions)) == kept
    assert all(kept)


async def test_a_failure_is_not_executed_again_when_a_collector_dies_between_its_slots(
    collections: Collections,
) -> None:
    """The final slot is gone, the first is there: a retry must not take over what was answered as failed."""
    key = collections.fixture.key()
    with pytest.raises(CommitFailed):
        await collections.fixture.another().commit(FAILS, key=key)
    collections.days(2.1)
    collections.store.rules = [Rule(Nth(2, delete("/iceberg_idempotency/")), fails=DOWN)]
    with pytest.raises(type(DOWN)):
        await collections.collect()
    collections.store.rules = []
    assert [each.rpartition("/")[2] for each in collections.listed(PATHS.markers)] == ["0.json"]
    with pytest.raises(CommitStateUnknown):
        await collections.fixture.another().commit(FAILS, key=key)
    assert await collections.codes() == []
    assert await collections.collected() == {Kind.MARKER: 1}


async def test_an_unfinished_marker_is_closed_and_fenced_before_it_goes(collections: Collections) -> None:
    key = collections.fixture.key()
    await collections.lost_try(key=key)
    [pointer] = collections.listed(PATHS.pointers)
    before = await collections.store.get(pointer)
    collections.days(2.1)
    assert await collections.collected() == {Kind.MARKER: 1}
    assert collections.listed(PATHS.markers) == []
    after = await collections.store.get(pointer)
    assert isinstance(before, Found)
    assert isinstance(after, Found)
    assert after.version != before.version
    with pytest.raises(CommitStateUnknown):
        await collections.fixture.another().commit(set_property("lost", "yes"), key=key)
    assert await value(collections, of="lost") is None


async def test_a_collector_that_dies_behind_its_slot_leaves_an_answer_that_is_unknown(
    collections: Collections,
) -> None:
    key = collections.fixture.key()
    await collections.lost_try(key=key)
    collections.days(2.1)
    collections.store.rules = [Rule(swap("/iceberg_pointers/"), fails=DOWN)]
    with pytest.raises(type(DOWN)):
        await collections.collect()
    collections.store.rules = []
    assert len(collections.listed(PATHS.markers)) == 2
    with pytest.raises(CommitStateUnknown, match="too old"):
        await collections.fixture.another().commit(set_property("lost", "yes"), key=key)
    assert "marker-foreign" not in await collections.codes()
    assert await collections.collected() == {Kind.MARKER: 1}


async def test_a_marker_that_a_retry_takes_over_meanwhile_stays(collections: Collections) -> None:
    key = collections.fixture.key()
    await collections.lost_try(key=key)
    collections.days(2.1)

    async def retry() -> None:
        [first] = collections.listed(PATHS.markers)
        await collections.store.put(first.replace("/0.json", "/1.json"), b'{"version":1,"attempt":"x"}', ABSENT)

    collections.store.rules = [Rule(put("/iceberg_idempotency/"), first=retry, times=1)]
    assert await collections.collected() == {}
    assert len(collections.listed(PATHS.markers)) == 2


async def test_a_request_takes_nothing_over_that_may_be_collected(collections: Collections) -> None:
    key = collections.fixture.key()
    await collections.lost_try(key=key)
    collections.days(2)
    with pytest.raises(CommitStateUnknown, match="too old"):
        await collections.fixture.another().commit(set_property("lost", "yes"), key=key)


async def both(collections: Collections, value: str, key: str | None = None) -> None:
    changes = [change(name, set_property("p", value)) for name in ("t", "u")]
    body: JsonObject = {"p": value}
    await commit_transaction(collections.fixture.another().session(body, key=key, path="/transactions"), changes)


async def test_a_decision_goes_after_every_marker_that_may_ask_for_it(collections: Collections) -> None:
    await collections.fixture.table("u")
    await both(collections, "1", key=collections.fixture.key())
    collections.days(2.5)
    assert await collections.collected() == {Kind.MARKER: 1}
    collections.days(0.6)
    assert await collections.collected() == {Kind.TRANSACTION: 1}
    assert await value(collections) == "1"


async def test_a_decision_that_a_marker_may_ask_for_stays(collections: Collections) -> None:
    """One marker can't be read: it is kept, and so is every decision that is younger than it."""
    await collections.fixture.table("u")
    await both(collections, "1", key=collections.fixture.key())
    [slot] = [key for key in collections.listed(PATHS.markers) if key.endswith("/0.json")]
    await collections.store.delete(slot)
    await collections.store.put(slot, b"{", ABSENT)
    collections.days(10)
    stats = await collections.collect()
    assert Kind.TRANSACTION not in stats.kinds
    assert stats.unreadable_count == 1


async def test_intents_of_a_commit_are_settled_before_its_decision_goes(collections: Collections) -> None:
    await collections.fixture.table("u")
    collections.store.rules = [Rule(Nth(each, swap("/iceberg_pointers/")), fails=DOWN) for each in (3, 4)]
    await both(collections, "1")
    collections.store.rules = []
    collections.days(4)
    assert (await collections.collected())[Kind.TRANSACTION] == 1
    assert await value(collections) == "1"
    assert await value(collections, "u") == "1"


async def test_an_undecided_transaction_is_aborted_first(collections: Collections) -> None:
    await collections.fixture.table("u")
    collections.store.rules = [Rule(swap("/transactions/"), fails=DOWN)]
    with pytest.raises(CommitStateUnknown):
        await both(collections, "1")
    collections.store.rules = []
    collections.days(8)
    await collections.collect()
    assert len(collections.listed(PATHS.transactions)) == 1
    collections.days(4)
    assert (await collections.collected())[Kind.TRANSACTION] == 1
    assert await value(collections) is None
    assert len(collections.listed("wh/warehouse")) == 2
    assert await collections.codes() == []


async def test_a_slot_that_lands_after_its_marker_was_collected_goes_two_days_later(collections: Collections) -> None:
    await collections.commit(key=collections.fixture.key())
    last = collections.listed(PATHS.markers)[-1]
    found = await collections.store.get(last)
    assert isinstance(found, Found)
    collections.days(2.1)
    await collections.collect()
    await collections.store.put(last, found.body, ABSENT)
    assert await collections.collected() == {}
    late_ms = collections.runtime.ms
    collections.days(2.1)
    assert await collections.collected(delete=False) == {Kind.MARKER: 1}
    stats = await collections.collect()
    assert (stats.kinds[Kind.MARKER].count, stats.kinds[Kind.MARKER].oldest_ms) == (1, late_ms)
    assert collections.listed(PATHS.markers) == []


def test_a_marker_without_its_first_slot_is_as_old_as_its_youngest_and_keeps_what_is_younger_than_its_oldest() -> None:
    late = [Slot("a", WriteSet(), {}, None, written_ms) for written_ms in (5_000, 3_000, 4_000)]
    marker = Marker("markers/k/", [], [], late)
    assert (marker.since_ms, marker.oldest_ms) == (5_000, 3_000)
