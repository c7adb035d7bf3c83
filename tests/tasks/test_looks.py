"""What is left to others is gone past, and is not read again at each look (docs/design/tasks.md#rule-2)."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from arco_catalog.operations.tasks import retry_task
from arco_catalog.state.task import Status
from arco_catalog.state.task_log import append_task, put_hint
from arco_catalog.tasks.execution import Execution
from arco_catalog.tasks.feed_stats import FeedStats
from storage_backends import Page
from tests.tasks.test_worker import ID, MINUTE, OTHER, Tasks, never

DAY_MS = 86_400_000


@pytest.fixture
def tasks() -> Tasks:
    return Tasks()


async def others_due(tasks: Tasks, count: int) -> None:
    """Hints of tasks of a type that the worker does not do, all older than any other."""
    state = tasks.fixture.session(deadline_ms=DAY_MS).state
    for number in range(count):
        await put_hint(state, f"00000000-0000-4000-9000-{number:012}", tasks.runtime.ms - MINUTE)


async def test_a_task_is_done_that_is_younger_than_a_thousand_that_are_left_to_others(tasks: Tasks) -> None:
    await others_due(tasks, 1_001)
    await tasks.hint()
    tasks.executor.takes = lambda task: task.id == ID  # type: ignore[method-assign]
    assert await tasks.run() == 1
    assert (await tasks.task()).status is Status.SUCCESS


async def test_a_long_task_delays_no_task_that_is_younger_than_a_thousand_others(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hints are listed in pages of a thousand, and the long task is in the first page."""
    monkeypatch.setattr(tasks.runtime, "sleep", never)
    other_done = asyncio.Event()

    async def waits(execution: Execution) -> None:
        await other_done.wait()

    async def ends(execution: Execution) -> None:
        other_done.set()

    tasks.executor.steps = [waits, ends]
    tasks.executor.takes = lambda task: task.id in (ID, OTHER)  # type: ignore[method-assign]
    await tasks.hint(ID, -2 * MINUTE)
    await others_due(tasks, 1_001)
    await tasks.hint(OTHER)
    async with asyncio.timeout(60):
        assert await tasks.run() == 2


async def test_what_is_left_to_others_is_read_again_after_a_while_only(tasks: Tasks) -> None:
    await tasks.hint()
    tasks.executor.can = False
    worker = tasks.worker()

    async def calls() -> int:
        tasks.store.calls.clear()
        await worker.run_due(lambda: False)
        return len(tasks.store.calls)

    assert await calls() > 1
    assert await calls() == 1
    assert worker.take_stats().oldest_due_ms == 0
    tasks.runtime.ms += 10 * MINUTE
    tasks.executor.can = True
    assert await calls() > 1
    assert (await tasks.task()).status is Status.SUCCESS


async def test_what_is_left_to_others_still_counts_as_due(tasks: Tasks) -> None:
    await tasks.hint()
    tasks.executor.can = False
    worker = tasks.worker()
    await worker.run_due(lambda: False)
    worker.take_stats()
    tasks.runtime.ms += MINUTE
    await worker.run_due(lambda: False)
    assert worker.take_stats().oldest_due_ms == MINUTE


async def test_a_task_that_is_submitted_again_is_read_by_the_worker_that_left_it(tasks: Tasks) -> None:
    await tasks.hint()
    tasks.executor.can = False
    worker = tasks.worker()
    await worker.run_due(lambda: False)
    failed = (await tasks.task()).leased(record="other", at_ms=tasks.runtime.ms, lease_ms=1)
    ended = failed.ended(record="o", at_ms=tasks.runtime.ms, status=Status.FAILURE, summary="no", extended=None)
    for version in (failed, ended):
        await append_task(tasks.fixture.session().state, version)
    tasks.executor.can = True
    await retry_task(tasks.fixture.session(), ID, tasks.runtime)
    tasks.runtime.ms += 1
    assert await worker.run_due(lambda: False) == 1


@pytest.mark.parametrize("in_order", [True, False])
async def test_a_look_counts_what_is_due_and_what_is_scheduled(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, in_order: bool
) -> None:
    if not in_order:
        listed = tasks.store.list

        async def list_unordered(*given: Any) -> Page:
            return replace(await listed(*given), in_order=False)

        monkeypatch.setattr(tasks.store, "list", list_unordered)
    tasks.executor.takes = lambda task: task.id in (ID, OTHER)  # type: ignore[method-assign]
    await others_due(tasks, 3)
    await tasks.hint(ID, MINUTE)
    await tasks.hint(OTHER, 2 * MINUTE)
    worker = tasks.worker()
    assert await worker.run_until_idle() == 0
    stats = worker.take_stats()
    assert (stats.due, stats.scheduled) == (3, 2)
    tasks.runtime.ms += MINUTE
    assert await worker.run_until_idle() == 1
    stats = worker.take_stats()
    assert (stats.due, stats.scheduled) == (3, 1)


async def test_a_feed_that_takes_long_to_fill_delays_no_task(tasks: Tasks) -> None:
    """What it has made is executed in the same run."""
    await tasks.hint()
    worker, executed = tasks.worker(), asyncio.Event()

    async def ends(execution: Execution) -> None:
        executed.set()

    tasks.executor.steps = [ends, ends]

    async def fill(stats: FeedStats) -> int:
        async with asyncio.timeout(5.0):
            await executed.wait()
        await tasks.hint(OTHER)
        return 1

    worker._feeding = fill
    assert await worker.run_until_idle() == 2
