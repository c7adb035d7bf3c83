"""Runs repeat bit for bit; exploring finds planted bugs, and passes what is right; a failure replays from one line."""

import os
import re
import subprocess
import sys
import unittest
from itertools import count
from pathlib import Path

import pytest

from tests.iceberg.counted import steps_of
from tests.simulation import example_protocols, faults
from tests.simulation.explore import REPLAY, Exploration, Scenario, explore, trace
from tests.simulation.faults import FAULTS, Fault, FaultPlan, every_single_fault, random_plans
from tests.simulation.history import render
from tests.simulation.world import World

ROOT = Path(__file__).resolve().parents[2]
PLAN = FaultPlan.parse("p1@2:freeze,p2@2:late,p3@2:crash-after,p3+@2:echo")
LINE = re.compile(rf"^{REPLAY}='(.*)\|(\d+)\|(.*)'$", re.MULTILINE)


@pytest.fixture(autouse=True)
def no_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about exploring itself: a replay asked for elsewhere must not change them."""
    monkeypatch.delenv(REPLAY, raising=False)


def single_faults(scenario: Scenario, *wanted: Fault) -> list[FaultPlan]:
    return list(every_single_fault(trace(scenario).calls, wanted or FAULTS))


class TestDeterminism:
    def test_a_seed_gives_the_same_history_the_same_clock_and_the_same_next_random_number(self) -> None:
        def remains(seed: int) -> tuple[object, ...]:
            world = trace(example_protocols.shared_list(example_protocols.CAREFUL), seed, PLAN)
            process = world.process("p1")
            return (world.history, world.loop.time(), world.loop.steps, process.runtime.random(), world.runtime.ulid())

        assert all(remains(seed) == remains(seed) for seed in range(20))
        assert remains(1) != remains(2)

    def test_the_order_of_hashes_changes_nothing(self) -> None:
        """A replay line is good in another interpreter, where strings hash otherwise."""
        program = (
            "from tests.simulation.example_protocols import CAREFUL, shared_list;"
            "from tests.simulation.explore import trace;"
            "from tests.simulation.faults import FaultPlan; from tests.simulation.history import render;"
            f"print(render(trace(shared_list(CAREFUL), 7, FaultPlan.parse('{PLAN}')).history))"
        )
        expected = render(trace(example_protocols.shared_list(example_protocols.CAREFUL), 7, PLAN).history)
        for hash_seed in ("1", "2"):
            environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
            done = subprocess.run(
                [sys.executable, "-c", program],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            assert done.stdout.rstrip("\n") == expected


class TestFindingBugs:
    def test_a_careful_writer_survives_every_single_fault(self) -> None:
        scenario = example_protocols.shared_list(example_protocols.CAREFUL)
        plans = single_faults(scenario)
        covered = explore(scenario, range(3), plans)
        assert covered.complete
        assert covered.runs == 3 * len(plans)
        assert set(covered.faults()) == {fault.name for fault in FAULTS}
        assert covered.deaths > 0

    def test_a_careful_writer_survives_several_faults_at_once(self) -> None:
        scenario = example_protocols.shared_list(example_protocols.CAREFUL)
        covered = explore(scenario, range(2), list(random_plans(1, 150, trace(scenario).calls, most=4)))
        assert covered.complete
        assert set(covered.faults()) == {fault.name for fault in FAULTS}

    def test_a_lost_update_is_found_without_any_fault(self) -> None:
        with pytest.raises(AssertionError, match="lost"):
            explore(example_protocols.shared_list(example_protocols.LOSES_UPDATES), range(50))

    def test_applying_twice_after_an_unknown_outcome_is_found(self) -> None:
        scenario = example_protocols.shared_list(example_protocols.APPLIES_TWICE)
        explore(scenario, range(20))
        with pytest.raises(AssertionError, match="applied twice"):
            explore(scenario, range(3), single_faults(scenario, faults.LOST_ANSWER))

    def test_taking_an_echo_for_a_conflict_is_found(self) -> None:
        scenario = example_protocols.shared_list(example_protocols.IGNORES_ECHOES)
        explore(scenario, range(3), single_faults(scenario, faults.LOST_ANSWER, faults.LATE))
        with pytest.raises(AssertionError, match="applied twice"):
            explore(scenario, range(3), single_faults(scenario, faults.ECHO))

    def test_taking_an_unknown_outcome_for_a_success_is_found(self) -> None:
        scenario = example_protocols.shared_list(example_protocols.LIES)
        with pytest.raises(AssertionError, match="and lost"):
            explore(scenario, range(3), single_faults(scenario, faults.LOST_REQUEST))

    @pytest.mark.parametrize("fault", [faults.FREEZE, faults.DELAY, faults.LATE], ids=str)
    def test_a_write_that_outlives_its_lease_is_found(self, fault: Fault) -> None:
        scenario = example_protocols.leased_counter(fenced=False)
        explore(scenario, range(20))
        with pytest.raises(AssertionError, match="overwritten"):
            explore(scenario, range(20), single_faults(scenario, fault))

    @pytest.mark.parametrize("fault", [faults.FREEZE, faults.DELAY, faults.LATE], ids=str)
    def test_a_fenced_write_that_outlives_its_lease_does_no_harm(self, fault: Fault) -> None:
        scenario = example_protocols.leased_counter(fenced=True)
        assert explore(scenario, range(20), single_faults(scenario, fault)).complete


class TestReplay:
    buggy = staticmethod(example_protocols.shared_list(example_protocols.APPLIES_TWICE, writers=("p1",)))

    def failure(self) -> tuple[str, str]:
        """The text of a failure, and the value that replays it."""
        with pytest.raises(AssertionError) as failure:
            explore(self.buggy, range(3), [FaultPlan.parse("p1@1:delay,p1@2:lost-answer,p1@3:freeze")], name="buggy")
        [match] = LINE.finditer(str(failure.value))
        return str(failure.value), "|".join(match.groups())

    def test_a_failure_has_one_line_that_replays_it_with_the_faults_that_it_needs(self) -> None:
        text, line = self.failure()
        assert line == "buggy|0|p1@2:lost-answer"
        assert "applied twice" in text.splitlines()[0]
        assert "[lost-answer]" in text

    def test_a_replay_executes_that_run_alone_and_prints_its_history(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        text, line = self.failure()
        monkeypatch.setenv(REPLAY, line)
        with pytest.raises(AssertionError) as again:
            explore(self.buggy, range(1_000_000), name="buggy")
        assert str(again.value) == text
        assert "[lost-answer]" in capsys.readouterr().out

    def test_a_replay_that_passes_proves_nothing_else(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, line = self.failure()
        monkeypatch.setenv(REPLAY, line)
        with pytest.raises(unittest.SkipTest, match="passes"):
            explore(example_protocols.shared_list(example_protocols.CAREFUL, writers=("p1",)), range(3), name="buggy")
        assert "[lost-answer]" in capsys.readouterr().out

    def test_other_scenarios_do_not_run_meanwhile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(REPLAY, "another|1|")
        with pytest.raises(unittest.SkipTest, match="another"):
            explore(self.buggy, range(3), name="buggy")


class TestBudgets:
    def test_the_number_of_runs_is_bounded(self) -> None:
        covered = explore(example_protocols.shared_list(example_protocols.CAREFUL), range(1_000_000), max_runs=7)
        assert (covered.runs, covered.complete) == (7, False)
        assert "7 runs (cut short)" in str(covered)

    def test_the_time_is_bounded(self) -> None:
        scenario = example_protocols.shared_list(example_protocols.CAREFUL)
        covered = explore(scenario, range(1_000_000), seconds=60.0, clock=count(0.0, 10.0).__next__)
        assert (covered.runs, covered.complete, covered.seconds) == (6, False, 80.0)

    def test_every_plan_runs_under_the_first_seed_before_any_runs_under_the_second(self) -> None:
        async def scenario(world: World) -> None:
            order.append((world.seed, str(world.plan)))

        order: list[tuple[int, str]] = []
        plans = [FaultPlan.parse("p1@1:late"), FaultPlan.parse("p1@1:echo")]
        explore(scenario, range(2), plans)
        assert order == [(0, "p1@1:late"), (0, "p1@1:echo"), (1, "p1@1:late"), (1, "p1@1:echo")]


def test_a_call_takes_few_steps() -> None:
    """The budget of every scenario to come, counted in Python's steps rather than timed."""
    scenario = example_protocols.shared_list(example_protocols.CAREFUL, writers=tuple("abcdefgh"))
    covered: list[Exploration] = []
    steps = steps_of(lambda: covered.append(explore(scenario, range(5))))
    assert steps < 2_000 * covered[0].calls
