"""A process whose cached pointer is older than what the pointer remembers commits all the same, and is sure of it
(docs/design/commit.md#rule-6)."""

import pytest

from arco_catalog.iceberg.errors import CommitStateUnknown, Unavailable
from arco_catalog.operations.load import load_table
from arco_catalog.state import pointer as pointer_module
from arco_catalog.state.marker import Slot, WriteSet
from storage_backends import Outcome, PreconditionFailed
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import DOWN, Nth, Rule, ScriptedStore, get, lost, put, swap
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property

MOVES = 4
"""How many moves the pointers of these tests remember."""


@pytest.fixture
async def busy(monkeypatch: pytest.MonkeyPatch) -> CatalogFixture:
    """A process that serves a table."""
    monkeypatch.setattr(pointer_module, "RECENT_MOVES", MOVES)
    clock = FakeRuntime()
    fixture = CatalogFixture(ScriptedStore(clock.now_ms), clock)
    await fixture.namespace("db")
    await fixture.table("t")
    return fixture


async def idle_process(busy: CatalogFixture, idle_ms: int) -> CatalogFixture:
    """A process that committed to the table before it had more moves than the pointer remembers."""
    idle = busy.another()
    await idle.commit(set_property("first", "1"))
    for number in range(MOVES + 1):
        await busy.commit(set_property("n", str(number)))
    clock = busy.runtime
    assert isinstance(clock, FakeRuntime)
    clock.ms += idle_ms
    return idle


async def properties_of(fixture: CatalogFixture) -> bytes:
    return (await load_table(fixture.another().session(), NS, "t")).metadata


@pytest.mark.parametrize("idle_ms", [1_000, 60_000])
@pytest.mark.parametrize("keyed", [False, True])
async def test_a_commit_by_a_process_that_was_idle_is_made(busy: CatalogFixture, keyed: bool, idle_ms: int) -> None:
    idle = await idle_process(busy, idle_ms)
    await idle.commit(set_property("mine", "yes"), key=idle.key() if keyed else None)
    assert b'"mine"' in await properties_of(busy)


async def test_a_pointer_of_a_second_ago_is_read_before_the_swap_names_it(busy: CatalogFixture) -> None:
    idle, store = await idle_process(busy, 60_000), busy.store
    assert isinstance(store, ScriptedStore)
    refused: list[object] = []

    def note(outcome: Outcome) -> Outcome:
        refused.extend([outcome] if isinstance(outcome, PreconditionFailed) else [])
        return outcome

    store.rules = [Rule(swap("iceberg_pointers"), answers=note)]
    await idle.commit(set_property("mine", "yes"))
    assert not refused


async def test_a_retry_finds_a_commit_by_an_attempt_of_which_the_claim_is_old(busy: CatalogFixture) -> None:
    idle, key, body = await idle_process(busy, 60_000), busy.key(), set_property("mine", "yes")
    assert isinstance(busy.store, ScriptedStore)
    busy.store.rules = [Rule(put("/1.json"), fails=DOWN)]
    made = await idle.commit(body, key=key)
    busy.store.rules = []
    assert (await busy.another().commit(body, key=key)).metadata_location == made.metadata_location


async def test_an_earlier_attempt_with_lost_evidence_does_not_hide_a_later_one_that_committed(
    busy: CatalogFixture,
) -> None:
    key, body = busy.key(), set_property("mine", "yes")
    made = await busy.commit(body)
    entity, pointer = made.entity, await busy.session().state.pointer(made.entity)
    assert pointer is not None
    for number in range(MOVES - 2):
        await busy.commit(set_property("n", str(number)))
    marker = busy.session(body, key=key, path="/commit/t").marker()
    assert marker is not None
    old = WriteSet(pointers={entity: pointer.sequence - MOVES})
    assert await marker.put(Slot("died", old, marker.identity.to_json(), None))
    assert await marker.put(Slot(pointer.recent[0], WriteSet(pointers={entity: pointer.sequence}), {}, None))

    assert b'"mine"' in (await busy.another().commit(body, key=key)).metadata


async def test_without_a_key_a_commit_that_was_refused_throughout_is_unavailable_not_unknown(
    busy: CatalogFixture,
) -> None:
    store, writer, clock = busy.store, busy.another(), busy.runtime
    assert isinstance(store, ScriptedStore)
    assert isinstance(clock, FakeRuntime)

    async def move() -> None:
        await writer.commit(set_property("n", clock.ulid()))

    async def wait() -> None:
        clock.ms += 30_000

    third = Nth(3, put(".metadata.json"))
    store.rules = [Rule(swap("iceberg_pointers"), first=move), Rule(third, first=wait)]
    with pytest.raises(Unavailable):
        await busy.commit(set_property("mine", "yes"))
    store.rules = []
    assert b'"mine"' not in await properties_of(busy)


async def test_without_a_key_a_refusal_that_may_be_an_echo_leaves_the_outcome_open(busy: CatalogFixture) -> None:
    store = busy.store
    assert isinstance(store, ScriptedStore)

    async def break_reads() -> None:
        store.rules.append(Rule(get("iceberg_pointers"), fails=DOWN))

    await busy.commit(set_property("first", "1"))
    store.rules = [Rule(swap("iceberg_pointers"), then=break_reads, answers=lost, times=1)]
    with pytest.raises(CommitStateUnknown):
        await busy.commit(set_property("mine", "yes"))
    store.rules = []
    assert b'"mine"' in await properties_of(busy)
