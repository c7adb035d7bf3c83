"""Collections, by simulation: beside writers, with every crash point, lost and late writes, and wrong clocks."""

import logging
from functools import cache

import pytest

from arco_catalog.protocol import operation_request
from tests.simulation import collecting, purging_beside_collections
from tests.simulation.collecting import KEY_MS
from tests.simulation.explore import Scenario, explore, name_of, trace
from tests.simulation.faults import CRASHES, FAULTS, FREEZE, FaultPlan, Kind, every_single_fault, random_plans
from tests.simulation.thoroughness import TIMES, count, sample

SCENARIOS = [*collecting.SCENARIOS, *purging_beside_collections.SCENARIOS]
SPARED = ("setup", "last")
SECONDS = 600.0 * TIMES


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_request, "DAY_MS", KEY_MS)
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


@cache
def calls_of(scenario: Scenario) -> dict[str, list[Kind]]:
    """The calls of the processes that things may happen to."""
    return {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}


def plans(scenario: Scenario, *faults: object) -> list[FaultPlan]:
    return list(every_single_fault(calls_of(scenario), [fault for fault in FAULTS if fault in faults]))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_collectors_and_writers_that_meet_in_any_order_do_no_harm(scenario: Scenario) -> None:
    assert explore(scenario, range(count(3)), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_a_crash_at_any_call_does_no_harm(scenario: Scenario) -> None:
    wanted = plans(scenario, *CRASHES)
    assert explore(scenario, range(TIMES), sample(scenario, wanted, 6), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_any_other_fault_at_any_call_does_no_harm(scenario: Scenario) -> None:
    wanted = plans(scenario, *(fault for fault in FAULTS if fault not in CRASHES))
    assert explore(scenario, range(TIMES), sample(scenario, wanted, 7), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_a_process_that_stands_still_and_wakes_does_no_harm(scenario: Scenario) -> None:
    wanted = plans(scenario, FREEZE)
    assert explore(scenario, range(TIMES), sample(scenario, wanted, 3), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_several_faults_at_once_do_no_harm(scenario: Scenario) -> None:
    chosen = list(random_plans(2026, count(4), calls_of(scenario)))
    assert explore(scenario, range(1), chosen, seconds=SECONDS).complete
