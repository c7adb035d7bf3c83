"""The sequencer enters every change once, after its predecessor, whatever is missing when it looks
(docs/design/events.md)."""

import pytest

from arco_catalog.iceberg.errors import CommitStateUnknown, Unavailable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.commit import commit_view
from arco_catalog.operations.create import create_table, create_view
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.feed import newest_token
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import TableChange, commit_transaction
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import decide, read_decision
from arco_catalog.state import registry
from arco_catalog.state.feed_cursors import SHARDS, read_shard, shard_of
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.feed import commit_chain, registry_chain, sequencer
from arco_catalog.upkeep.feed.sequencer import Sequencer
from storage_backends import ANY, Found, StoreDenied, StoreUnavailable
from tests.operations.test_transactions import creation
from tests.support.scripted_store import Rule, get, put
from tests.upkeep.feed.conftest import FeedScenario
from tools.support.catalog_fixture import NS
from tools.support.request_bodies import schema, set_property, view_request


async def test_the_feed_begins_with_what_is_there_and_then_has_each_change(scenario: FeedScenario) -> None:
    fixture, begun = scenario.fixture, await newest_token(scenario.fixture.session().state)
    await scenario.change()
    scenario.clock.ms += 1_000
    await fixture.table("new")
    await scenario.change("new")
    scenario.clock.ms += 1_000
    await rename_table(fixture.session(), (NS, "t"), (NS, "older"))
    await drop_table(fixture.session(), NS, "new", purge=False)

    stats = await scenario.run()

    assert await scenario.shown() == ["begin", "begin", *await scenario.shown(begun)]
    changes = ["commit t", "create-table", "commit new", "commit new", "rename-table", "drop-table"]
    assert await scenario.shown(begun) == changes
    assert stats.is_end
    assert stats.records == len(changes)


async def test_a_record_has_what_the_receipt_has(scenario: FeedScenario) -> None:
    await scenario.change()
    await scenario.run()

    record = (await scenario.records())[-1]

    assert record.details["namespace"] == ["db"]
    assert record.details["updates"] == ["set-properties"]
    assert record.details["principal"] == "tester"
    assert record.details["previous_metadata_location"] == (await scenario.records())[1].details["metadata_location"]


async def test_views_transactions_and_registered_tables_enter(scenario: FeedScenario) -> None:
    fixture, begun = scenario.fixture, await newest_token(scenario.fixture.session().state)
    await create_view(fixture.session(), NS, view_request("v"))
    body = set_property("a", "1")
    await commit_view(fixture.session(body), NS, "v", body)
    changes: list[TableChange] = [(NS, "t", body), creation("made")]
    await commit_transaction(fixture.session({"n": 1}), changes)
    dropped = await fixture.table("gone")
    await drop_table(fixture.session(), NS, "gone", purge=False)
    await register_table(fixture.session(), NS, "again", dropped.metadata_location, overwrite=False)
    await scenario.change("again")

    await scenario.run()

    shown = await scenario.shown(begun)
    assert sorted(each for each in shown if each.startswith("commit")) == [
        *("commit again", "commit gone", "commit made", "commit t", "commit v", "commit v")
    ]
    assert shown.index("register-table") < shown.index("commit again")


async def test_a_create_that_lost_its_name_never_enters(scenario: FeedScenario) -> None:
    fixture = scenario.fixture
    body: JsonObject = {"name": "lost", "schema": schema("x")}
    scenario.store.rules = [Rule(put("manifest.json"), fails=StoreUnavailable("dead"))]
    with pytest.raises((Unavailable, CommitStateUnknown)):
        await create_table(fixture.session(body), NS, body)
    scenario.store.rules = []
    assert len([key for key in scenario.store.keys("") if "/iceberg_pointers/" in key]) == 2

    assert (await scenario.run()).records == 0


@pytest.mark.parametrize("is_planted", [False, True])
async def test_a_pointer_is_not_passed_over_while_its_transaction_is_undecided(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch, is_planted: bool
) -> None:
    """With the bug planted, the version of the pointer counts although the transaction may yet commit."""

    async def never(session: Session, transaction: str) -> bool:
        return False

    if is_planted:
        monkeypatch.setattr(commit_chain, "_is_pending", never)
    await scenario.fixture.table("u")
    await scenario.run()
    before = await newest_token(scenario.fixture.session().state)

    await scenario.leave_undecided(monkeypatch, ("t", "u"))
    transaction = next(key for key in scenario.store.keys("") if "/transactions/" in key)
    transaction = transaction.rpartition("/")[2].removesuffix(".json")
    assert (await scenario.run()).records == 0
    state = scenario.fixture.session().state
    decision = await read_decision(state, transaction)
    assert decision is not None
    assert await decide(state, scenario.clock, decision, "committed")
    await scenario.run()

    assert sorted(await scenario.shown(before)) == ([] if is_planted else ["commit t", "commit u"])


