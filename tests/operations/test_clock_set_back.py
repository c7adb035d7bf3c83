"""A local store's clock is the machine's: what was written while it ran ahead holds nobody up when it is set right."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from arco_catalog.iceberg.errors import CatalogError, CommitStateUnknown
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.state.age import CLOCK_TOLERANCE_MS, has_passed
from storage_backends import Outcome, StoreUnavailable, When
from storage_backends.local.store import LocalStore
from tests.support.catalog_fixture import NS, CatalogFixture, set_property
from tests.support.fake_runtime import FakeRuntime

DAY_MS = 24 * 3_600_000


class DyingStore(LocalStore):
    """Fails at each write to a key that holds `fails_at` of a body that holds `body_with`."""

    fails_at: str | None = None
    body_with = b""

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        if self.fails_at is not None and self.fails_at in key and self.body_with in body:
            raise StoreUnavailable("gone")
        return await super().put(key, body, when)


@pytest.fixture
def clock() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeRuntime) -> AsyncIterator[DyingStore]:
    store = DyingStore(tmp_path, now_ms=clock.now_ms)
    yield store
    await store.close()


@pytest.fixture
async def fixture(tmp_path: Path, store: DyingStore, clock: FakeRuntime) -> CatalogFixture:
    fixture = CatalogFixture(store, clock, url=f"file://{tmp_path}")
    await fixture.namespace("db")
    await fixture.table("a")
    await fixture.table("b")
    return fixture


@pytest.mark.parametrize("later_ms", [0, DAY_MS // 2])
async def test_a_dead_transaction_that_was_written_in_the_future_is_past_its_lease(
    fixture: CatalogFixture, store: DyingStore, clock: FakeRuntime, later_ms: int
) -> None:
    clock.ms += DAY_MS
    store.fails_at, store.body_with = "/transactions/", b'"status":"committed"'
    with pytest.raises(CatalogError):
        await commit_transaction(fixture.session(), [(NS, name, set_property("x", "1")) for name in "ab"])
    store.fails_at = None
    clock.ms += later_ms - DAY_MS
    began = clock.ms

    committed = await fixture.another().commit(set_property("y", "1"), "a")

    assert committed.metadata_location
    assert clock.ms - began < 1_000


async def test_a_marker_that_was_written_in_the_future_is_taken_over(
    fixture: CatalogFixture, store: DyingStore, clock: FakeRuntime
) -> None:
    clock.ms += DAY_MS
    key = fixture.key(age_ms=DAY_MS)
    store.fails_at = "/iceberg_pointers/"
    with pytest.raises(CommitStateUnknown):
        await fixture.commit(set_property("x", "1"), "a", key=key)
    store.fails_at = None
    clock.ms -= DAY_MS

    assert (await fixture.another().commit(set_property("x", "1"), "a", key=key)).metadata_location


@pytest.mark.parametrize(
    ("age_ms", "passed"),
    [(29_999, False), (30_000, True), (0, False), (-CLOCK_TOLERANCE_MS, False), (-CLOCK_TOLERANCE_MS - 1, True)],
)
def test_a_little_ahead_is_what_clocks_of_one_store_may_differ_by(age_ms: int, passed: bool) -> None:
    assert has_passed(age_ms, 30_000) is passed
