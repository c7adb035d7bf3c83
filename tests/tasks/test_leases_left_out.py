"""The rules of leases left out, one at a time: each must make a test of it fail (docs/design/tasks.md#tasks)."""

from collections.abc import Awaitable, Callable

import pytest

from arco_catalog.state.task import LEASED, Task
from arco_catalog.state.task_log import StoredTask
from arco_catalog.tasks import worker
from arco_catalog.tasks.execution import Execution
from arco_catalog.tasks.lease import Lease
from storage_backends import StoreError
from tests.state import test_task
from tests.tasks import test_worker
from tests.tasks.test_worker import Tasks

Mutation = Callable[[pytest.MonkeyPatch], None]
Finder = Callable[[], Awaitable[None]]


def a_negative_age_taken_for_a_young_lease(patch: pytest.MonkeyPatch) -> None:
    def is_held(self: StoredTask) -> bool:
        return self.task.status in LEASED and self.now_ms - self.written_ms < self.task.lease_ms

    patch.setattr(StoredTask, "is_held", property(is_held))


def an_unknown_renewal_that_extends_the_lease(patch: pytest.MonkeyPatch) -> None:
    advance = Execution.advance

    async def extended(self: Execution, make: Callable[[Task], Task]) -> None:
        lease = Lease.from_now(self.runtime, self._lease.length_ms)
        try:
            await advance(self, make)
        except StoreError:
            self._lease = lease
            raise

    patch.setattr(Execution, "advance", extended)


def work_that_goes_on_without_its_lease(patch: pytest.MonkeyPatch) -> None:
    async def unwatched(execution: Execution, work: Awaitable[object]) -> object:
        return await work

    patch.setattr(worker, "_while_leased", unwatched)


def earlier_leases_that_only_the_next_worker_knows_of(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Task, "quiet", lambda self, quiet_ms: self)


async def clock_set_back() -> None:
    await test_task.test_a_lease_runs_from_the_stores_time_of_its_version(-6_000, False)


async def lost_renewals() -> None:
    await test_worker.test_a_worker_that_cannot_renew_its_lease_stops(Tasks())


async def stopped_while_it_waits() -> None:
    await test_worker.test_the_worker_after_a_stopped_one_waits_for_earlier_leases(Tasks())


CASES: list[tuple[Mutation, Finder]] = [
    (a_negative_age_taken_for_a_young_lease, clock_set_back),
    (an_unknown_renewal_that_extends_the_lease, lost_renewals),
    (work_that_goes_on_without_its_lease, lost_renewals),
    (earlier_leases_that_only_the_next_worker_knows_of, stopped_while_it_waits),
]


@pytest.mark.parametrize(("bug", "finder"), CASES, ids=[bug.__name__ for bug, _ in CASES])
async def test_a_rule_that_is_left_out_is_missed(
    bug: Mutation, finder: Finder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await finder()
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        await finder()
