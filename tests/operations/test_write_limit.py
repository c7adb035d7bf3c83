"""Swaps of HEAD in a store that takes one write of an object a second, as Google Cloud Storage does, in a registry with
proposals (docs/design/registry.md#proposals)."""

from dataclasses import replace

import pytest

from arco_catalog.operations.recorded_locations import change_locations
from arco_catalog.protocol.evidence import fence_registry
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.protocol.prepared_commit import SWAP_ATTEMPTS
from arco_catalog.state.index import Edits
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.registry import RegistryState
from storage_backends import StoreUnavailable
from storage_backends.backoff import ATTEMPTS, full_jitter
from tests.support.fake_runtime import FakeRuntime
from tests.support.registry_versions import raise_version
from tests.support.scripted_store import DOWN, Nth, Rule, ScriptedStore, lost, swap
from tools.support.catalog_fixture import CatalogFixture

HEAD, PROPOSALS = "core/manifest.json", "core/proposals/"
GOOGLE = "gs://bucket/"


async def catalog(url: str = GOOGLE, *, upgraded: bool = True) -> CatalogFixture:
    """A catalog whose HEAD has stood for a while."""
    fixture = CatalogFixture(ScriptedStore(), FakeRuntime(), url=url)
    await fixture.namespace("db")
    if upgraded:
        await raise_version(fixture.session().state)
    await fixture.runtime.sleep(60)
    store(fixture).calls.clear()
    return fixture


def store(fixture: CatalogFixture) -> ScriptedStore:
    assert isinstance(fixture.store, ScriptedStore)
    return fixture.store


def count(fixture: CatalogFixture, method: str, part: str) -> int:
    return sum(call.method == method and part in call.key for call in store(fixture).calls)


async def test_a_head_that_has_stood_is_swapped_at_once() -> None:
    fixture = await catalog()
    since_ms = fixture.runtime.boot_ms()
    await fixture.table("a")

    assert fixture.runtime.boot_ms() - since_ms < 500
    assert (count(fixture, "put", HEAD), count(fixture, "put", PROPOSALS)) == (1, 0)


async def test_a_process_lets_its_own_head_stand_and_swaps_it_once() -> None:
    fixture = await catalog()
    await fixture.table("a")
    since_ms = fixture.runtime.boot_ms()
    await fixture.table("b")

    assert 500 < fixture.runtime.boot_ms() - since_ms < 2_000
    assert (count(fixture, "put", HEAD), count(fixture, "put", PROPOSALS)) == (2, 0)


async def test_a_request_proposes_on_a_head_that_another_process_has_just_written_and_swaps_it_once() -> None:
    fixture = await catalog()
    await fixture.another().table("a")
    since_ms = fixture.runtime.boot_ms()
    await fixture.another().table("b")

    assert 500 < fixture.runtime.boot_ms() - since_ms < 2_000
    assert (count(fixture, "put", HEAD), count(fixture, "put", PROPOSALS)) == (2, 1)


@pytest.mark.parametrize(("url", "upgraded"), [("memory:///", True), (GOOGLE, False)])
async def test_other_stores_and_registries_without_proposals_wait_for_nothing(url: str, upgraded: bool) -> None:
    fixture = await catalog(url, upgraded=upgraded)
    since_ms = fixture.runtime.boot_ms()
    for name in ("a", "b", "c"):
        await fixture.another().table(name)

    assert fixture.runtime.boot_ms() - since_ms < 500


async def test_a_request_whose_swap_the_store_throttles_proposes() -> None:
    fixture = await catalog("memory:///")
    store(fixture).rules = [Rule(swap(HEAD), fails=DOWN, times=4)]
    await fixture.table("a")

    assert (count(fixture, "put", HEAD), count(fixture, "put", PROPOSALS)) == (5, 1)


async def test_a_lost_answer_followed_by_throttled_answers_is_not_unknown() -> None:
    """The write had applied: the sendings after it find that out once the store takes them."""
    fixture = await catalog("memory:///")
    throttled = [Rule(Nth(number, swap(HEAD)), fails=DOWN) for number in (2, 3, 4)]
    store(fixture).rules = [Rule(Nth(1, swap(HEAD)), answers=lost), *throttled]
    await fixture.table("a")

    assert (count(fixture, "put", HEAD), count(fixture, "put", PROPOSALS)) == (5, 0)


