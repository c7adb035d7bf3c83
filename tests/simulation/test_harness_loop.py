"""The simulated loop and the simulated runtime do what asyncio and a machine do, in virtual time."""

import asyncio
from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any

import pytest
from ulid import ULID

from arco_catalog.state.runtime import Runtime
from tests.simulation.loop import (
    OWNER,
    Crashed,
    DeadlockError,
    RunawayError,
    SimulatedLoop,
    run,
)
from tests.simulation.runtime import EPOCH_MS, SimRuntime

DAY = 24 * 3600.0


def start(loop: SimulatedLoop, owner: str, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """A task in the name of `owner`."""
    context = copy_context()
    context.run(OWNER.set, owner)
    return loop.create_task(work, context=context)


class TestTime:
    def test_a_week_of_sleep_takes_a_few_turns(self) -> None:
        async def main() -> float:
            await asyncio.sleep(7 * DAY)
            return asyncio.get_running_loop().time()

        loop = SimulatedLoop(0)
        assert loop.run(main()) == 7 * DAY
        assert loop.steps < 20

    def test_sleepers_wake_in_the_order_of_their_times(self) -> None:
        woken: list[float] = []

        async def sleeper(seconds: float) -> None:
            await asyncio.sleep(seconds)
            woken.append(seconds)

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                for seconds in (3.0, 0.5, DAY, 0.0, 2.0):
                    group.create_task(sleeper(seconds))

        run(main())
        assert woken == [0.0, 0.5, 2.0, 3.0, DAY]

    def test_a_timeout_rings_at_its_time(self) -> None:
        async def main() -> float:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(20):
                    await asyncio.sleep(DAY)
            return asyncio.get_running_loop().time()

        assert run(main()) == 20

    def test_work_for_a_thread_is_done_in_place(self) -> None:
        async def main() -> int:
            return await asyncio.to_thread(int, "7")

        assert run(main()) == 7

    def test_a_threads_failure_is_raised(self) -> None:
        async def main() -> int:
            return await asyncio.to_thread(int, "seven")

        with pytest.raises(ValueError, match="seven"):
            run(main())


class TestAnEndToEverything:
    def test_a_deadlock_names_who_waits(self) -> None:
        async def waits_for_nobody() -> None:
            await asyncio.Event().wait()

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(waits_for_nobody())

        with pytest.raises(DeadlockError, match=r"task-0 at .*main:\d+; task-1 at .*waits_for_nobody:\d+"):
            run(main())

    def test_a_loop_without_end_is_ended(self) -> None:
        async def main() -> None:
            while True:
                await asyncio.gather(asyncio.sleep(0))

        with pytest.raises(RunawayError, match="after 1001 steps"):
            SimulatedLoop(max_steps=1_000).run(main())

    def test_waiting_without_end_is_ended(self) -> None:
        async def main() -> None:
            await asyncio.sleep(2 * DAY)

        with pytest.raises(RunawayError, match="86400 virtual s"):
            SimulatedLoop(max_seconds=DAY - 1).run(main())

    def test_what_main_leaves_behind_is_cancelled(self) -> None:
        ended: list[str] = []

        async def leftover() -> None:
            try:
                await asyncio.sleep(DAY)
            finally:
                ended.append("leftover")

        async def main() -> None:
            task = asyncio.create_task(leftover())
            await asyncio.sleep(0)
            assert not task.done()

        loop = SimulatedLoop()
        loop.run(main())
        assert ended == ["leftover"]
        assert loop.time() == 0
        assert loop.is_closed()


class TestFailures:
    def test_the_failure_of_a_task_that_nobody_awaits_is_raised(self) -> None:
        async def fails() -> None:
            raise ValueError("unseen")

        async def main() -> None:
            task = asyncio.create_task(fails())
            await asyncio.sleep(1)
            assert task.done()

        with pytest.raises(ValueError, match="unseen"):
            run(main())

    def test_the_failure_of_a_callback_ends_the_run_at_once(self) -> None:
        def fails() -> None:
            raise ValueError("callback")

        async def main() -> None:
            asyncio.get_running_loop().call_later(1, fails)
            await asyncio.sleep(DAY)

        loop = SimulatedLoop()
        with pytest.raises(ValueError, match="callback"):
            loop.run(main())
        assert loop.time() == 1

    def test_a_group_cancels_its_tasks_in_the_order_of_their_making(self) -> None:
        cancelled: list[int] = []

        async def member(number: int) -> None:
            try:
                await asyncio.sleep(DAY)
            finally:
                cancelled.append(number)

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(50):
                    group.create_task(member(number))
                await asyncio.sleep(1)
                raise ValueError

        with pytest.raises(ExceptionGroup):
            run(main())
        assert cancelled == list(range(50))


class TestOwners:
    def test_tasks_belong_to_the_owner_of_who_made_them(self) -> None:
        owners: list[str] = []

        async def child() -> None:
            owners.append(OWNER.get())

        async def parent() -> None:
            await asyncio.gather(child(), child())

        async def main() -> None:
            await start(loop, "p1", parent())
            await child()

        loop = SimulatedLoop()
        loop.run(main())
        assert owners == ["p1", "p1", ""]

    def test_killing_an_owner_ends_all_its_tasks_and_no_others(self) -> None:
        ended: list[str] = []

        async def lives(name: str) -> None:
            await asyncio.sleep(10)
            ended.append(name)

        async def parent() -> None:
            asyncio.create_task(lives("detached")).add_done_callback(lambda task: ended.append(str(task.cancelled())))
            await lives("parent")

        async def main() -> None:
            start(loop, "p1", parent())
            other = start(loop, "p2", lives("other"))
            await asyncio.sleep(1)
            loop.kill("p1")
            await other

        loop = SimulatedLoop()
        loop.run(main())
        assert ended == ["True", "other"]

    def test_what_the_dead_leave_behind_is_no_failure_of_the_run(self) -> None:
        async def fails_when_cancelled() -> None:
            try:
                await asyncio.sleep(10)
            finally:
                raise ValueError("from beyond")

        async def main() -> None:
            start(loop, "p1", fails_when_cancelled())
            await asyncio.sleep(1)
            loop.kill("p1")
            await asyncio.sleep(1)

        loop = SimulatedLoop()
        loop.run(main())
        assert loop.time() == 2

    def test_a_suspended_owner_stands_still_with_all_its_timers(self) -> None:
        awake: list[tuple[str, float]] = []

        async def sleeper(name: str) -> None:
            await asyncio.sleep(5)
            awake.append((name, loop.time()))

        async def main() -> None:
            tasks = [start(loop, name, sleeper(name)) for name in ("p1", "p2")]
            await asyncio.sleep(1)
            loop.suspend("p1", 60)
            await asyncio.sleep(0)
            tasks.append(start(loop, "p1", sleeper("p1")))
            await asyncio.wait(tasks)

        loop = SimulatedLoop()
        loop.run(main())
        assert awake == [("p2", 5), ("p1", 65), ("p1", 66)]

    def test_a_timeout_does_not_count_the_time_of_a_suspension(self) -> None:
        async def patient() -> None:
            async with asyncio.timeout(20):
                await asyncio.sleep(10)

        async def main() -> None:
            task = start(loop, "p1", patient())
            await asyncio.sleep(1)
            loop.suspend("p1", 600)
            await task

        loop = SimulatedLoop()
        loop.run(main())
        assert loop.time() == 610


class TestRuntime:
    def test_it_is_a_runtime(self) -> None:
        runtime: Runtime = SimRuntime(1, SimulatedLoop())
        assert 0 <= runtime.random() < 1

    def test_its_clock_is_the_virtual_one_and_may_be_wrong(self) -> None:
        async def main() -> list[int]:
            await SimRuntime(1, loop).sleep(1.5)
            return [SimRuntime(1, loop, skew_ms=skew).now_ms() - EPOCH_MS for skew in (0, 2_000, -2_000)]

        loop = SimulatedLoop()
        assert loop.run(main()) == [1_500, 3_500, -500]

    def test_ulids_are_ulids_of_now_and_grow(self) -> None:
        runtime = SimRuntime(1, SimulatedLoop())
        ulids = [runtime.ulid() for _ in range(1_000)]
        assert ulids == sorted(set(ulids))
        assert {len(ulid) for ulid in ulids} == {26}
        assert {ULID.from_str(ulid).milliseconds for ulid in ulids} == {runtime.now_ms()}

    def test_uuids_are_random_ones(self) -> None:
        runtime = SimRuntime(1, SimulatedLoop())
        uuids = {runtime.uuid() for _ in range(100)}
        assert len(uuids) == 100
        assert {uuid[14] for uuid in uuids} == {"4"}

    def test_one_seed_gives_the_same_ids_and_two_give_others(self) -> None:
        def ids(seed: str) -> list[object]:
            runtime = SimRuntime(seed, SimulatedLoop())
            return [runtime.ulid(), runtime.uuid(), runtime.random()]

        assert ids("7/p1") == ids("7/p1")
        assert not set(ids("7/p1")) & set(ids("7/p2"))

    def test_streams_of_one_run_do_not_disturb_each_other(self) -> None:
        loop = SimulatedLoop(7)
        alone = loop.stream("a").random()
        loop.stream("b").random()
        assert loop.stream("a").random() == alone
        assert loop.stream("b").random() != alone
        assert SimulatedLoop(8).stream("a").random() != alone

    def test_the_dead_do_not_sleep(self) -> None:
        async def main() -> None:
            loop.kill("p1")
            with pytest.raises(Crashed):
                await SimRuntime(1, loop, process="p1").sleep(1)

        loop = SimulatedLoop()
        loop.run(main())
