"""A request that loses HEAD to another process proposes its change, and any process may commit it
(docs/design/registry.md#proposals)."""

import asyncio
from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.errors import AlreadyExists, CommitStateUnknown
from arco_catalog.operations.history import history
from arco_catalog.operations.load import load_table
from arco_catalog.operations.namespaces import update_properties
from arco_catalog.protocol.proposed_commit import MIN_PATIENCE_MS, ProposedCommit
from arco_catalog.state import registry
from arco_catalog.state.access import SegmentGone
from arco_catalog.state.registry import RegistryState
from storage_backends import ABSENT, Applied
from tests.support.fake_runtime import FakeRuntime
from tests.support.registry_versions import raise_version
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, get, put, swap
from tools.support.catalog_fixture import NS, CatalogFixture

HEAD, PROPOSALS, BELL = "core/manifest.json", "core/proposals/", "core/bell.json"
NEXT_SLOT = get("/1.json")
"""A look for the next slot of a key: after the HEAD on which the change is proposed was read, and before the bell
rings."""


@pytest.fixture
async def fixture() -> CatalogFixture:
    """A catalog whose registry has the second version, as a process serves it that has cached HEAD."""
    made = CatalogFixture(ScriptedStore())
    await made.namespace("db")
    await raise_version(made.session().state)
    await made.table("first")
    return made


def store(fixture: CatalogFixture) -> ScriptedStore:
    assert isinstance(fixture.store, ScriptedStore)
    return fixture.store


def lose_once(fixture: CatalogFixture, *, name: str = "faster") -> Rule:
    """A rule by which another process creates a table just before the next swap of HEAD."""
    return Rule(swap(HEAD), first=lambda: fixture.another().table(name), times=1)


async def head_of(fixture: CatalogFixture) -> RegistryState:
    return await fixture.another().session().state.head()


async def operations(fixture: CatalogFixture, *, own: bool = False) -> Sequence[tuple[object, object]]:
    """The kinds and names of the operations in the history, the newest first."""
    return [(each["kind"], each.get("name")) async for each in history(fixture.another().session(), own=own)]


async def stored(fixture: CatalogFixture) -> Sequence[str]:
    """The keys of the stored proposals."""
    return [entry.key for entry in (await fixture.store.list(f"wh/_catalog/{PROPOSALS}")).entries]


async def test_one_that_lost_commits_through_its_proposal(fixture: CatalogFixture) -> None:
    store(fixture).rules = [lose_once(fixture)]
    made = await fixture.table("t", key=fixture.key())

    assert (await load_table(fixture.another().session(), NS, "t")).entity == made.entity
    assert [name for kind, name in await operations(fixture) if kind == "create-table"] == ["t", "faster", "first"]
    assert await stored(fixture) == []


async def test_a_registry_of_the_first_version_has_no_proposals_and_no_bell() -> None:
    fixture = CatalogFixture(ScriptedStore())
    await fixture.namespace("db")
    store(fixture).rules = [lose_once(fixture)]
    await fixture.table("t")

    assert not [call for call in store(fixture).calls if PROPOSALS in call.key or BELL in call.key]


async def test_a_change_that_loses_nothing_costs_one_look_at_the_bell(fixture: CatalogFixture) -> None:
    store(fixture).calls.clear()
    await fixture.table("t")

    calls = [(call.method, call.key.removeprefix("wh/_catalog/")) for call in store(fixture).calls]
    assert [method for method, key in calls if key == BELL] == ["get"]
    assert not [key for _, key in calls if PROPOSALS in key]


async def test_a_request_that_sees_the_bell_swaps_nothing_and_proposes(fixture: CatalogFixture) -> None:
    """One process has proposed, and does not lead: another one commits the proposals of both."""
    proposed, go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        proposed.set()
        await go_on.wait()

    waiting = fixture.another()
    store(fixture).rules = [lose_once(fixture), Rule(lists_proposals, first=wait, times=1)]
    async with asyncio.TaskGroup() as group:
        slow = group.create_task(waiting.table("slow"))
        await proposed.wait()
        before = await head_of(fixture)
        await fixture.table("t")
        head = await head_of(fixture)
        assert not slow.done()
        go_on.set()

    assert head.sequence == before.sequence + 1
    assert {name for _, name in [*await operations(fixture)][:2]} == {"slow", "t"}
    assert (await slow).entity == (await load_table(fixture.another().session(), NS, "slow")).entity
    assert await stored(fixture) == []


def lists_proposals(call: object) -> bool:
    return getattr(call, "method", "") == "list" and PROPOSALS in getattr(call, "key", "")