@pytest.mark.parametrize("is_refused_first", [False, True])
async def test_a_drop_proves_that_its_table_was_created_when_nothing_else_does_any_more(
    scenario: FeedScenario, *, is_refused_first: bool
) -> None:
    """Collections have deleted the decision of the transaction that made a table, and what an undrop needs, before a
    sequencer looks; or before it can read the pointer, when the drop has entered already."""
    await scenario.fixture.table("u")
    await scenario.run()
    before = await newest_token(scenario.fixture.session().state)
    changes = [(NS, "u", set_property("a", "1")), creation("made")]
    await commit_transaction(scenario.fixture.session({"n": 1}), changes)
    await scenario.change("made")
    await drop_table(scenario.fixture.session(), NS, "made", purge=False)
    scenario.clock.ms += 31 * DAY_MS
    await collect(scenario.fixture.session(), delete=True)
    assert len([key for key in scenario.store.keys("") if "/iceberg_pointers/" in key]) == 3
    if is_refused_first:
        scenario.store.rules = [Rule(get("/iceberg_pointers/"), fails=StoreDenied("refused"))]
        await scenario.run()
        assert "commit made" not in await scenario.shown(before)
        scenario.store.rules = []

    await scenario.run(Sequencer())

    shown = await scenario.shown(before)
    assert shown.count("commit made") == 2
    assert (shown.index("drop-table") < shown.index("commit made")) == is_refused_first


async def test_a_long_chain_enters_in_its_order_step_by_step(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_chain, "MAX_RECORDS", 3)
    for _ in range(10):
        await scenario.change()
    await drop_table(scenario.fixture.session(), NS, "t", purge=False)

    stats = await scenario.run()

    commits = [record for record in await scenario.records() if record.kind == "commit"]
    assert len(commits) == 10
    assert [record.at_ms for record in commits] == sorted(record.at_ms for record in commits)
    assert (await scenario.shown())[-1] == "drop-table"
    assert stats.segments == 4


async def test_many_operations_enter_in_their_order(scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_chain, "MAX_OPERATIONS", 3)
    monkeypatch.setattr(registry_chain, "AHEAD", 2)
    for number in range(9):
        await scenario.fixture.table(f"n{number}")

    assert (await scenario.run()).is_end

    sequences = [record.details["sequence"] for record in await scenario.records() if record.kind == "operation"]
    assert sequences == [*range(3, 12)]
    assert len([each for each in await scenario.shown() if each.startswith("commit n")]) == 9


async def test_operations_enter_beyond_a_lost_commit_that_lists_others(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 4)
    for number in range(9):
        await scenario.fixture.table(f"n{number}")
    state = scenario.fixture.another().session().state
    head = await state.head()
    assert head.before is not None
    await scenario.store.delete(state.paths.registry_commit(head.before))

    await scenario.run(Sequencer())

    entered = [record.details["sequence"] for record in await scenario.records() if record.kind == "operation"]
    assert entered == [each for each in range(3, 12) if each != head.before_sequence]
    assert [record.kind for record in await scenario.records() if record.entity is None][:2] == ["begin", "gap"]


async def test_many_tables_take_several_steps(scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequencer, "MAX_ENTITIES", 2)
    for number in range(5):
        await scenario.fixture.table(f"n{number}")

    assert (await scenario.run()).is_end

    assert len([each for each in await scenario.shown() if each.startswith("commit")]) == 5


@pytest.mark.parametrize("stages", [("committed",), ("pending",), ("committed", "pending")])
async def test_a_commit_without_its_receipts_enters(scenario: FeedScenario, stages: tuple[str, ...]) -> None:
    await scenario.change()
    for key in scenario.store.keys(""):
        if any(f"/iceberg/{stage}/" in key for stage in stages):
            await scenario.store.delete(key)
    await scenario.change()

    await scenario.run()

    assert [record.kind for record in await scenario.records()] == ["begin", "begin", "commit", "commit"]


async def test_a_pointer_that_cannot_be_read_delays_no_other(scenario: FeedScenario) -> None:
    other = await scenario.fixture.table("u")
    await scenario.run()
    await scenario.change("u")
    await scenario.change()
    key = f"wh/_catalog/iceberg_pointers/{other.entity}.json"
    body = await scenario.store.get(key)
    assert isinstance(body, Found)
    await scenario.store.delete(key)
    await scenario.store.put(key, b"{", ANY)

    stats = await scenario.run(Sequencer())

    assert stats.failed == 1
    assert (await scenario.shown())[-1] == "commit t"
    await scenario.store.delete(key)
    await scenario.store.put(key, body.body, ANY)
    await scenario.run()
    assert (await scenario.shown())[-1] == "commit u"


async def test_a_lost_shard_of_cursors_is_made_again_from_the_segments(scenario: FeedScenario) -> None:
    await scenario.change()
    await scenario.run()
    for number in range(SHARDS):
        await scenario.store.delete(f"wh/_catalog/feed/cursors/{number:02d}.json")

    assert (await scenario.run(Sequencer())).records == 0

    entity = (await scenario.records())[-1].entity
    assert entity is not None
    assert entity in (await read_shard(scenario.fixture.session().state, shard_of(entity))).by_entity


async def test_a_step_without_changes_takes_three_calls_and_a_commit_a_few_more(scenario: FeedScenario) -> None:
    await scenario.run()
    with scenario.counting.measure() as idle:
        await scenario.run()
    await scenario.change()
    with scenario.counting.measure() as busy:
        await scenario.run()

    assert idle.calls == 3  # the next segment, HEAD, and the pointers
    assert busy.calls == 9  # and the pointer, the receipt, the last segment, the new one, and a shard of cursors twice
