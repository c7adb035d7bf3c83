"""The protocols of docs/design, by simulation: every crash point, and much else, with an auditor throughout.

`make test` tries a share of it, `make test-thorough` all, `make test-slow` many times that (`thoroughness.py`).
"""

import logging
from functools import cache

import pytest

from arco_catalog.protocol import pointer_turns
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
from tests.simulation.scenarios import (
    REGISTRY,
    SCENARIOS,
    a_transaction_of_one_key_twice_and_a_commit,
    spilled,
    two_transactions_in_opposite_order,
)
from tests.simulation.thoroughness import EVERYTHING, TIMES, count, sample

SPARED = ("setup", "last walk")
"""Processes to which nothing happens: what comes before, and what the auditor waits for."""
SECONDS = 240.0 * TIMES
CONTENDED = [two_transactions_in_opposite_order, a_transaction_of_one_key_twice_and_a_commit]
SPILLED = [spilled(scenario) for scenario in SCENARIOS]
SPILLED_REGISTRY = [spilled(scenario) for scenario in REGISTRY]


@pytest.fixture(autouse=True)
def no_warnings_about_dropped_writes() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)


@cache
def calls_of(scenario: Scenario) -> dict[str, list[Kind]]:
    """The calls of the processes that things may happen to."""
    return {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}


def others(scenario: Scenario) -> list[FaultPlan]:
    """Every single fault that is no crash."""
    return list(every_single_fault(calls_of(scenario), [fault for fault in FAULTS if fault not in CRASHES]))


def crashes(scenario: Scenario) -> list[FaultPlan]:
    """Every crash point; those that differ for the store, unless there is time for all."""
    calls = calls_of(scenario)
    return list(every_single_fault(calls, CRASHES) if EVERYTHING else distinct_crashes(calls))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_writers_that_meet_in_any_order_are_told_the_truth(scenario: Scenario) -> None:
    explored = explore(scenario, range(count(20)), seconds=SECONDS)
    assert explored.runs > 0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_a_crash_at_any_call_leaves_no_lie_and_no_loss(scenario: Scenario) -> None:
    plans = crashes(scenario)
    explored = explore(scenario, range(TIMES), sample(scenario, plans, len(plans)), seconds=SECONDS)
    assert explored.complete
    assert explored.deaths > 0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_any_other_fault_at_any_call_leaves_no_lie_and_no_loss(scenario: Scenario) -> None:
    assert explore(scenario, range(TIMES), sample(scenario, others(scenario), 40), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_several_faults_at_once_leave_no_lie_and_no_loss(scenario: Scenario) -> None:
    plans = list(random_plans(2026, count(25), calls_of(scenario)))
    assert explore(scenario, range(1), plans, seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", CONTENDED, ids=name_of)
def test_turns_after_every_loss_leave_no_lie_and_no_loss(monkeypatch: pytest.MonkeyPatch, scenario: Scenario) -> None:
    """Also where the transaction that took one dies at any call, or hears no answer."""
    monkeypatch.setattr(pointer_turns, "LOSSES", 1)
    calls = {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}
    faults = [*distinct_crashes(calls), *every_single_fault(calls, [each for each in FAULTS if each not in CRASHES])]
    assert explore(scenario, range(count(30)), seconds=SECONDS).runs > 0
    assert explore(scenario, range(TIMES), sample(scenario, faults, 60), seconds=SECONDS).complete


# The same over an index of which every commit spills a part.


@pytest.mark.parametrize("scenario", SPILLED, ids=name_of)
def test_over_a_spilled_index_writers_are_told_the_truth(scenario: Scenario) -> None:
    assert explore(scenario, range(count(8)), seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", SPILLED, ids=name_of)
def test_over_a_spilled_index_a_crash_at_any_call_leaves_no_lie_and_no_loss(scenario: Scenario) -> None:
    """Where names change, every call; elsewhere a sample."""
    plans = crashes(scenario)
    tried = sample(scenario, plans, len(plans) if scenario in SPILLED_REGISTRY else 12)
    explored = explore(scenario, range(TIMES), tried, seconds=SECONDS)
    assert explored.complete
    assert explored.deaths > 0


@pytest.mark.parametrize("scenario", SPILLED_REGISTRY, ids=name_of)
def test_over_a_spilled_index_other_faults_leave_no_lie_and_no_loss(scenario: Scenario) -> None:
    assert explore(scenario, range(TIMES), sample(scenario, others(scenario), 30), seconds=SECONDS).complete
