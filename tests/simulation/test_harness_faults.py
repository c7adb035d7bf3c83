"""Every fault does what it says, and a dead process is dead."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_backends import ABSENT, ANY, Applied, Found, Missing, PreconditionFailed, StoreUnavailable, Unknown
from tests.simulation import faults
from tests.simulation.explore import trace
from tests.simulation.faults import (
    FAULTS,
    NO_FAULTS,
    Fault,
    FaultPlan,
    Kind,
    Lands,
    PlannedFault,
    Then,
    distinct_crashes,
    every_single_fault,
    random_plans,
)
from tests.simulation.history import Event
from tests.simulation.loop import Crashed
from tests.simulation.world import DIED, Process, World

KEY = "a/key"
SEEDS = range(30)
DEADLINE = 20.0

Work = Callable[[Process], Coroutine[Any, Any, object]]


async def create(process: Process) -> object:
    """Creates the object; returns what it is told, an error as its class."""
    try:
        return await process.store.put(KEY, b"mine", ABSENT)
    except StoreUnavailable:
        return StoreUnavailable


def landings(world: World, process: str = "p1") -> list[str]:
    """How the writes of a process came to the store."""
    return [event.step for event in world.history if event.process == process and event.step.startswith("lands")]


def under(plan: str, work: Work, seed: int = 0) -> tuple[World, object]:
    """The world after `work` in process p1 under this plan, and what came of it."""
    results: list[object] = []

    async def scenario(world: World) -> None:
        process = world.process("p1")
        results.append(await process.run(work(process)))
        await world.settle()

    return trace(scenario, seed, FaultPlan.parse(plan)), results[0]


class TestPlans:
    plans = st.builds(
        lambda faults: FaultPlan(tuple(PlannedFault(process, at, fault) for (process, at), fault in faults.items())),
        st.dictionaries(
            st.tuples(st.from_regex(r"[a-z][a-z0-9+-]*", fullmatch=True), st.integers(1, 99)), st.sampled_from(FAULTS)
        ),
    )

    @given(plans)
    def test_a_plan_is_its_text(self, plan: FaultPlan) -> None:
        assert FaultPlan.parse(str(plan)) == plan

    def test_crashes_differ_by_what_was_written_before_and_what_was_under_way(self) -> None:
        calls: dict[str, list[Kind]] = {"p1": ["get", "get", "put", "get", "list", "get"], "p2": ["get"]}
        kept = [str(plan) for plan in distinct_crashes(calls)]
        writes = ["p1@3:crash-before", "p1@3:crash-after", "p1@3:crash-late"]
        assert kept == ["p1@1:crash-before", *writes, "p1@4:crash-before", "p2@1:crash-before"]

    def test_the_text_is_short(self) -> None:
        plan = FaultPlan.parse("p1@7:crash-after,p2@3:echo")
        assert plan.by_call() == {("p1", 7): faults.CRASH_AFTER, ("p2", 3): faults.ECHO}

    @pytest.mark.parametrize("text", ["p1", "p1@7", "p1@x:echo", "p1@0:echo", "@1:echo", "p1@1:none", "p1@1:echo,"])
    def test_what_is_no_plan_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match="process@number:fault"):
            FaultPlan.parse(text)

    def test_one_call_has_one_fault(self) -> None:
        with pytest.raises(ValueError, match="two faults"):
            FaultPlan.parse("p1@1:echo,p1@1:late")

    def test_every_single_fault_is_every_fault_of_every_call_that_it_can_befall(self) -> None:
        plans = list(every_single_fault({"p1": ["get", "put"], "p2": ["list"]}))
        reads = sum(fault.befalls("get") for fault in FAULTS)
        assert len(set(plans)) == len(plans) == 2 * reads + len(FAULTS)
        assert FaultPlan.parse("p1@2:echo") in plans
        assert FaultPlan.parse("p1@1:echo") not in plans

    def test_random_plans_fit_the_calls_and_repeat_with_their_seed(self) -> None:
        plans = list(random_plans(7, 300, {"p1": ["get", "put"] * 4, "p2": ["put"]}))
        assert plans == list(random_plans(7, 300, {"p1": ["get", "put"] * 4, "p2": ["put"]}))
        assert {len(plan.faults) for plan in plans} == {1, 2, 3}
        planned = [fault for plan in plans for fault in plan.faults]
        assert {p.fault for p in planned} == set(FAULTS)
        assert {p.number for p in planned if p.process == "p1"} == set(range(1, 13))
        assert all(p.fault.reads for p in planned if p.process == "p1" and p.number in (1, 3, 5, 7))

    @pytest.mark.parametrize("fault", FAULTS, ids=str)
    def test_nobody_is_told_the_outcome_of_what_has_not_landed(self, fault: Fault) -> None:
        if fault.lands in (Lands.NEVER, Lands.LATER):
            assert fault.then in (Then.DIES, Then.IS_TOLD_UNKNOWN, Then.IS_TOLD_UNAVAILABLE)
        if fault.reads:
            assert fault.then not in (Then.IS_TOLD_UNKNOWN, Then.IS_TOLD_REFUSED)


WHAT_COMES_OF_A_WRITE: dict[str, tuple[object, list[str]]] = {
    "crash-before": (DIED, []),
    "crash-after": (DIED, ["lands"]),
    "crash-late": (DIED, ["lands late"]),
    "lost-request": (Unknown, []),
    "lost-answer": (Unknown, ["lands"]),
    "late": (Unknown, ["lands late"]),
    "echo": (PreconditionFailed, ["lands"]),
    "duplicate": (Applied, ["lands", "lands late"]),
    "unavailable": (StoreUnavailable, []),
    "delay": (Applied, ["lands"]),
    "delay-answer": (Applied, ["lands"]),
    "freeze": (Applied, ["lands"]),
}


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_write_under_each_fault(fault: Fault) -> None:
    told, lands = WHAT_COMES_OF_A_WRITE[fault.name]
    for seed in SEEDS:
        world, result = under(f"p1@1:{fault}", create, seed)
        assert told in (result, type(result))
        assert landings(world) == lands
        assert world.snapshot() == ({KEY: b"mine"} if lands else {})
        assert [str(planned) for planned in world.fired] == [f"p1@1:{fault}"]


class TestWrites:
    def test_an_echo_tells_the_version_that_we_wrote_ourselves(self) -> None:
        async def echo(process: Process) -> object:
            refused = await process.store.put(KEY, b"mine", ABSENT)
            found = await process.store.get(KEY)
            assert isinstance(refused, PreconditionFailed)
            assert isinstance(found, Found)
            return refused.version == found.version

        assert under("p1@1:echo", echo)[1] is True

    @pytest.mark.parametrize("fault", ["echo", "lost-answer", "late", "duplicate", "crash-late", "delay"])
    def test_a_condition_that_does_not_hold_when_the_write_lands_stops_it(self, fault: str) -> None:
        async def scenario(world: World) -> None:
            await world.handle("p2").put(KEY, b"theirs", ABSENT)
            await world.process("p1").run(create(world.process("p1")))
            await world.settle()
            assert world.snapshot() == {KEY: b"theirs"}

        for seed in SEEDS:
            trace(scenario, seed, FaultPlan.parse(f"p1@1:{fault}"))

    def test_a_late_write_may_overtake_or_follow_what_others_do_meanwhile(self) -> None:
        async def scenario(world: World) -> None:
            await world.process("p1").run(create(world.process("p1")))
            await asyncio.sleep(1)
            theirs = await world.handle("p2").put(KEY, b"theirs", ABSENT)
            await world.settle()
            winners[isinstance(theirs, Applied)] += 1
            assert world.snapshot() == {KEY: b"theirs" if isinstance(theirs, Applied) else b"mine"}

        winners: Counter[bool] = Counter()
        for seed in SEEDS:
            trace(scenario, seed, FaultPlan.parse("p1@1:late"))
        assert set(winners) == {True, False}

    def test_a_copy_of_a_deletion_removes_what_was_made_since(self) -> None:
        async def scenario(world: World) -> None:
            store = world.handle("p1")
            await store.put(KEY, b"old", ABSENT)
            await store.delete(KEY)
            await store.put(KEY, b"new", ABSENT)
            await world.settle()

        left = [trace(scenario, seed, FaultPlan.parse("p1@2:duplicate")).snapshot() for seed in SEEDS]
        assert {} in left

    def test_a_delayed_write_lands_after_its_sender_has_given_up(self) -> None:
        async def scenario(world: World) -> None:
            store = world.handle("p1")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(DEADLINE):
                    await store.put(KEY, b"mine", ANY)
            assert world.snapshot() == {}
            await world.settle()
            assert world.snapshot() == {KEY: b"mine"}

        for seed in SEEDS:
            trace(scenario, seed, FaultPlan.parse("p1@1:delay"))

    def test_a_write_given_up_in_flight_lands_soon_or_minutes_later_or_never(self) -> None:
        async def scenario(world: World) -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await world.handle("p1").put(KEY, b"mine", ANY)
            await world.settle()

        worlds = [trace(scenario, seed) for seed in range(100)]
        assert any(not landings(world) for world in worlds)
        times = sorted(event.at for world in worlds for event in world.history if event.step.startswith("lands"))
        assert times[0] < 1
        assert times[-1] > 60

    def test_a_write_given_up_after_it_landed_has_landed_once(self) -> None:
        async def scenario(world: World) -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(DEADLINE):
                    await world.handle("p1").put(KEY, b"mine", ANY)
            await world.settle()

        for seed in SEEDS:
            assert landings(trace(scenario, seed, FaultPlan.parse("p1@1:delay-answer"))) == ["lands"]


class TestReads:
    @pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.reads], ids=str)
    @pytest.mark.parametrize("kind", ["get", "get_range", "list"])
    def test_a_read_under_each_fault_that_can_befall_it(self, fault: Fault, kind: str) -> None:
        async def read(process: Process) -> object:
            arguments = {"get": (KEY,), "get_range": (KEY, 0, 1), "list": ("a/",)}[kind]
            try:
                return await getattr(process.store, kind)(*arguments)
            except StoreUnavailable:
                return StoreUnavailable

        world, result = under(f"p1@1:{fault}", read)
        _, expected = under("", read)
        slow = world.loop.time() > DEADLINE
        assert slow == (fault in (faults.DELAY, faults.DELAY_ANSWER, faults.FREEZE))
        if fault is faults.CRASH_BEFORE:
            assert result is DIED
        elif fault is faults.UNAVAILABLE:
            assert result is StoreUnavailable
        else:
            assert type(result) is type(expected)

    @pytest.mark.parametrize("fault", [fault for fault in FAULTS if not fault.reads], ids=str)
    def test_a_fault_of_writes_leaves_a_read_alone(self, fault: Fault) -> None:
        async def read(process: Process) -> object:
            return await process.store.get(KEY)

        world, result = under(f"p1@1:{fault}", read)
        assert isinstance(result, Missing)
        assert world.fired == []

    def test_nothing_more_is_heard_of_a_read_given_up(self) -> None:
        async def scenario(world: World) -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await world.handle("p1").get(KEY)
            await world.settle()

        assert {trace(scenario, seed).history[-1].step for seed in SEEDS} == {"abandoned"}

    @pytest.mark.parametrize(("fault", "stale"), [("delay", False), ("delay-answer", True), ("freeze", True)])
    def test_a_slow_answer_is_a_stale_one(self, fault: str, stale: bool) -> None:
        async def scenario(world: World) -> None:
            reading = asyncio.create_task(world.process("p1").run(read(world.process("p1"))))
            await asyncio.sleep(10)
            await world.handle("p2").put(KEY, b"new", ANY)
            assert isinstance(await reading, Missing) is stale

        async def read(process: Process) -> object:
            return await process.store.get(KEY)

        trace(scenario, 0, FaultPlan.parse(f"p1@1:{fault}"))


def test_a_frozen_process_wakes_with_its_timeouts_unrung_and_its_wall_clock_far_ahead() -> None:
    async def work(process: Process) -> object:
        began = process.runtime.now_ms()
        async with asyncio.timeout(DEADLINE):
            await asyncio.gather(process.store.get(KEY), process.store.get("another"), process.runtime.sleep(15))
        return process.runtime.now_ms() - began

    _, passed_ms = under("p1@1:freeze", work)
    assert isinstance(passed_ms, int)
    assert passed_ms > DEADLINE * 1000


def test_what_a_frozen_process_has_sent_lands_meanwhile() -> None:
    async def work(process: Process) -> None:
        await asyncio.gather(process.store.get("freezes"), process.store.put(KEY, b"x", ANY))

    for seed in SEEDS:
        world, _ = under("p1@1:freeze", work, seed)
        [landed] = [event.at for event in world.history if event.key == KEY and event.step == "lands"]
        [answered] = [event.at for event in world.history if event.key == "freezes" and event.step == "answered"]
        assert landed < DEADLINE < answered


class TestDeath:
    def test_the_call_that_kills_and_every_later_one_raise_crashed(self) -> None:
        seen: list[str] = []

        async def stubborn(process: Process) -> str:
            for _ in range(3):
                try:
                    await process.store.put(KEY, b"x", ANY)
                except Crashed:
                    seen.append("crashed")
            return "survived"

        world, result = under("p1@1:crash-before", stubborn)
        assert seen == ["crashed"] * 3
        assert result is DIED
        assert world.snapshot() == {}

    def test_cleaning_up_has_no_effect(self) -> None:
        async def tidy(process: Process) -> None:
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(process.store.get(KEY))
                    group.create_task(process.runtime.sleep(60))
            finally:
                await process.store.put(KEY, b"cleaned", ANY)

        world, result = under("p1@1:crash-before", tidy)
        assert result is DIED
        assert world.snapshot() == {}

    def test_all_work_of_the_process_dies_and_no_other(self) -> None:
        async def work(process: Process) -> str:
            await process.runtime.sleep(5)
            await process.store.put(process.name, b"done", ANY)
            return "done"

        async def scenario(world: World) -> None:
            p1, p2 = world.process("p1"), world.process("p2")
            results.extend(await asyncio.gather(p1.run(create(p1)), p1.run(work(p1)), p2.run(work(p2))))

        results: list[object] = []
        world = trace(scenario, plan=FaultPlan.parse("p1@1:crash-after"))
        assert results == [DIED, DIED, "done"]
        assert world.snapshot() == {KEY: b"mine", "p2": b"done"}
        assert not world.process("p1").alive

    def test_each_call_in_flight_lands_or_does_not_by_itself(self) -> None:
        async def work(process: Process) -> None:
            async with asyncio.TaskGroup() as group:
                for key in ("killer", "a", "b"):
                    group.create_task(process.store.put(key, b"x", ANY))

        left = Counter(frozenset(under("p1@1:crash-before", work, seed)[0].snapshot()) for seed in range(200))
        assert set(left) == {frozenset(), frozenset("a"), frozenset("b"), frozenset("ab")}

    def test_a_client_that_goes_away_cancels_what_the_process_does_for_it(self) -> None:
        async def work(process: Process) -> None:
            await process.runtime.sleep(2 * DEADLINE)
            await create(process)

        async def scenario(world: World) -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(DEADLINE):
                    await world.process("p1").run(work(world.process("p1")))
            await asyncio.sleep(2 * DEADLINE)
            assert world.process("p1").alive

        assert trace(scenario).history == []

    def test_a_dead_process_does_no_more_work(self) -> None:
        async def scenario(world: World) -> None:
            process = world.process("p1")
            process.crash()
            process.crash()
            assert await process.run(create(process)) is DIED

        world = trace(scenario)
        assert [(event.process, event.step) for event in world.history] == [("p1", "dies")]


class TestObservers:
    def test_an_observer_sees_every_applied_write_in_the_instant_after_it(self) -> None:
        async def scenario(world: World) -> None:
            world.observe(lambda event: seen.append((event, world.snapshot())))
            store = world.handle("p1")
            await store.put(KEY, b"1", ABSENT)
            await store.put(KEY, b"2", ABSENT)
            await store.put(KEY, b"3", ANY)
            await store.get(KEY)
            await store.delete(KEY)

        seen: list[tuple[Event, dict[str, bytes]]] = []
        trace(scenario, plan=FaultPlan.parse("p1@3:lost-answer"))
        assert [event.number for event, _ in seen] == [1, 3, 5]
        assert [snapshot for _, snapshot in seen] == [{KEY: b"1"}, {KEY: b"3"}, {}]

    def test_what_an_observer_raises_ends_the_run(self) -> None:
        async def scenario(world: World) -> None:
            def forbid(event: Event) -> None:
                raise AssertionError(f"forbidden: {event.key}")

            world.observe(forbid)
            await world.process("p1").run(create(world.process("p1")))

        with pytest.raises(AssertionError, match="forbidden: a/key"):
            trace(scenario, plan=NO_FAULTS)
