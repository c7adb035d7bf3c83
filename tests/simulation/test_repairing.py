"""Checks and repairs beside writers, by simulation: in any order, and with a crash or another fault at any call."""

import logging
from collections.abc import Sequence
from functools import cache

import pytest

from arco_catalog.protocol.catalog import Session
from arco_catalog.upkeep.fsck.repairs import PutHint
from arco_catalog.upkeep.purge import deletion
from tests.simulation import repairing
from tests.simulation.explore import REPLAY, Scenario, explore, name_of, trace
from tests.simulation.faults import CRASHES, FAULTS, FaultPlan, Kind, every_single_fault
from tests.simulation.repairing import PURGES, SCENARIOS
from tests.simulation.thoroughness import TIMES, count, sample

SPARED = ("setup", "last", "last walk", "thief")
SECONDS = 300.0 * TIMES
ALL = [*SCENARIOS, *PURGES]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "AT_ONCE", 1)  # or a purge of so few files has no middle
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


@cache
def calls_of(scenario: Scenario) -> dict[str, list[Kind]]:
    """The calls of the processes that things may happen to."""
    return {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}


def plans(scenario: Scenario, *, crashes: bool) -> Sequence[FaultPlan]:
    """A sample of single faults at the calls of those to whom things may happen."""
    wanted = list(every_single_fault(calls_of(scenario), [each for each in FAULTS if (each in CRASHES) is crashes]))
    return sample(scenario, wanted, 25)


@pytest.mark.parametrize("scenario", ALL, ids=name_of)
def test_repairs_that_meet_writers_in_any_order_do_no_harm(scenario: Scenario) -> None:
    assert explore(scenario, range(count(12)), seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", ALL, ids=name_of)
def test_a_crash_at_any_call_beside_repairs_is_made_up_for(scenario: Scenario) -> None:
    assert explore(scenario, range(TIMES), plans(scenario, crashes=True), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", ALL, ids=name_of)
def test_any_other_fault_at_any_call_beside_repairs_is_made_up_for(scenario: Scenario) -> None:
    assert explore(scenario, range(TIMES), plans(scenario, crashes=False), seconds=SECONDS).complete


def test_without_the_repair_a_purge_whose_hints_are_stolen_is_never_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(self: PutHint, session: Session) -> bool:
        return False

    monkeypatch.delenv(REPLAY, raising=False)
    monkeypatch.setattr(PutHint, "__call__", nothing)
    with pytest.raises(AssertionError, match=r"nobody will look at it|is lost"):
        explore(repairing.repairs_beside_a_purge_whose_hints_are_stolen, range(20), seconds=SECONDS)
