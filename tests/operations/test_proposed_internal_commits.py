"""Registry commits of the catalog itself that lose HEAD to another process are proposed, and any process may commit
them (docs/design/registry.md#proposals)."""

from dataclasses import replace
from functools import partial

import pytest

from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.history import history
from arco_catalog.operations.load import load_table
from arco_catalog.operations.recorded_locations import change_locations
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.evidence import cancel_in_registry, fence_registry
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.state import registry
from arco_catalog.state.entries import find_relation
from arco_catalog.state.index import Edits
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.tombstone import DROPPED, Tombstone
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import Applied, PreconditionFailed, StoreUnavailable
from tests.operations.test_proposed_commits import (
    BELL,
    HEAD,
    PROPOSALS,
    head_of,
    lists_proposals,
    lose_once,
    operations,
    store,
    stored,
)
from tests.simulation.clients import build_from_nothing
from tests.support.registry_versions import raise_version
from tests.support.scripted_store import DOWN, Nth, Rule, ScriptedStore, put, swap
from tools.support.catalog_fixture import NS, CatalogFixture

DEAD = "01DEAD"
KEY = "test\nkey"
NEW_PROPOSAL = put(PROPOSALS)


@pytest.fixture
async def fixture() -> CatalogFixture:
    """A catalog whose registry has the second version, as a process serves it that has cached HEAD."""
    made = CatalogFixture(ScriptedStore())
    await made.namespace("db")
    await raise_version(made.session().state)
    await made.table("first")
    return made


async def count_up(fixture: CatalogFixture) -> None:
    """A registry commit of the catalog itself: an entry has one more each time."""

    def edit(head: RegistryState) -> Steps[Edits | None]:
        yield Needs(keys=[KEY])
        found = head.index.get(KEY) or {"count": 0}
        return {KEY: {"count": int(str(found["count"])) + 1}}

    await change_registry(fixture.session(), "count", {}, edit)


async def counted(fixture: CatalogFixture) -> object:
    return ((await head_of(fixture)).index.get(KEY) or {}).get("count")


async def cancel(fixture: CatalogFixture, *attempts: str) -> RegistryState:
    since = (await head_of(fixture)).sequence
    return await cancel_in_registry(fixture.session(), {each: WriteSet(registry=since) for each in attempts})


async def commit_of(fixture: CatalogFixture, *attempts: str) -> None:
    """The attempts commit one after the other, by their own processes, which have not seen the bell."""
    for attempt in attempts:
        state = fixture.another().session().state
        head = await state.head()
        operation = Operation(attempt, "create-namespace", {}, None)
        commit = head.successor(commit=f"of {attempt}", at_ms=1, edits={}, operations=[operation])
        await state.create(state.paths.registry_commit(f"of {attempt}"), commit.body)
        assert isinstance(await state.move_head(commit, head.version), Applied)


async def proposals_put(fixture: CatalogFixture) -> int:
    return sum(call.method == "put" and PROPOSALS in call.key for call in store(fixture).calls)


async def test_one_that_lost_commits_through_its_proposal(fixture: CatalogFixture) -> None:
    store(fixture).rules = [lose_once(fixture)]
    await count_up(fixture)

    assert await counted(fixture) == 1
    assert [kind for kind, _ in await operations(fixture, own=True)][:2] == ["count", "create-table"]
    assert (await proposals_put(fixture), await stored(fixture)) == (1, [])


async def test_one_that_lost_in_a_registry_of_the_first_version_is_sent_again() -> None:
    fixture = CatalogFixture(ScriptedStore())
    await fixture.namespace("db")
    store(fixture).rules = [lose_once(fixture)]
    await count_up(fixture)

    assert await counted(fixture) == 1
    assert not [call for call in store(fixture).calls if PROPOSALS in call.key or BELL in call.key]


async def test_one_that_sees_the_bell_swaps_nothing_before_those_that_wait(fixture: CatalogFixture) -> None:
    """The proposal of a process that died is in the same commit."""
    store(fixture).rules = [lose_once(fixture), Rule(lists_proposals, fails=DOWN)]
    with pytest.raises(StoreUnavailable):
        await count_up(fixture.another())
    store(fixture).rules = []
    store(fixture).calls.clear()
    before = await head_of(fixture)

    await cancel(fixture, DEAD)

    head = await head_of(fixture)
    assert head.sequence == before.sequence + 1
    assert {kind for kind, _ in [*await operations(fixture, own=True)][:2]} == {"count", "cancel"}
    assert [call.method for call in store(fixture).calls if call.key.endswith(HEAD) and call.method == "put"] == ["put"]


async def test_one_whose_reads_change_is_cancelled_and_planned_again(fixture: CatalogFixture) -> None:
    store(fixture).rules = [lose_once(fixture), Rule(NEW_PROPOSAL, first=partial(count_up, fixture.another()), times=1)]
    await count_up(fixture)

    assert await counted(fixture) == 2
    assert [kind for kind, _ in await operations(fixture, own=True)].count("cancel") == 1
    assert await stored(fixture) == []


