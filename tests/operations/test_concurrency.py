"""Concurrent steps fail with one exception, and leave their task uncancelled."""

import asyncio
from contextlib import suppress
from contextvars import ContextVar

import pytest

from arco_catalog.protocol.concurrency import Superseded, for_each, gather


async def fail(error: Exception) -> None:
    await asyncio.sleep(0)
    raise error


async def wait() -> None:
    await asyncio.sleep(3600)


async def test_superseded_is_raised_before_other_failures() -> None:
    with pytest.raises(Superseded):
        await gather(fail(ValueError("x")), fail(Superseded()), wait())


async def test_a_failure_leaves_no_cancellation_behind() -> None:
    task = asyncio.current_task()
    assert task is not None
    with pytest.raises(ValueError, match="x"):
        await gather(fail(ValueError("x")), wait())

    assert task.cancelling() == 0


async def fail_and_wait() -> None:
    with suppress(ValueError):
        await gather(fail(ValueError("x")), wait())
    await wait()


async def test_a_timeout_around_steps_that_failed_is_a_timeout() -> None:
    async def bounded() -> None:
        async with asyncio.timeout(0.01):
            await fail_and_wait()

    with pytest.raises(TimeoutError):
        await bounded()


async def test_a_task_that_is_cancelled_meanwhile_stays_cancelled() -> None:
    task = asyncio.create_task(gather(wait(), wait()))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_step_that_need_not_wait_has_ended_before_the_next_begins() -> None:
    events: list[str] = []

    async def step(name: str, *, waits: bool) -> str:
        events.append(f"{name} begins")
        if waits:
            await asyncio.sleep(0)
        events.append(f"{name} ends")
        return name

    assert await gather(step("a", waits=True), step("b", waits=False), step("c", waits=True)) == ("a", "b", "c")
    assert events == ["a begins", "b begins", "b ends", "c begins", "a ends", "c ends"]


async def test_every_step_begins_though_an_earlier_one_failed_at_once() -> None:
    async def fail_at_once(error: Exception) -> None:
        raise error

    with pytest.raises(Superseded):
        await gather(fail_at_once(ValueError("x")), wait(), fail_at_once(Superseded()))


async def test_the_first_failure_ends_the_others_before_it_is_raised() -> None:
    ended: list[bool] = []

    async def wait_and_tidy() -> None:
        try:
            await wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    with pytest.raises(ValueError, match="x"):
        await gather(wait_and_tidy(), fail(ValueError("x")), wait_and_tidy())

    assert ended == [True, True]


async def test_who_is_cancelled_twice_still_waits_for_its_steps() -> None:
    ended: list[bool] = []

    async def wait_and_tidy() -> None:
        try:
            await wait()
        finally:
            await asyncio.sleep(0.02)
            ended.append(True)

    task = asyncio.create_task(gather(wait_and_tidy(), wait_and_tidy()))
    for _ in range(2):
        await asyncio.sleep(0.001)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended == [True, True]


async def test_a_timeout_that_a_step_enters_before_it_waits_ends_that_step_alone() -> None:
    async def bounded() -> str:
        try:
            async with asyncio.timeout(0.001):
                await wait()
        except TimeoutError:
            return "late"
        return "in time"

    async def patient() -> str:
        await asyncio.sleep(0.02)
        return "in time"

    assert await gather(bounded(), patient()) == ("late", "in time")


async def test_a_group_that_a_step_enters_before_it_waits_ends_that_step_alone() -> None:
    async def grouped() -> str:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail(ValueError("x")))
                await wait()
        except ExceptionGroup:
            return "failed"
        return "done"

    async def patient() -> str:
        await asyncio.sleep(0.02)
        return "done"

    assert await gather(grouped(), patient()) == ("failed", "done")


async def test_steps_within_steps_keep_their_order() -> None:
    async def number(value: int) -> int:
        if value % 2:
            await asyncio.sleep(0)
        return value

    async def pair(first: int) -> tuple[int, ...]:
        return await gather(number(first), number(first + 1))

    assert await gather(pair(0), pair(2), pair(4)) == ((0, 1), (2, 3), (4, 5))


async def test_what_a_step_sets_for_its_context_stays_with_it() -> None:
    mark: ContextVar[str] = ContextVar("mark", default="none")

    async def set_mark(value: str) -> str:
        mark.set(value)
        await asyncio.sleep(0)
        return mark.get()

    assert await gather(set_mark("a"), set_mark("b")) == ("a", "b")
    assert mark.get() == "none"


async def test_so_many_items_are_worked_on_and_a_slow_one_delays_no_other() -> None:
    under_way, maximum, done = 0, 0, list[int]()
    others_done = asyncio.Event()

    async def step(item: int) -> None:
        nonlocal under_way, maximum
        under_way += 1
        maximum = max(maximum, under_way)
        await (others_done.wait() if item == 0 else asyncio.sleep(0))
        under_way -= 1
        done.append(item)
        if len(done) == 9:
            others_done.set()

    async with asyncio.timeout(10):
        await for_each(range(10), 3, step)
    assert maximum == 3
    assert done == [*range(1, 10), 0]


async def test_the_first_item_that_fails_ends_the_others() -> None:
    ended: list[int] = []

    async def step(item: int) -> None:
        if item == 1:
            await fail(ValueError("x"))
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(item)

    with pytest.raises(ValueError, match="x"):
        await for_each(range(10), 3, step)
    assert ended == [0, 2]
