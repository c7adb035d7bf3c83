"""The protocols of docs/design, by simulation: every crash point, and much else, with an auditor throughout.

`make test-slow` runs the same with `ARCO_SIM_RUNS` times as many seeds and random plans.
"""

import logging
import os
from collections.abc import Sequence

import pytest

from tests.simulation.explore import Scenario, explore, name_of, trace
from tests.simulation.faults import (
    CRASHES,
    FAULTS,
    FaultPlan,
    Kind,
    distinct_crashes,
    every_single_fault,
    random_plans,
)
from tests.simulation.scenarios import REGISTRY, SCENARIOS, spilled

SPARED = ("setup", "last walk")
"""Processes to which nothing happens: what comes before, and what the auditor waits for."""
THOROUGHNESS = int(os.environ.get("ARCO_SIM_RUNS", "1"))
SECONDS = 240.0 * THOROUGHNESS
SPILLED = [spilled(scenario) for scenario in SCENARIOS]
SPILLED_REGISTRY = [spilled(scenario) for scenario in REGISTRY]


@pytest.fixture(autouse=True)
def no_warnings_about_dropped_writes() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)


def calls_of(scenario: Scenario, seed: int = 0) -> dict[str, list[Kind]]:
    """The calls of the processes that things may happen to."""
    return {process: kinds for process, kinds in trace(scenario, seed).calls.items() if process not in SPARED}


def sample(plans: Sequence[FaultPlan], most: int) -> Sequence[FaultPlan]:
    """At most this many of them, evenly spread; all, if there is time."""
    return plans if THOROUGHNESS > 1 else plans[:: max(1, -(-len(plans) // most))]


def others(scenario: Scenario) -> list[FaultPlan]:
    """Every single fault that is no crash."""
    return list(every_single_fault(calls_of(scenario), [fault for fault in FAULTS if fault not in CRASHES]))


def crashes(scenario: Scenario) -> list[FaultPlan]:
    """Every crash point; those that differ for the store, unless there is time for all."""
    calls = calls_of(scenario)
    return list(every_single_fault(calls, CRASHES) if THOROUGHNESS > 1 else distinct_crashes(calls))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_writers_that_meet_in_any_order_are_told_the_truth(scenario: Scenario) -> None:
    explored = explore(scenario, range(20 * THOROUGHNESS), seconds=SECONDS)
    assert explored.runs > 0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_a_crash_at_any_call_leaves_no_lie_and_no_loss(scenario: Scenario) -> None:
    explored = explore(scenario, range(THOROUGHNESS), crashes(scenario), seconds=SECONDS)
    assert explored.complete
    assert explored.deaths > 0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_any_other_fault_at_any_call_leaves_no_lie_and_no_loss(scenario: Scenario) -> None:
    assert explore(scenario, range(THOROUGHNESS), sample(others(scenario), 40), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_several_faults_at_once_leave_no_lie_and_no_loss(scenario: Scenario) -> None:
    plans = list(random_plans(2026, 25 * THOROUGHNESS, calls_of(scenario)))
    assert explore(scenario, range(1), plans, seconds=SECONDS).runs > 0


# The same over an index of which every commit spills a part.


@pytest.mark.parametrize("scenario", SPILLED, ids=name_of)
def test_over_a_spilled_index_writers_are_told_the_truth(scenario: Scenario) -> None:
    assert explore(scenario, range(8 * THOROUGHNESS), seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", SPILLED, ids=name_of)
def test_over_a_spilled_index_a_crash_at_any_call_leaves_no_lie_and_no_loss(scenario: Scenario) -> None:
    """Where names change, every call; elsewhere a sample, unless there is time."""
    plans = crashes(scenario)
    tried = plans if scenario in SPILLED_REGISTRY else sample(plans, 12)
    explored = explore(scenario, range(THOROUGHNESS), tried, seconds=SECONDS)
    assert explored.complete
    assert explored.deaths > 0


@pytest.mark.parametrize("scenario", SPILLED_REGISTRY, ids=name_of)
def test_over_a_spilled_index_other_faults_leave_no_lie_and_no_loss(scenario: Scenario) -> None:
    assert explore(scenario, range(THOROUGHNESS), sample(others(scenario), 30), seconds=SECONDS).complete