async def test_one_whose_refusal_was_an_echo_is_not_made_twice(fixture: CatalogFixture) -> None:
    store(fixture).rules = [Rule(swap(HEAD), answers=lambda _: PreconditionFailed(None, 0), times=1)]
    await count_up(fixture)

    assert await counted(fixture) == 1
    assert await proposals_put(fixture) == 0


async def test_where_the_store_limits_writes_of_head_it_is_proposed(fixture: CatalogFixture) -> None:
    store(fixture).rules = [Rule(swap(HEAD), fails=StoreUnavailable("429"), times=1)]
    await count_up(fixture)

    assert await counted(fixture) == 1
    assert await proposals_put(fixture) == 1


async def test_settings_in_head_are_swapped_since_no_proposal_contains_them(fixture: CatalogFixture) -> None:
    store(fixture).rules = [lose_once(fixture)]
    await change_locations(fixture.session(), added=["memory:///elsewhere"])

    assert (await head_of(fixture)).allowed_locations == ("memory:///elsewhere",)
    assert await proposals_put(fixture) == 0


async def test_a_transaction_that_lost_places_and_settles_its_intents_through_proposals(
    fixture: CatalogFixture,
) -> None:
    store(fixture).rules = [lose_once(fixture), Rule(put('"committed"', b'"committed"'), first=fixture.another().table)]
    changes = [(NS, name, build_from_nothing("tester")) for name in ("a", "b")]
    await commit_transaction(fixture.session({}), changes)

    assert await proposals_put(fixture) >= 1
    head = await head_of(fixture)
    for name in "ab":
        found = find_relation(head.index, NS, name)
        assert found is not None
        assert found.transaction is None
        await load_table(fixture.another().session(), NS, name)
    assert await stored(fixture) == []


# Cancellations.


async def test_a_cancellation_that_lost_commits_through_its_proposal(fixture: CatalogFixture) -> None:
    store(fixture).rules = [lose_once(fixture)]
    await cancel(fixture, DEAD, "01OTHER")

    head = await head_of(fixture)
    assert head.is_cancelled(DEAD)
    assert head.is_cancelled("01OTHER")
    assert (await proposals_put(fixture), await stored(fixture)) == (1, [])


async def test_a_cancellation_whose_attempt_commits_first_cancels_nothing(fixture: CatalogFixture) -> None:
    """After the search, so that the leader finds it."""
    store(fixture).rules = [lose_once(fixture), Rule(NEW_PROPOSAL, first=partial(commit_of, fixture, DEAD), times=1)]
    head = await cancel(fixture, DEAD, "01OTHER")

    assert head.commit_of(DEAD) is not None
    assert not head.is_cancelled(DEAD)
    assert not (await head_of(fixture)).is_cancelled("01OTHER")
    assert await stored(fixture) == []


async def test_a_cancellation_is_not_proposed_again_past_a_commit_of_its_attempt(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HEAD has forgotten both the base and the commit: only a walk shows that."""
    monkeypatch.setattr(registry, "RECENT_COMMITS", 2)

    others = partial(commit_of, fixture, DEAD, "01A", "01B", "01C")
    store(fixture).rules = [lose_once(fixture), Rule(Nth(2, swap(HEAD)), first=others)]
    await cancel(fixture, DEAD)

    cancelled = [each.get("cancels") async for each in history(fixture.another().session(), own=True)]
    assert [DEAD] not in cancelled
    assert await stored(fixture) == []


# Fences.


async def test_a_fence_that_loses_head_is_a_fence_all_the_same(fixture: CatalogFixture) -> None:
    store(fixture).rules = [lose_once(fixture)]
    head = await fence_registry(fixture.session())

    assert head.version == (await head_of(fixture)).version
    assert "fence" not in [kind for kind, _ in await operations(fixture, own=True)]
    assert await proposals_put(fixture) == 0


# Purges.


async def test_a_purge_that_failed_for_good_is_not_begun_by_its_proposal(fixture: CatalogFixture) -> None:
    """Its last attempt lost the store while another process could still commit the beginning."""
    purging = replace(fixture, settings=replace(fixture.settings, purge=PurgeSettings(undrop_window_ms=0)))
    await drop_table(purging.session(), NS, "first", purge=True)
    store(fixture).rules = [lose_once(fixture), Rule(lists_proposals, fails=DOWN, times=1)]
    impatient = TaskPolicies.parse({"delegation.retry.TABLE_PURGE.max-attempts": "1"})
    await task_worker(purging.another().catalog, impatient).run_due(lambda: False)
    assert len(await stored(fixture)) == 1

    await fixture.another().table("t")

    found = [Tombstone(entry) for _, entry in (await head_of(fixture)).index.scan("tombstone\n")]
    assert [(each.name, each.state) for each in found] == [("first", DROPPED)]
    await undrop(fixture.another().session(), NS, "first")
