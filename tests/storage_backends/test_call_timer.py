"""One timer ends all calls that wait for longer than they may, as a timeout for each would."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Awaitable, Coroutine
from concurrent.futures import ThreadPoolExecutor

import pytest

from arco_catalog.protocol.concurrency import gather
from storage_backends.eager import Waiting
from storage_backends.wrappers.call_timer import CallTimedOut, CallTimer

LONG_S, SHORT_S = 60.0, 0.01


def begun(call: Coroutine[object, object, str]) -> Waiting[str]:
    """A call that has begun to wait."""
    return Waiting(call, call.send(None))


async def answered(waits_for: Awaitable[object]) -> str:
    await waits_for
    return "answer"


def never() -> Coroutine[object, object, str]:
    return answered(asyncio.get_running_loop().create_future())


def timers_of(loop: asyncio.AbstractEventLoop) -> int:
    """How many timers of the event loop are set."""
    return sum(not handle.cancelled() for handle in loop._scheduled)  # type: ignore[attr-defined]


async def test_a_call_in_time_returns_its_answer() -> None:
    assert await CallTimer().wait(begun(answered(asyncio.sleep(0))), LONG_S, "late") == "answer"


async def test_a_call_without_an_answer_is_ended() -> None:
    ended = asyncio.Event()

    async def call() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    with pytest.raises(CallTimedOut, match="late"):
        await CallTimer().wait(begun(call()), SHORT_S, "late")
    assert ended.is_set()


async def test_one_timer_serves_all_calls() -> None:
    loop, timer = asyncio.get_running_loop(), CallTimer()
    before = timers_of(loop)
    for _ in range(3):
        await timer.wait(begun(answered(asyncio.sleep(0))), LONG_S, "late")
    async with asyncio.TaskGroup() as group:
        for seconds in (LONG_S, 2 * LONG_S, LONG_S / 2):
            group.create_task(timer.wait(begun(answered(asyncio.sleep(0))), seconds, "late"))
    assert timers_of(loop) == before + 1


async def test_each_call_ends_at_its_own_time() -> None:
    """Whichever of them set the timer."""
    timer, ended = CallTimer(), list[str]()
    go_on = asyncio.get_running_loop().create_future()

    async def wait(name: str, seconds: float) -> None:
        with pytest.raises(CallTimedOut):
            await timer.wait(begun(never()), seconds, name)
        ended.append(name)
        if name == "third":
            go_on.set_result(None)

    async with asyncio.TaskGroup() as group:
        group.create_task(wait("third", 0.06))
        group.create_task(wait("first", 0.01))
        group.create_task(wait("second", 0.03))
        lasting = group.create_task(timer.wait(begun(answered(go_on)), LONG_S, "late"))
    assert ended == ["first", "second", "third"]
    assert lasting.result() == "answer"


async def test_a_cancellation_by_others_is_raised_as_it_is() -> None:
    task = asyncio.create_task(CallTimer().wait(begun(never()), LONG_S, "late"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_by_others_goes_before_the_end_of_the_time() -> None:
    """Both come while the call ends what it has begun."""

    async def call() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            asyncio.get_running_loop().call_soon(task.cancel)
            await asyncio.sleep(SHORT_S)
        return ""

    async def wait() -> str:
        return await CallTimer().wait(begun(call()), SHORT_S, "late")

    task = asyncio.create_task(wait())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelling() == 1


async def test_a_task_that_was_cancelled_before_still_has_deadlines() -> None:
    """It puts something in order, for example."""

    async def put_in_order() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with pytest.raises(CallTimedOut):
                await CallTimer().wait(begun(never()), SHORT_S, "late")
        return "in order"

    task = asyncio.create_task(put_in_order())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "in order"


async def test_an_answer_in_spite_of_the_end_of_the_time_counts() -> None:
    async def call() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "answer"
        return ""

    assert await CallTimer().wait(begun(call()), SHORT_S, "late") == "answer"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


def test_in_another_event_loop_it_begins_anew() -> None:
    timer = CallTimer()

    async def wait() -> None:
        assert await timer.wait(begun(answered(asyncio.sleep(0))), LONG_S, "late") == "answer"
        with pytest.raises(CallTimedOut):
            await timer.wait(begun(never()), SHORT_S, "late")
        await timer.wait(begun(answered(asyncio.sleep(0))), LONG_S, "late")

    for _ in range(2):
        asyncio.run(wait())


def test_two_event_loops_at_once_end_their_own_calls() -> None:
    """Each in a thread of its own. The call in the second begins after that in the first, which still waits."""
    timer, first_waits, second_is_over = CallTimer(), threading.Event(), threading.Event()

    async def first() -> None:
        call = asyncio.create_task(timer.wait(begun(never()), SHORT_S, "first"))
        await asyncio.sleep(0)
        first_waits.set()
        second_is_over.wait()  # its own calls go on only after those of the other
        with pytest.raises(CallTimedOut, match="first"):
            await asyncio.wait_for(call, LONG_S / 10)

    async def second() -> None:
        first_waits.wait()
        with pytest.raises(CallTimedOut, match="second"):
            await timer.wait(begun(never()), SHORT_S, "second")
        second_is_over.set()

    with ThreadPoolExecutor(2) as threads:
        for each in [threads.submit(asyncio.run, first()), threads.submit(asyncio.run, second())]:
            each.result()


def test_an_event_loop_that_is_closed_is_forgotten() -> None:
    timer, loops = CallTimer(), list[weakref.ref[asyncio.AbstractEventLoop]]()

    async def wait() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await timer.wait(begun(answered(asyncio.sleep(0))), LONG_S, "late")

    for _ in range(3):
        asyncio.run(wait())
    gc.collect()

    assert [loop() is None for loop in loops] == [True, True, False]


async def test_a_call_ends_at_its_deadline_where_its_task_has_not_begun() -> None:
    """The timer of another call runs in the turn of the event loop in which the call is sent."""
    timer = CallTimer()

    async def call(name: str) -> str:
        return await timer.wait(begun(never()), 0, name)

    first = asyncio.create_task(call("first"))
    await asyncio.sleep(0)
    others = asyncio.create_task(gather(call("second"), call("third")))
    with pytest.raises(CallTimedOut, match="first"):
        await first
    with pytest.raises(CallTimedOut, match="second"):
        await others
