"""An outcome is unknown only if it is: caches of any age, lost compare-and-swaps and deadlines leave none open
(docs/design/commit.md#rule-7, docs/design/commit.md#unknown-outcomes)."""

import asyncio

import pytest

from arco_catalog.iceberg.errors import CommitStateUnknown, Forbidden, KeyInProgress, Unavailable
from arco_catalog.operations.load import load_table
from arco_catalog.operations.namespaces import create_namespace
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.state import pointer as pointer_module
from arco_catalog.state import registry as registry_module
from arco_catalog.state.access import CLAIM_AGE_MS
from storage_backends import StoreDenied
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import DOWN, Nth, Rule, ScriptedStore, get, lost, put, swap
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property

MOVES = 4
"""How many moves pointers and registries of these tests remember."""
POINTERS = "iceberg_pointers"
HEAD = "core/manifest"
DENIED = StoreDenied("no permission")


@pytest.fixture
def clock() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
def store(clock: FakeRuntime) -> ScriptedStore:
    return ScriptedStore(clock.now_ms)


@pytest.fixture
async def busy(monkeypatch: pytest.MonkeyPatch, clock: FakeRuntime, store: ScriptedStore) -> CatalogFixture:
    """A process that serves a table."""
    monkeypatch.setattr(pointer_module, "RECENT_MOVES", MOVES)
    monkeypatch.setattr(registry_module, "RECENT_COMMITS", MOVES)
    fixture = CatalogFixture(store, clock)
    await fixture.namespace("db")
    await fixture.table("t")
    return fixture


async def die() -> None:
    raise asyncio.CancelledError


async def properties_of(fixture: CatalogFixture) -> bytes:
    return (await load_table(fixture.another().session(), NS, "t")).metadata


async def forget_history(fixture: CatalogFixture, store: ScriptedStore) -> None:
    """Makes registry commits, of which a collection leaves the newest alone."""
    for number in range(2 * MOVES):
        await fixture.namespace(f"n{number}")
    for key in store.keys("wh/_catalog/core/commits/")[:-1]:
        await store.delete(key)


async def test_a_process_that_dies_behind_a_claim_on_an_old_pointer_leaves_its_key_usable(
    busy: CatalogFixture, clock: FakeRuntime, store: ScriptedStore
) -> None:
    idle, key, body = busy.another(), busy.key(), set_property("mine", "yes")
    await idle.commit(set_property("first", "1"))
    for number in range(MOVES + 1):
        await busy.commit(set_property("n", str(number)))
    clock.ms += CLAIM_AGE_MS
    store.rules = [Rule(swap(POINTERS), first=die, times=1)]
    with pytest.raises(asyncio.CancelledError):
        await idle.commit(body, key=key)
    clock.ms += busy.settings.in_progress_ms

    assert b'"mine"' in (await busy.another().commit(body, key=key)).metadata


async def test_behind_a_younger_claim_the_outcome_stays_open_for_that_key_alone(
    busy: CatalogFixture, clock: FakeRuntime, store: ScriptedStore
) -> None:
    """The limit that decision 73 accepts: more moves within the age of a claim than a pointer remembers."""
    idle, key, body = busy.another(), busy.key(), set_property("mine", "yes")
    await idle.commit(set_property("first", "1"))
    for number in range(2 * MOVES):
        await busy.commit(set_property("n", str(number)))
    clock.ms += CLAIM_AGE_MS // 2
    store.rules = [Rule(swap(POINTERS), first=die, times=1)]
    with pytest.raises(asyncio.CancelledError):
        await idle.commit(body, key=key)
    clock.ms += busy.settings.in_progress_ms

    for _ in range(2):
        with pytest.raises(CommitStateUnknown, match="too many later changes have removed the evidence"):
            await busy.another().commit(body, key=key)
        clock.ms += busy.settings.in_progress_ms
    assert b'"mine"' in (await busy.another().commit(body, key=busy.key())).metadata


async def test_a_process_that_dies_behind_a_claim_on_an_old_head_leaves_its_key_usable(
    busy: CatalogFixture, clock: FakeRuntime, store: ScriptedStore
) -> None:
    idle, key = busy.another(), busy.key()
    await idle.table("first")
    await forget_history(busy, store)
    clock.ms += CLAIM_AGE_MS
    store.rules = [Rule(swap(HEAD), first=die, times=1)]
    with pytest.raises(asyncio.CancelledError):
        await idle.table("mine", key=key)
    clock.ms += busy.settings.in_progress_ms

    await busy.another().table("mine", key=key)


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_crowd_at_a_process_that_was_idle_while_history_was_collected_is_served(
    busy: CatalogFixture, clock: FakeRuntime, store: ScriptedStore, keyed: bool
) -> None:
    """Requests that share a registry commit search evidence from the number of the HEAD that each was planned on."""
    idle = busy.another()
    await idle.table("first")
    await forget_history(busy, store)
    clock.ms += CLAIM_AGE_MS

    await asyncio.gather(*(idle.table(f"t{number}", key=busy.key() if keyed else None) for number in range(5)))


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_deadline_that_passes_between_a_refusal_and_the_next_try_leaves_nothing_open(
    busy: CatalogFixture, clock: FakeRuntime, store: ScriptedStore, keyed: bool
) -> None:
    """The pause after the refusal is longer than the time that is left."""
    others, key = busy.another(), busy.key() if keyed else None

    async def move_late() -> None:
        store.rules = []
        await others.commit(set_property("n", clock.ulid()))
        clock.ms += busy.settings.request_ms - 20

    store.rules = [Rule(swap(POINTERS), first=move_late)]
    with pytest.raises(KeyInProgress if keyed else Unavailable):
        await busy.commit(set_property("mine", "yes"), key=key)
    store.rules = []
    assert b'"mine"' not in await properties_of(busy)
    clock.ms += busy.settings.in_progress_ms
    assert b'"mine"' in (await busy.another().commit(set_property("mine", "yes"), key=key)).metadata


