"""Purges, by simulation: every crash point, two workers, leases that are lost, clocks that are wrong."""

import logging
from functools import cache

import pytest

from arco_catalog.upkeep.purge import deletion
from tests.simulation.explore import Scenario, explore, name_of, trace
from tests.simulation.faults import CRASHES, FAULTS, FREEZE, FaultPlan, Kind, every_single_fault, random_plans
from tests.simulation.purge_dangers import DANGERS
from tests.simulation.purging import SCENARIOS
from tests.simulation.purging_beside_neighbours import NEIGHBOURS
from tests.simulation.thoroughness import TIMES, count, sample

SPARED = ("setup", "last")
ALL = [*SCENARIOS, *DANGERS, *NEIGHBOURS]
SECONDS = 600.0 * TIMES


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "AT_ONCE", 1)  # or a purge of so few files has no middle
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


@cache
def calls_of(scenario: Scenario) -> dict[str, list[Kind]]:
    """The calls of the processes that things may happen to."""
    return {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}


def plans(scenario: Scenario, *faults: object) -> list[FaultPlan]:
    return list(every_single_fault(calls_of(scenario), [fault for fault in FAULTS if fault in faults]))


@pytest.mark.parametrize("scenario", ALL, ids=name_of)
def test_workers_and_clients_that_meet_in_any_order_delete_nothing_else(scenario: Scenario) -> None:
    assert explore(scenario, range(count(12)), seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", ALL, ids=name_of)
def test_a_crash_at_any_call_is_made_up_for(scenario: Scenario) -> None:
    wanted = plans(scenario, *CRASHES)
    assert explore(scenario, range(TIMES), sample(scenario, wanted, 40), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", ALL, ids=name_of)
def test_a_worker_that_lost_its_lease_and_wakes_does_no_harm(scenario: Scenario) -> None:
    wanted = plans(scenario, FREEZE)
    assert explore(scenario, range(count(2)), sample(scenario, wanted, 30), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", ALL, ids=name_of)
def test_any_other_fault_at_any_call_is_made_up_for(scenario: Scenario) -> None:
    wanted = plans(scenario, *(fault for fault in FAULTS if fault not in CRASHES and fault is not FREEZE))
    assert explore(scenario, range(TIMES), sample(scenario, wanted, 60), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", ALL, ids=name_of)
def test_several_faults_at_once_are_made_up_for(scenario: Scenario) -> None:
    chosen = list(random_plans(2026, count(15), calls_of(scenario)))
    assert explore(scenario, range(1), chosen, seconds=SECONDS).runs > 0
