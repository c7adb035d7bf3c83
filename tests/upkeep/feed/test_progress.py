"""The sequencer gets on, at a bounded cost, whatever is undecided, long, restored, refused or lost
(docs/design/events.md#cost)."""

import asyncio
import threading
from collections.abc import Callable, Sequence

import pytest

from arco_catalog.iceberg.json import dumps
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.namespaces import create_namespace
from arco_catalog.planning import feed as feed_planning
from arco_catalog.protocol.catalog import Session
from arco_catalog.state import feed_cursors, receipt, worker_threads
from arco_catalog.state.feed import FeedRecord, FeedSegment
from arco_catalog.state.feed_cursors import shard_of
from arco_catalog.state.feed_floor import raise_feed_floor
from arco_catalog.state.fields import objects
from arco_catalog.state.pointer import Pointer
from arco_catalog.upkeep.feed import append, beginning, commit_chain, sequencer
from arco_catalog.upkeep.feed.feed_end import FeedEnd
from arco_catalog.upkeep.feed.sequencer import Sequencer
from storage_backends import ANY, Found, Missing, StoreDenied, StoreUnavailable, Unchanged, Version
from tests.upkeep.feed.conftest import FeedScenario
from tests.upkeep.feed.test_upkeep import found, segments
from tools.support.catalog_fixture import NS

HOUR_MS = 3_600_000


def pointer_key(entity: str) -> str:
    """The key of a pointer."""
    return f"wh/_catalog/iceberg_pointers/{entity}.json"


async def stored(scenario: FeedScenario, key: str) -> bytes:
    """What is stored under a key."""
    found = await scenario.store.get(key)
    assert isinstance(found, Found)
    return found.body


async def restore(scenario: FeedScenario, key: str, body: bytes) -> None:
    """An operator sets a pointer back to what it was, and servers start again."""
    now = Pointer.parse(await stored(scenario, key), Version("now"), key)
    old = Pointer.parse(body, Version("old"), key)
    made = {**old.document, "id": scenario.clock.ulid(), "sequence": now.sequence + 2_000}
    await scenario.store.put(key, dumps(made, sort_keys=True), ANY)
    scenario.fixture = scenario.fixture.another()


def slow_down(scenario: FeedScenario, patch: pytest.MonkeyPatch, ms: int) -> None:
    """Lets each read take so long."""
    get = scenario.store.get

    async def slow(key: str, known: Version | None = None) -> Found | Unchanged | Missing:
        scenario.clock.ms += ms
        return await get(key, known)

    patch.setattr(scenario.store, "get", slow)


async def test_a_start_beside_an_undecided_transaction_makes_one_segment_and_ends_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = FeedScenario()
    await scenario.fixture.namespace("db")
    await scenario.fixture.table()
    await scenario.leave_undecided(monkeypatch, ("t",), made="made")

    first, second = await scenario.run(), await scenario.run()

    assert (first.segments, second.segments) == (1, 0)
    scenario.clock.ms += HOUR_MS
    assert (await scenario.run()).is_end
    await scenario.change()
    assert (await scenario.run()).records == 1


async def test_commits_enter_before_the_drop_of_their_table_while_a_start_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = FeedScenario()
    await scenario.fixture.namespace("db")
    for name in ("t", "u"):
        await scenario.fixture.table(name)
    await scenario.leave_undecided(monkeypatch, ("t",), made="made")
    await scenario.run()
    await scenario.change("u")
    await drop_table(scenario.fixture.session(), NS, "u", purge=False)

    await scenario.run()

    assert (await scenario.shown())[-2:] == ["commit u", "drop-table"]


