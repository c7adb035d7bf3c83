"""Grants are judged rightly whatever happens: in any order, through every crash, lost answer and wrong clock.

`make test` tries a share of it, `make test-thorough` all, `make test-slow` many times that (`thoroughness.py`).
"""

import logging
from functools import cache

import pytest

from tests.simulation.access.drawn import a_drawn_program
from tests.simulation.access.scenarios import SCENARIOS, spilled
from tests.simulation.explore import Scenario, explore, name_of, trace
from tests.simulation.faults import CRASHES, FAULTS, Kind, every_single_fault, random_plans
from tests.simulation.thoroughness import TIMES, count, sample

SPARED = ("setup",)
"""What comes before."""
SECONDS = 240.0 * TIMES
SAMPLE = 25
"""Single faults that are tried of a scenario, of all that there are."""


@pytest.fixture(autouse=True)
def no_warnings_about_failed_requests() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


@cache
def calls_of(scenario: Scenario) -> dict[str, list[Kind]]:
    """The calls of the processes that things may happen to."""
    return {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_requests_beside_revocations_are_judged_by_what_holds(scenario: Scenario) -> None:
    assert explore(scenario, range(count(15)), seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_a_crash_at_any_call_gives_nobody_a_right_and_denies_no_commit(scenario: Scenario) -> None:
    plans = list(every_single_fault(calls_of(scenario), CRASHES))
    explored = explore(scenario, range(TIMES), sample(scenario, plans, SAMPLE), seconds=SECONDS)
    assert explored.complete
    assert explored.deaths > 0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_any_other_fault_gives_nobody_a_right_and_denies_no_commit(scenario: Scenario) -> None:
    plans = list(every_single_fault(calls_of(scenario), [fault for fault in FAULTS if fault not in CRASHES]))
    assert explore(scenario, range(TIMES), sample(scenario, plans, SAMPLE), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_several_faults_at_once_give_nobody_a_right_and_deny_no_commit(scenario: Scenario) -> None:
    plans = list(random_plans(2026, count(15), calls_of(scenario)))
    assert explore(scenario, range(1), plans, seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", [a_drawn_program, spilled(a_drawn_program)], ids=name_of)
def test_drawn_programs_are_judged_by_what_holds(scenario: Scenario) -> None:
    """Each seed is another program; some of the faults that are planned by the first one's calls befall the others."""
    assert explore(scenario, range(count(25)), seconds=SECONDS).runs > 0
    plans = list(random_plans(2028, count(25), calls_of(scenario)))
    for seed, plan in enumerate(plans):
        assert explore(scenario, [seed], [plan], seconds=SECONDS).runs == 1


@pytest.mark.parametrize("scenario", [spilled(scenario) for scenario in SCENARIOS], ids=name_of)
def test_over_spilled_indexes_requests_are_judged_the_same(scenario: Scenario) -> None:
    assert explore(scenario, range(count(5)), seconds=SECONDS).runs > 0
    plans = list(random_plans(2027, count(10), calls_of(scenario)))
    assert explore(scenario, range(1), plans, seconds=SECONDS).runs > 0