async def test_a_name_that_another_took_is_refused_after_a_cancellation(fixture: CatalogFixture) -> None:
    """The proposal holds on the HEAD that its process read, and no more when it is judged."""
    store(fixture).rules = [lose_once(fixture), Rule(NEXT_SLOT, first=lambda: fixture.another().table("t"), times=1)]
    with pytest.raises(AlreadyExists):
        await fixture.table("t", key=fixture.key())

    assert [name for kind, name in await operations(fixture) if kind == "create-table"] == ["t", "faster", "first"]
    assert [kind for kind, _ in await operations(fixture, own=True)].count("cancel") == 1
    assert await stored(fixture) == []


async def test_a_change_of_what_the_plan_read_costs_another_attempt(fixture: CatalogFixture) -> None:
    async def change() -> None:
        await update_properties(fixture.another().session(), NS, [], {"a": "b"})

    store(fixture).rules = [lose_once(fixture), Rule(NEXT_SLOT, first=change, times=1)]
    made = await fixture.table("t", key=fixture.key())

    assert (await load_table(fixture.another().session(), NS, "t")).entity == made.entity
    assert [kind for kind, _ in await operations(fixture, own=True)].count("cancel") == 1


async def test_the_proposal_of_a_process_that_died_is_committed_by_the_next(fixture: CatalogFixture) -> None:
    store(fixture).rules = [lose_once(fixture), Rule(lists_proposals, fails=DOWN)]
    with pytest.raises(CommitStateUnknown):
        await fixture.another().table("dead")
    store(fixture).rules = []
    assert len(await stored(fixture)) == 1

    await fixture.table("t")

    assert {name for _, name in [*await operations(fixture)][:2]} == {"dead", "t"}


async def test_damaged_hints_and_proposals_stop_no_other_change(fixture: CatalogFixture) -> None:
    recent = fixture.runtime.ulid()
    for key in (BELL, f"{PROPOSALS}{recent}-1.json"):
        await store(fixture).put(f"wh/_catalog/{key}", b"damaged", ABSENT)

    await fixture.another().table("t")
    store(fixture).rules = [lose_once(fixture)]
    await fixture.another().table("u")

    assert (await head_of(fixture)).bell is not None


async def test_a_damaged_proposal_is_read_once_and_no_longer_waited_for() -> None:
    """It has a smaller id, and its process may be dead. Others move HEAD meanwhile, so that the request leads again."""
    runtime = FakeRuntime()
    fixture = CatalogFixture(ScriptedStore(runtime.now_ms), runtime)
    await fixture.namespace("db")
    await raise_version(fixture.session().state)
    damaged = f"wh/_catalog/{PROPOSALS}{fixture.runtime.ulid()}-1.json"
    await store(fixture).put(damaged, b"damaged", ABSENT)
    led_ms: list[int] = []

    async def others_move() -> None:
        led_ms.append(fixture.runtime.boot_ms())
        if len(led_ms) < 5:
            await move_head(fixture)

    store(fixture).rules = [Rule(swap(HEAD), first=others_move)]
    await fixture.another().table("t")

    assert [call.method for call in store(fixture).calls if call.key == damaged] == ["put", "get"]
    assert led_ms[1] - led_ms[0] >= MIN_PATIENCE_MS > led_ms[-1] - led_ms[1]


async def move_head(fixture: CatalogFixture) -> None:
    """Another process commits, without a look at the bell."""
    state = fixture.another().session().state
    head = await state.head()
    commit = fixture.runtime.ulid()
    moved = head.successor(commit=commit, at_ms=head.at_ms, edits={}, operations=[])
    await state.create(state.paths.registry_commit(commit), moved.commit_body)
    assert isinstance(await state.move_head(moved, head.version), Applied)


async def test_one_that_cannot_read_the_index_begins_no_other_attempt(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may still commit its proposal: then a second attempt would set the property again, over a later change."""

    async def lead(self: ProposedCommit, listed: object) -> bool:
        raise SegmentGone("a segment is missing")

    store(fixture).rules = [lose_once(fixture)]
    monkeypatch.setattr(ProposedCommit, "_lead", lead)
    with pytest.raises(CommitStateUnknown):
        await update_properties(fixture.session(), NS, [], {"a": "1"})

    assert [kind for kind, _ in await operations(fixture)].count("update-namespace") == 0
    assert len(await stored(fixture)) == 1


async def test_a_proposal_is_stored_again_when_head_forgets_its_base(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 2)
    others = 0

    async def others_move() -> None:
        nonlocal others
        if others < 3:
            others += 1
            await fixture.another().namespace(f"n{others}")

    store(fixture).rules = [lose_once(fixture), Rule(swap(HEAD), first=others_move)]
    await fixture.another().table("t")

    stored_again = {call.key for call in store(fixture).calls if call.method == "put" and PROPOSALS in call.key}
    assert len(stored_again) > 1
    assert await stored(fixture) == []


async def test_a_proposal_that_is_rung_for_in_vain_leads_by_itself(fixture: CatalogFixture) -> None:
    store(fixture).rules = [lose_once(fixture), Rule(put(BELL), made=False)]
    await fixture.another().table("t")

    assert (await head_of(fixture)).bell is None
