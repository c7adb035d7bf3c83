"""Swaps of HEAD in a store that takes one write of an object a second, as Google Cloud Storage does, in a registry with
proposals (docs/design/registry.md#proposals)."""

import pytest

from tests.support.fake_runtime import FakeRuntime
from tests.support.registry_versions import raise_version
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, swap
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