async def test_a_swap_that_is_sent_again_is_attempted_as_often_as_any_write(monkeypatch: pytest.MonkeyPatch) -> None:
    fixture = await catalog()
    attempts: list[int] = []

    async def note() -> None:
        attempts.append(len([*full_jitter(lambda: 0.5)]))

    store(fixture).rules = [Rule(swap(HEAD), first=note), Rule(swap(HEAD), answers=lost, times=1)]
    await fixture.table("a")

    assert attempts == [SWAP_ATTEMPTS, ATTEMPTS]


async def test_a_function_proposes_on_a_young_head_of_another_process() -> None:
    """A function has no other requests to share a commit with."""
    fixture = await catalog()
    await fixture.another().table("a")
    function = fixture.another()
    function.catalog = replace(function.catalog, group_committer=None)
    await function.table("b")

    assert (count(fixture, "put", HEAD), count(fixture, "put", PROPOSALS)) == (2, 1)


async def count_up(fixture: CatalogFixture) -> None:
    """A registry commit of the catalog itself."""

    def edit(head: RegistryState) -> Steps[Edits | None]:
        yield Needs(keys=["test\nkey"])
        return {"test\nkey": {"sequence": head.sequence}}

    await change_registry(fixture.session(), "count", {}, edit)


async def test_a_commit_of_the_catalog_itself_is_proposed_on_a_young_head_and_swapped_once() -> None:
    fixture = await catalog()
    await fixture.another().table("a")
    since_ms = fixture.runtime.boot_ms()
    await count_up(fixture.another())

    assert 500 < fixture.runtime.boot_ms() - since_ms < 2_000
    assert (count(fixture, "put", HEAD), count(fixture, "put", PROPOSALS)) == (2, 1)


async def test_a_change_of_settings_lets_a_young_head_stand() -> None:
    fixture = await catalog()
    await fixture.another().table("a")
    since_ms = fixture.runtime.boot_ms()
    await change_locations(fixture.another().session(), added=["gs://bucket/elsewhere"])

    assert 500 < fixture.runtime.boot_ms() - since_ms < 2_000
    assert (count(fixture, "put", HEAD), count(fixture, "put", PROPOSALS)) == (2, 0)


async def test_a_change_of_settings_goes_on_while_the_store_throttles_it() -> None:
    fixture = await catalog()
    store(fixture).rules = [Rule(swap(HEAD), fails=DOWN, times=5)]
    await change_locations(fixture.session(), added=["gs://bucket/elsewhere"])

    assert (await fixture.another().session().state.head()).allowed_locations == ("gs://bucket/elsewhere",)


async def test_a_change_of_settings_ends_at_the_deadline() -> None:
    fixture = await catalog()
    store(fixture).rules = [Rule(swap(HEAD), fails=DOWN)]
    with pytest.raises(StoreUnavailable):
        await change_locations(fixture.session(), added=["gs://bucket/elsewhere"])


async def test_a_fence_that_the_store_throttles_is_the_move_of_another_process() -> None:
    fixture = await catalog()
    before = await fixture.session().state.head()
    store(fixture).rules = [Rule(swap(HEAD), first=fixture.another().table, fails=DOWN, times=1)]
    head = await fence_registry(fixture.session())

    assert head.version != before.version
    assert head.version == (await fixture.another().session().state.head()).version
    assert count(fixture, "put", HEAD) == 2


async def test_a_fence_goes_on_while_the_store_throttles_it_and_head_stands() -> None:
    fixture = await catalog()
    before = await fixture.session().state.head()
    store(fixture).rules = [Rule(swap(HEAD), fails=DOWN, times=3)]
    head = await fence_registry(fixture.session())

    assert head.sequence == before.sequence + 1
    assert count(fixture, "put", HEAD) == 4


async def test_a_fence_ends_at_the_deadline() -> None:
    """It pauses for longer each time: the deadline of a collection is far."""
    fixture = await catalog()
    store(fixture).rules = [Rule(swap(HEAD), fails=DOWN)]
    with pytest.raises(StoreUnavailable):
        await fence_registry(fixture.session())

    assert count(fixture, "put", HEAD) < 40