async def test_no_compare_and_swap_is_sent_without_the_time_to_learn_its_outcome(
    busy: CatalogFixture, clock: FakeRuntime, store: ScriptedStore
) -> None:
    async def wait() -> None:
        clock.ms += busy.settings.request_ms - 500

    store.rules = [Rule(put(".metadata.json"), first=wait)]
    with pytest.raises(Unavailable):
        await busy.commit(set_property("mine", "yes"))
    store.rules = []
    assert b'"mine"' not in await properties_of(busy)


async def test_evidence_is_searched_before_a_pause_in_which_the_pointer_forgets(
    busy: CatalogFixture, clock: FakeRuntime, store: ScriptedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each long pause is long enough for more moves than the pointer remembers."""
    others, sleep, lost_swaps = busy.another(), clock.sleep, 4

    async def busy_sleep(seconds: float) -> None:
        await sleep(seconds)
        if seconds > 0.25:
            rules, store.rules = store.rules, []
            for number in range(MOVES + 1):
                await others.commit(set_property("n", str(number)))
            store.rules = rules

    async def move() -> None:
        rules, store.rules = store.rules, []
        await others.commit(set_property("n", clock.ulid()))
        store.rules = rules

    monkeypatch.setattr(clock, "sleep", busy_sleep)
    monkeypatch.setattr(clock, "random", lambda: 0.99)
    store.rules = [Rule(swap(POINTERS), first=move, times=lost_swaps)]
    await busy.commit(set_property("mine", "yes"))
    assert b'"mine"' in await properties_of(busy)


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_denial_behind_a_compare_and_swap_that_was_plainly_lost_is_a_definite_no(
    busy: CatalogFixture, clock: FakeRuntime, store: ScriptedStore, keyed: bool
) -> None:
    others = busy.another()

    async def move() -> None:
        rules, store.rules = store.rules, []
        await others.commit(set_property("n", clock.ulid()))
        store.rules = rules

    store.rules = [Rule(swap(POINTERS), first=move, times=1), Rule(Nth(2, put(".metadata.json")), fails=DENIED)]
    with pytest.raises(Forbidden):
        await busy.commit(set_property("mine", "yes"), key=busy.key() if keyed else None)
    store.rules = []
    assert b'"mine"' not in await properties_of(busy)


async def test_a_store_that_fails_behind_the_claim_has_changed_nothing(
    busy: CatalogFixture, clock: FakeRuntime, store: ScriptedStore
) -> None:
    key, body = busy.key(), set_property("mine", "yes")
    store.rules = [Rule(put(".metadata.json"), first=lambda: asyncio.sleep(0), fails=DOWN)]
    with pytest.raises(KeyInProgress, match="down"):
        await busy.commit(body, key=key)
    store.rules = []
    clock.ms += busy.settings.in_progress_ms
    await busy.another().commit(body, key=key)


@pytest.mark.parametrize("part", ["iceberg_idempotency", POINTERS])
async def test_a_sending_whose_time_ends_while_another_one_is_under_way_is_in_progress(
    busy: CatalogFixture, clock: FakeRuntime, store: ScriptedStore, part: str
) -> None:
    """It has no attempt of its own. While the store fails before the time is over, the outcome stays unknown."""
    key, body = busy.key(), set_property("mine", "yes")
    store.rules = [Rule(swap(POINTERS), first=die, times=1)]
    with pytest.raises(asyncio.CancelledError):
        await busy.commit(body, key=key)

    async def wait() -> None:
        clock.ms += busy.settings.request_ms

    store.rules = [Rule(get(part), fails=DOWN)]
    with pytest.raises(CommitStateUnknown):
        await busy.another().commit(body, key=key)
    store.rules = [Rule(get(part), first=wait, fails=DOWN)]
    with pytest.raises(KeyInProgress):
        await busy.another().commit(body, key=key)
    store.rules = []
    clock.ms += busy.settings.in_progress_ms
    assert b'"mine"' in (await busy.another().commit(body, key=key)).metadata


async def test_a_namespace_by_an_idle_process_costs_as_many_calls_as_by_a_busy_one(
    busy: CatalogFixture, clock: FakeRuntime, store: ScriptedStore
) -> None:
    async def calls(name: str) -> int:
        before = len(store.calls)
        await create_namespace(busy.session(), (name,), {})
        return len(store.calls) - before

    warm = await calls("warm")
    clock.ms += CLAIM_AGE_MS
    assert await calls("idle") == warm


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_transaction_whose_intents_the_store_does_not_acknowledge_has_changed_nothing(
    busy: CatalogFixture, store: ScriptedStore, keyed: bool
) -> None:
    """Only its own coordinator commits it, and has not."""
    await busy.table("u")
    changes = [(NS, name, set_property("mine", "yes")) for name in ("t", "u")]
    session = busy.session({}, key=busy.key() if keyed else None, path="/transactions")
    store.rules = [Rule(swap(POINTERS), answers=lost)]
    with pytest.raises(KeyInProgress if keyed else Unavailable):
        await commit_transaction(session, changes)
    store.rules = []
    assert b'"mine"' not in await properties_of(busy)
