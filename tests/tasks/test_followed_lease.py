"""A process that works for the holder of a lease relies on its own reads of it, for a short time
(docs/design/purge.md#rule-21)."""

import pytest

from arco_catalog.state.task import Status, Task
from arco_catalog.state.task_log import append_task
from arco_catalog.tasks.followed_lease import FollowedLease
from arco_catalog.tasks.lease import LeaseLost
from storage_backends import StoreUnavailable
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, anything
from tools.support.catalog_fixture import CatalogFixture

ID = "00000000-0000-4000-8000-000000000001"
LEASE_MS = 300_000


class LeaseFixture:
    """A task with a lease, and one that follows it."""

    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.store = ScriptedStore(self.runtime.now_ms)
        self.fixture = CatalogFixture(self.store, self.runtime)
        now_ms = self.runtime.ms
        self.task = Task.submitted(record="r", task=ID, kind="K", payload={}, at_ms=now_ms, not_before_ms=now_ms)

    async def begun(self) -> FollowedLease:
        await self.then(self.task)
        await self.then(self.task.leased(record="lease", at_ms=self.runtime.ms, lease_ms=LEASE_MS))
        return FollowedLease(self.fixture.another().catalog, ID, "lease")

    async def then(self, task: Task) -> None:
        assert await append_task(self.fixture.session().state, task) is not None
        self.task = task


async def test_nothing_is_sent_before_a_look(followed: LeaseFixture) -> None:
    with pytest.raises(LeaseLost):
        (await followed.begun()).session()


async def test_what_was_seen_is_believed_for_ten_seconds(followed: LeaseFixture) -> None:
    lease = await followed.begun()
    await lease.keep_up()
    assert lease.session().request.deadline_ms == followed.runtime.ms + 10_000
    followed.runtime.ms += 9_999
    lease.session()
    followed.runtime.ms += 1
    with pytest.raises(LeaseLost):
        lease.session()
    await lease.keep_up()
    lease.session()


async def test_it_ends_before_its_holder_would_end_it(followed: LeaseFixture) -> None:
    lease = await followed.begun()
    followed.runtime.ms += LEASE_MS - 20_000 - 4_000
    await lease.keep_up()
    assert lease.session().request.deadline_ms == followed.runtime.ms + 3_000
    followed.runtime.ms += 3_000
    with pytest.raises(LeaseLost):
        await lease.keep_up()


async def test_a_renewal_is_seen(followed: LeaseFixture) -> None:
    lease = await followed.begun()
    followed.runtime.ms += LEASE_MS - 20_000 - 4_000
    await followed.then(followed.task.renewed(record="renewed", checkpoint={}))
    await lease.keep_up()
    assert lease.session().request.deadline_ms == followed.runtime.ms + 10_000


@pytest.mark.parametrize("by", ["given back", "taken over", "run out"])
async def test_a_lease_that_is_over_is_not_believed_in(followed: LeaseFixture, by: str) -> None:
    lease = await followed.begun()
    await lease.keep_up()
    followed.runtime.ms += 5_001
    match by:
        case "given back":
            now_ms = followed.runtime.ms
            given_back = followed.task.scheduled(
                record="s", at_ms=now_ms, next_run_ms=now_ms, attempts=0, summary="", extended=None
            )
            assert given_back.status is Status.RETRY_SCHEDULED
            await followed.then(given_back)
        case "taken over":
            await followed.then(followed.task.leased(record="next", at_ms=followed.runtime.ms, lease_ms=LEASE_MS))
        case _:
            followed.runtime.ms += LEASE_MS
    with pytest.raises(LeaseLost):
        await lease.keep_up()


async def test_a_look_that_fails_extends_nothing(followed: LeaseFixture) -> None:
    lease = await followed.begun()
    await lease.keep_up()
    followed.runtime.ms += 6_000
    followed.store.rules = [Rule(anything("/tasks/"), made=False, fails=DOWN)]
    with pytest.raises(StoreUnavailable):
        await lease.keep_up()
    assert lease.session().request.deadline_ms == followed.runtime.ms + 4_000


@pytest.fixture
def followed() -> LeaseFixture:
    return LeaseFixture()
