"""A local store's clock is the machine's: what was written while it ran ahead delays no writer when it is set right."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from arco_catalog.iceberg.errors import CatalogError, CommitStateUnknown
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.state.age import CLOCK_TOLERANCE_MS, has_passed
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import DOWN, Rule, ScriptedFolder, put
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property

DAY_MS = 24 * 3_600_000


@pytest.fixture
def clock() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeRuntime) -> AsyncIterator[ScriptedFolder]:
    store = ScriptedFolder(tmp_path, now_ms=clock.now_ms)
    yield store
    await store.close()


@pytest.fixture
async def fixture(tmp_path: Path, store: ScriptedFolder, clock: FakeRuntime) -> CatalogFixture:
    fixture = CatalogFixture(store, clock, url=f"file://{tmp_path}")
    await fixture.namespace("db")
    await fixture.table("a")
    await fixture.table("b")
    return fixture


@pytest.mark.parametrize("later_ms", [0, DAY_MS // 2])
async def test_a_dead_transaction_that_was_written_in_the_future_is_past_its_lease(
    fixture: CatalogFixture, store: ScriptedFolder, clock: FakeRuntime, later_ms: int
) -> None:
    clock.ms += DAY_MS
    store.rules = [Rule(put("/transactions/", b'"status":"committed"'), fails=DOWN)]
    with pytest.raises(CatalogError):
        await commit_transaction(fixture.session(), [(NS, name, set_property("x", "1")) for name in "ab"])
    store.rules = []
    clock.ms += later_ms - DAY_MS
    began = clock.ms

    committed = await fixture.another().commit(set_property("y", "1"), "a")

    assert committed.metadata_location
    assert clock.ms - began < 1_000


async def test_a_marker_that_was_written_in_the_future_is_taken_over(
    fixture: CatalogFixture, store: ScriptedFolder, clock: FakeRuntime
) -> None:
    clock.ms += DAY_MS
    key = fixture.key(age_ms=DAY_MS)
    store.rules = [Rule(put("/iceberg_pointers/"), fails=DOWN)]
    with pytest.raises(CommitStateUnknown):
        await fixture.commit(set_property("x", "1"), "a", key=key)
    store.rules = []
    clock.ms -= DAY_MS

    assert (await fixture.another().commit(set_property("x", "1"), "a", key=key)).metadata_location


@pytest.mark.parametrize(
    ("age_ms", "passed"),
    [(29_999, False), (30_000, True), (0, False), (-CLOCK_TOLERANCE_MS, False), (-CLOCK_TOLERANCE_MS - 1, True)],
)
def test_a_little_ahead_is_what_clocks_of_one_store_may_differ_by(age_ms: int, passed: bool) -> None:
    assert has_passed(age_ms, 30_000) is passed
