"""A process that serves requests works on the tasks of all its catalogs beside (docs/design/tasks.md#who-works)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import pytest

from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.state.task import Status
from arco_catalog.tasks import loop
from arco_catalog.tasks.execution import Execution
from arco_catalog.tasks.loop import WakeUp, keep_working
from arco_catalog.tasks.work_stats import WorkStats
from arco_catalog.tasks.worker import Worker
from tests.support.scripted_store import DOWN, Rule, anything
from tests.tasks.test_worker import OTHER, Tasks, never

SECONDS = 60


class Reports:
    """The reports of polls, and a wait for a number of them."""

    def __init__(self) -> None:
        self.received: list[tuple[str, WorkStats]] = []
        self._event = asyncio.Event()

    def tell(self, warehouse: str, stats: WorkStats) -> None:
        self.received.append((warehouse, stats))
        self._event.set()

    async def until(self, count: int) -> None:
        """Returns when so many polls were reported."""
        async with asyncio.timeout(SECONDS):
            while len(self.received) < count:
                self._event.clear()
                await self._event.wait()


@asynccontextmanager
async def running(
    workers: Callable[[], Awaitable[Mapping[str, Worker]]], tasks: Tasks, wake_up: WakeUp | None = None
) -> AsyncIterator[Reports]:
    reports = Reports()
    work = asyncio.create_task(keep_working(workers, tasks.runtime, wake_up or WakeUp(), reports.tell))
    try:
        yield reports
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


def of(**workers: Tasks) -> Callable[[], Awaitable[Mapping[str, Worker]]]:
    made = {root: tasks.worker() for root, tasks in workers.items()}

    async def now() -> Mapping[str, Worker]:
        return made

    return now


@pytest.fixture
def tasks() -> Tasks:
    return Tasks()


async def stands_still(execution: Execution) -> None:
    await asyncio.Event().wait()


async def test_a_long_task_of_one_catalog_holds_up_no_other(tasks: Tasks) -> None:
    busy = Tasks()
    busy.executor.steps = [stands_still]
    for each in (busy, tasks):
        await each.hint()
    async with running(of(busy=busy, other=tasks), tasks) as reports:
        await reports.until(1)
        assert (await tasks.task()).status is Status.SUCCESS
        assert [(name, stats.completed) for name, stats in reports.received] == [("wh", 1)]
    assert (await busy.task()).status is Status.RETRY_SCHEDULED


async def test_a_long_task_holds_up_no_task_of_its_catalog_that_becomes_due_later(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, wake_up = asyncio.Event(), WakeUp()

    async def starts_and_stands_still(execution: Execution) -> None:
        started.set()
        await stands_still(execution)

    monkeypatch.setattr(tasks.runtime, "sleep", never)
    tasks.executor.steps = [starts_and_stands_still]
    await tasks.hint()
    async with running(of(one=tasks), tasks, wake_up) as reports, asyncio.timeout(SECONDS):
        await started.wait()
        await tasks.hint(OTHER)
        await wake_up.task_due("one", 0)
        await reports.until(1)
        assert (await tasks.task(OTHER)).status is Status.SUCCESS
        assert (await tasks.task()).status is Status.RUNNING


async def test_a_task_that_is_due_now_ends_the_pause_for_its_catalog_alone(tasks: Tasks) -> None:
    other, wake_up = Tasks(), WakeUp()
    async with running(of(one=tasks, other=other), tasks, wake_up) as reports:
        await reports.until(2)
        for each in (tasks, other):
            await each.hint()
        await wake_up.task_due("one", 0)
        await reports.until(3)
        assert (await tasks.task()).status is Status.SUCCESS
        assert other.executor.executed == []


async def test_a_task_that_is_due_later_ends_no_pause(tasks: Tasks) -> None:
    wake_up = WakeUp()
    await wake_up.task_due("one", 1)
    assert await wake_up.wait(0.01) == set()
    await wake_up.task_due("one", 0)
    assert await wake_up.wait(SECONDS) == {"one"}
    assert await wake_up.wait(0.01) == set()


async def test_after_a_poll_of_a_wake_up_comes_another_soon(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store's clock may be behind by less than a second."""
    monkeypatch.setattr(loop, "SOON_SECONDS", 0.01)
    wake_up = WakeUp()
    async with running(of(one=tasks), tasks, wake_up) as reports:
        await reports.until(1)
        await tasks.hint(in_ms=1)
        await wake_up.task_due("one", 0)
        await reports.until(2)
        tasks.runtime.ms += 1
        await reports.until(3)
        assert (await tasks.task()).status is Status.SUCCESS


async def test_a_catalog_that_does_not_answer_is_polled_again(tasks: Tasks) -> None:
    wake_up = WakeUp()
    tasks.store.rules = [Rule(anything("/tasks/open/"), fails=DOWN)]
    await tasks.fixture.namespace("db")
    async with running(of(one=tasks), tasks, wake_up) as reports:
        await reports.until(1)
        assert reports.received[0][1].error == "down"
        tasks.store.rules = []
        await tasks.hint()
        await wake_up.task_due("one", 0)
        await reports.until(2)
        assert (await tasks.task()).status is Status.SUCCESS


async def test_catalogs_that_cannot_be_listed_are_listed_again(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "PAUSE_SECONDS", 0.01)
    found, looks = of(one=tasks), list[int]()

    async def workers() -> Mapping[str, Worker]:
        looks.append(1)
        if len(looks) == 1:
            raise Unavailable("the realm does not answer")
        return await found()

    await tasks.hint()
    async with running(workers, tasks) as reports:
        await reports.until(1)
    assert (await tasks.task()).status is Status.SUCCESS


async def test_a_bug_in_the_work_of_one_catalog_ends_no_other(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, wake_up = Tasks(), WakeUp()
    workers = of(broken=broken, other=tasks)

    async def fails() -> int:
        raise ZeroDivisionError

    monkeypatch.setattr((await workers())["broken"], "run_until_idle", fails)
    async with running(workers, tasks, wake_up) as reports:
        await reports.until(2)
        await tasks.hint()
        await wake_up.task_due("other", 0)
        await reports.until(3)
        assert (await tasks.task()).status is Status.SUCCESS