@pytest.mark.parametrize("limit", ["MAX_ENTITIES", "MAX_RECORDS", "MAX_KEPT"])
async def test_commits_enter_before_the_drop_of_their_table_in_however_many_steps(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """With `MAX_KEPT` a table that is not dropped has a chain of which more is left than a step may keep."""
    names = ("u", "v", "w")
    for name in names:
        await scenario.fixture.table(name)
    await scenario.run()
    monkeypatch.setattr(sequencer, limit, 1)
    monkeypatch.setattr(sequencer, "AT_ONCE", 1)
    monkeypatch.setattr(commit_chain, "MAX_RECORDS", 3)
    for _ in range(7):
        await scenario.change()
    await scenario.run()
    before = len(await scenario.records())
    for _ in range(7):
        await scenario.change()
    for name in names:
        await scenario.change(name)
    for name in names:
        await drop_table(scenario.fixture.session(), NS, name, purge=False)

    assert (await scenario.run()).is_end

    shown, records = (await scenario.shown())[before:], (await scenario.records())[before:]
    assert sorted(each for each in shown if each != "commit t") == [
        "commit u",
        "commit v",
        "commit w",
        *["drop-table"] * 3,
    ]
    for number, record in enumerate(records):
        if shown[number] == "drop-table":
            assert record.entity in {each.entity for each in records[:number]}


async def test_undecided_tables_delay_no_other(scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("u", "v", "w"):
        await scenario.fixture.table(name)
    await scenario.run()
    await scenario.leave_undecided(monkeypatch, ("t", "u"))
    await scenario.change("v")
    await scenario.change("w")
    monkeypatch.setattr(sequencer, "MAX_ENTITIES", 2)

    with scenario.counting.measure() as measured:
        stats = await scenario.run()

    assert stats.is_end
    assert (await scenario.shown())[-2:] == ["commit v", "commit w"]
    assert measured.calls < 50


async def test_a_transaction_is_aborted_after_its_lease(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scenario.fixture.table("u")
    await scenario.run()
    await scenario.leave_undecided(monkeypatch, ("t", "u"))
    scenario.clock.ms += HOUR_MS
    await scenario.run()

    with scenario.counting.measure() as measured:
        assert (await scenario.run()).is_end

    assert measured.calls == 3  # as without changes


async def test_a_refused_read_delays_no_other(scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = await scenario.fixture.table("u")
    await scenario.run()
    await scenario.change("u")
    await scenario.change()
    get = scenario.store.get

    async def refuse(key: str, known: Version | None = None) -> Found | Unchanged | Missing:
        if key == pointer_key(refused.entity):
            raise StoreDenied("403 AccessDenied")
        return await get(key, known)

    with monkeypatch.context() as refusing:
        refusing.setattr(scenario.store, "get", refuse)
        stats = await scenario.run()

    assert (stats.failed, stats.records) == (1, 1)
    assert (await scenario.shown())[-1] == "commit t"
    await scenario.run()
    assert (await scenario.shown())[-1] == "commit u"


async def test_a_restored_pointer_costs_no_more_than_what_was_undone(scenario: FeedScenario) -> None:
    entity = (await scenario.records())[-1].entity
    assert entity is not None
    key, bodies = pointer_key(entity), []
    for _ in range(40):
        await scenario.change()
        await scenario.run()
        bodies.append(await stored(scenario, key))
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr(commit_chain, "TURN", 1)
        patch.setattr(commit_chain, "WALK_ALONE", 1)
        await restore(scenario, key, bodies[-3])
        with scenario.counting.measure() as back:
            await scenario.run()
        await restore(scenario, key, bodies[-2])
        with scenario.counting.measure() as forward:
            await scenario.run()
        await scenario.change()
        await scenario.run()

    assert (await scenario.shown())[-4:] == ["commit t", "restored", "restored", "commit t"]
    ids = [record.id for record in await scenario.records() if record.id]
    assert len(ids) == len({*ids}) == 41
    assert back.calls < 25
    assert forward.calls < 25


async def test_a_restored_registry_costs_no_more_than_what_was_undone(scenario: FeedScenario) -> None:
    for _ in range(40):
        await scenario.change()
        await scenario.run()
    manifest = scenario.fixture.session().state.paths.manifest
    for name in ("u", "v", "w"):
        head = await stored(scenario, manifest)
        await scenario.fixture.table(name)
        await scenario.run()
    await scenario.store.put(manifest, head, ANY)
    scenario.fixture = scenario.fixture.another()
    await scenario.fixture.table("later")

    with scenario.counting.measure() as measured:
        await scenario.run()

    assert (await scenario.shown())[-3:] == ["restored", "create-table", "commit later"]
    assert measured.calls < 25


async def test_a_long_chain_delays_no_other_and_enters_over_several_runs(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scenario.fixture.table("u")
    await scenario.run()
    for _ in range(60):
        await scenario.change()
    await scenario.change("u")
    monkeypatch.setattr(commit_chain, "TURN", 5)
    slow_down(scenario, monkeypatch, 500)  # a run has 20 s

    first = await scenario.run()
    assert (first.records, first.is_end) == (1, False)
    assert (await scenario.shown())[-1] == "commit u"
    for _ in range(10):
        stats = await scenario.run()
        if stats.is_end:
            break

    assert len([each for each in await scenario.shown() if each == "commit t"]) == 60


async def test_a_paused_search_ends_when_another_sequencer_enters_commits_of_its_table(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(60):
        await scenario.change()
    monkeypatch.setattr(commit_chain, "TURN", 5)
    with monkeypatch.context() as slow:
        slow_down(scenario, slow, 500)
        assert (await scenario.run()).records == 0
    await scenario.run(Sequencer())
    await scenario.change()

    assert (await scenario.run()).records == 1

    assert len([each for each in await scenario.shown() if each == "commit t"]) == 61


async def test_a_new_process_reads_few_segments(scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_cursors, "MAX_SEGMENTS_BEHIND", 5)
    for _ in range(33):
        await scenario.change()
        await scenario.run()

    with scenario.counting.measure() as measured:
        await scenario.run(Sequencer())

    assert measured.calls <= 17 + 2 + 5 + 3  # floor and cursors, the last segments, and an idle step


async def test_cursors_are_stored_while_segments_are_read(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(30):
        await scenario.change()
        await scenario.run()
    for key in scenario.store.keys("wh/_catalog/feed/cursors/"):
        await scenario.store.delete(key)
    scenario.fixture = scenario.fixture.another()
    monkeypatch.setattr(sequencer, "CATCH_UP", 10)
    with monkeypatch.context() as slow:
        slow_down(scenario, slow, 400)  # 50 reads
        with pytest.raises(StoreUnavailable):
            await scenario.run(Sequencer())

    assert scenario.store.keys("wh/_catalog/feed/cursors/")


async def test_a_start_reads_each_pointer_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = FeedScenario()
    await scenario.fixture.namespace("db")
    for number in range(20):
        await scenario.fixture.table(f"n{number}")
    monkeypatch.setattr(beginning, "MAX_RECORDS", 6)
    monkeypatch.setattr(beginning, "AT_ONCE", 3)
    read: list[str] = []
    get = scenario.store.get

    async def count(key: str, known: Version | None = None) -> Found | Unchanged | Missing:
        read.append(key)
        return await get(key, known)

    monkeypatch.setattr(scenario.store, "get", count)
    stats = await scenario.run()

    assert len([key for key in read if "/iceberg_pointers/" in key]) == 20
    assert stats.segments == 4  # of six tables at most
    assert len([record for record in await scenario.records() if record.entity is not None]) == 20


async def test_a_step_enters_a_bounded_number_of_records(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequencer, "MAX_RECORDS", 4)
    monkeypatch.setattr(sequencer, "AT_ONCE", 1)
    for number in range(5):
        await scenario.fixture.table(f"n{number}")
        await scenario.change(f"n{number}")
    begun = len(await segments(scenario))

    assert (await scenario.run()).is_end

    assert len(await segments(scenario)) - begun == 3
    assert len([each for each in await scenario.shown() if each.startswith("commit n")]) == 10


async def test_what_is_left_of_a_chain_is_forgotten_with_its_pointer(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_chain, "MAX_RECORDS", 2)
    monkeypatch.setattr(sequencer, "MAX_STEPS", 1)
    for _ in range(5):
        await scenario.change()
    assert not (await scenario.run()).is_end
    entity = (await scenario.records())[-1].entity
    assert entity is not None
    await scenario.store.delete(pointer_key(entity))

    assert (await scenario.run()).is_end


async def test_lost_cursors_of_deleted_segments_make_a_gap(scenario: FeedScenario) -> None:
    entity = (await scenario.records())[-1].entity
    assert entity is not None
    await scenario.fixture.table("u")
    for _ in range(3):
        await scenario.change("u")
        await scenario.run()
    await scenario.change()
    firsts = await segments(scenario)
    state = scenario.fixture.session().state
    await raise_feed_floor(state, firsts[-1])
    for first in firsts[:-1]:
        await scenario.store.delete(state.paths.feed_segment(first))
    await scenario.store.delete(state.paths.feed_cursors(shard_of(entity)))

    stats = await scenario.run(Sequencer())

    assert stats.gaps == 1
    assert [record.kind for record in await scenario.records() if record.entity == entity] == ["gap", "begin"]


@pytest.mark.parametrize("is_new", [False, True])
async def test_a_table_whose_pointer_is_collected_before_its_commits_enter_has_a_gap(
    scenario: FeedScenario, *, is_new: bool
) -> None:
    other = await scenario.fixture.table("u")
    if not is_new:
        await scenario.run()
    await scenario.change("u")
    await drop_table(scenario.fixture.session(), NS, "u", purge=False)
    await scenario.fixture.table("v")
    await scenario.store.delete(pointer_key(other.entity))

    stats = await scenario.run()

    assert (await scenario.shown())[-5 + (not is_new) :] == [
        *(["create-table"] if is_new else []),
        *("gap", "drop-table", "create-table", "commit v"),
    ]
    assert stats.gaps == 1
    assert (await scenario.run()).is_end


@pytest.mark.parametrize("others", [0, 2, 3, 4])
async def test_a_feed_that_is_set_back_beside_a_sequencer_goes_on_without_a_hole(
    scenario: FeedScenario, others: int
) -> None:
    """Other sequencers make so many segments before this one looks. The fourth begins with the number that it takes for
    the next one."""
    await scenario.change()
    await scenario.run()
    before = {key: await stored(scenario, key) for key in scenario.store.keys("")}
    for _ in range(3):
        await scenario.change()
        await scenario.run()
    for key in scenario.store.keys(""):
        await scenario.store.delete(key)
    for key, body in before.items():
        await scenario.store.put(key, body, ANY)
    scenario.fixture = scenario.fixture.another()
    for _ in range(others):
        await scenario.change()
        await scenario.run(Sequencer())

    await scenario.run()  # of a sequencer that knows the feed as it was
    for _ in range(3):
        await scenario.change()
        assert (await scenario.run()).is_end
    await scenario.run(Sequencer())

    records = await scenario.records()
    assert [record.number for record in records] == [*range(1, len(records) + 1)]
    assert [record.kind for record in records][-4 - others :] == ["commit"] * (4 + others)
    assert await found(scenario) == set()


async def test_operations_of_a_lost_commit_that_had_entered_in_part_are_a_gap(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture, state = scenario.fixture, scenario.fixture.session().state
    await asyncio.gather(*(create_namespace(fixture.session(), (f"n{number}",), {}) for number in range(5)))
    head = await state.head()
    assert head.id is not None
    assert len(objects(head.document, "operations")) > 1
    await scenario.fixture.table("later")
    create, left = append._create, len(objects(head.document, "operations"))

    async def die(session: Session, feed: FeedEnd, records: Sequence[FeedRecord], begun: bool) -> None:
        nonlocal left
        left -= records[0].details.get("commit") == head.id
        if not left:
            raise StoreUnavailable("dead")
        await create(session, feed, records, begun)

    with monkeypatch.context() as dying:
        dying.setattr(feed_planning, "MAX_RECORDS", 1)
        dying.setattr(append, "_create", die)
        with pytest.raises(StoreUnavailable):
            await scenario.run()
    await scenario.store.delete(state.paths.registry_commit(head.id))
    scenario.fixture = scenario.fixture.another()

    stats = await scenario.run(Sequencer())

    assert stats.gaps == 1
    assert [record.kind for record in await scenario.records() if record.entity is None].count("gap") == 1


async def test_receipts_and_segments_that_are_long_are_parsed_by_a_thread(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scenario.change()
    threads: set[str] = set()
    for name in ("parse", "committed"):
        monkeypatch.setattr(receipt, name, _noting(getattr(receipt, name), threads))
    monkeypatch.setattr(FeedSegment, "parse", _noting(FeedSegment.parse, threads))
    monkeypatch.setattr(worker_threads, "SMALL_BYTES", 0)

    await scenario.run(Sequencer())
    await scenario.records()

    assert threads
    assert all(name.startswith("arco-work") for name in threads)


async def test_what_is_left_of_all_chains_together_is_bounded(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        await scenario.fixture.table(f"n{number}")
        for _ in range(6):
            await scenario.change(f"n{number}")
    monkeypatch.setattr(commit_chain, "MAX_RECORDS", 2)
    monkeypatch.setattr(sequencer, "AT_ONCE", 1)
    monkeypatch.setattr(sequencer, "MAX_KEPT", 6)
    kept: list[int] = []
    forget = FeedEnd.forget_others

    def note(feed: FeedEnd, moved: Sequence[str]) -> None:
        kept.append(feed.kept)
        forget(feed, moved)

    monkeypatch.setattr(FeedEnd, "forget_others", note)

    assert (await scenario.run()).is_end

    assert len([each for each in await scenario.shown() if each.startswith("commit n")]) == 42
    assert 6 <= max(kept) < 12  # all chains have 30 more than enter in the first step


def _noting(work: Callable[..., object], threads: set[str]) -> Callable[..., object]:
    def noted(*arguments: object) -> object:
        threads.add(threading.current_thread().name)
        return work(*arguments)

    return noted
