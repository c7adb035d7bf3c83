"""Long work is done by threads, and leaves nothing to do for the event loop."""

import asyncio
import gc
import sys
import threading
import weakref
from contextlib import suppress
from functools import partial

import pytest

from arco_catalog.state.worker_threads import LARGE_BYTES, SMALL_BYTES, SWITCH_S, LoopWork, off_loop, wait_for_threads


async def test_small_work_is_done_in_place_and_long_work_by_a_thread() -> None:
    assert await off_loop(SMALL_BYTES - 1, threading.current_thread) is threading.main_thread()
    assert await off_loop(SMALL_BYTES, threading.current_thread) is not threading.main_thread()


async def test_small_works_of_a_request_are_done_in_place_until_together_they_are_long() -> None:
    request, other = LoopWork(), LoopWork()
    size = SMALL_BYTES // 4
    found = [await request.run(size, threading.current_thread) is threading.main_thread() for _ in range(6)]
    assert found == [True, True, True, False, False, False]
    assert await other.run(size, threading.current_thread) is threading.main_thread()


async def test_small_works_are_never_large_together() -> None:
    """Large work waits for other large work."""
    first, end = threading.Event(), threading.Event()

    def hold() -> None:
        first.set()
        end.wait()

    holding = asyncio.create_task(off_loop(LARGE_BYTES, hold))
    await asyncio.to_thread(first.wait)
    request = LoopWork()
    try:
        async with asyncio.timeout(10):
            for _ in range(3):
                await request.run(LARGE_BYTES - 1, lambda: None)
    finally:
        end.set()
        await holding


async def test_the_loop_waits_a_fifth_of_python_s_default_for_the_lock_of_a_thread() -> None:
    await off_loop(SMALL_BYTES, threading.current_thread)

    assert sys.getswitchinterval() <= SWITCH_S <= 0.005 / 5


async def test_values_made_by_long_work_are_old_to_the_collector() -> None:
    """A collection of young objects, which begins any time later, goes through none of them in one step."""
    made = await off_loop(SMALL_BYTES, lambda: [[number] for number in range(200_000)])

    assert gc.isenabled()
    assert len(made) == 200_000
    assert len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1)) < 20_000


async def test_of_large_works_one_goes_on_at_a_time_and_smaller_ones_meanwhile() -> None:
    first, end = threading.Event(), threading.Event()
    order: list[str] = []

    def hold() -> None:
        first.set()
        end.wait()
        order.append("large")

    holding = asyncio.create_task(off_loop(LARGE_BYTES, hold))
    await asyncio.to_thread(first.wait)
    await off_loop(SMALL_BYTES, lambda: order.append("small"))
    next_one = asyncio.create_task(off_loop(LARGE_BYTES, lambda: order.append("next")))
    await asyncio.sleep(0)
    end.set()
    await asyncio.gather(holding, next_one)

    assert order == ["small", "large", "next"]


async def test_threads_are_waited_for_while_a_caller_needs_their_work() -> None:
    end = threading.Event()
    working = asyncio.create_task(off_loop(SMALL_BYTES, end.wait))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(wait_for_threads())
    await asyncio.sleep(0)
    assert not waiting.done()
    end.set()
    await waiting
    assert await working


async def test_the_work_of_a_cancelled_caller_is_not_waited_for() -> None:
    end = threading.Event()
    working = asyncio.create_task(off_loop(SMALL_BYTES, end.wait))
    await asyncio.sleep(0)
    working.cancel()
    await asyncio.wait([working])
    await wait_for_threads()
    end.set()


async def test_work_that_fails_leaves_its_input_to_no_collection_of_cycles() -> None:
    class Body:
        """The input of the work."""

    def refuse(body: Body) -> None:
        raise ValueError(body)

    body = Body()
    freed = asyncio.Event()
    weakref.finalize(body, asyncio.get_running_loop().call_soon_threadsafe, freed.set)
    gc.disable()
    try:
        with suppress(ValueError):
            await off_loop(SMALL_BYTES, partial(refuse, body))
        gc.disable()  # long work enables it at its end
        del body
        await asyncio.wait_for(freed.wait(), 10)
    finally:
        gc.enable()


async def test_collections_of_cycles_may_run_between_two_works_with_large_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []
    end, enable = threading.Event(), gc.enable

    def work() -> None:
        assert end.wait(10)
        order.append("work")

    def enabled() -> None:
        order.append("collections")
        enable()

    monkeypatch.setattr(gc, "enable", enabled)
    works = [asyncio.create_task(off_loop(LARGE_BYTES, work)) for _ in range(2)]
    await asyncio.sleep(0.05)  # both threads have begun
    end.set()
    await asyncio.gather(*works)

    assert order == ["work", "collections"] * 2
