"""Expiries, by simulation: every crash point, lost answers, two workers, wrong clocks, and bugs that must be found."""

import logging
from collections.abc import Callable, Sequence
from functools import cache

import pytest

from tests.simulation import rule_mutations_for_expiries as rule_mutations
from tests.simulation.expiring import (
    SCENARIOS,
    a_branch_while_the_worker_commits,
    one_worker,
    workers_beside_appends,
)
from tests.simulation.explore import REPLAY, Scenario, explore, name_of, trace
from tests.simulation.faults import CRASHES, FAULTS, NO_FAULTS, FaultPlan, Kind, every_single_fault
from tests.simulation.known_runs import find
from tests.simulation.thoroughness import TIMES, count, sample

SPARED = ("setup", "last")
SECONDS = 300.0 * TIMES


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


@cache
def calls_of(scenario: Scenario) -> dict[str, list[Kind]]:
    """The calls of the processes that things may happen to."""
    return {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}


def plans(scenario: Scenario, *, crashes: bool) -> Sequence[FaultPlan]:
    wanted = [fault for fault in FAULTS if (fault in CRASHES) is crashes]
    return [*every_single_fault(calls_of(scenario), wanted)]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_workers_beside_writers_delete_nothing_that_is_needed(scenario: Scenario) -> None:
    assert explore(scenario, range(count(40)), seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_a_crash_at_any_call_is_made_up_for(scenario: Scenario) -> None:
    assert explore(
        scenario, range(TIMES), sample(scenario, plans(scenario, crashes=True), 120), seconds=SECONDS
    ).complete


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_any_other_fault_at_any_call_is_made_up_for(scenario: Scenario) -> None:
    wanted = plans(scenario, crashes=False)
    assert explore(scenario, range(TIMES), sample(scenario, wanted, 64), seconds=SECONDS).complete


PLANTED: Sequence[tuple[Callable[[pytest.MonkeyPatch], None], Scenario, bool]] = (
    (rule_mutations.commits_without_a_record, one_worker, False),
    (rule_mutations.files_that_are_deleted_after_a_day, one_worker, False),
    (rule_mutations.records_of_other_tasks_that_are_not_read, workers_beside_appends, False),
    (rule_mutations.updates_that_are_computed_once, a_branch_while_the_worker_commits, False),
    (rule_mutations.what_the_table_names_read_never, one_worker, False),
    (rule_mutations.lists_that_go_before_what_they_name, one_worker, True),
)
"""Each bug, a scenario that finds it, and whether only a crash does."""


@pytest.mark.parametrize(("plant", "scenario", "crashes"), PLANTED, ids=lambda each: getattr(each, "__name__", ""))
def test_a_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], scenario: Scenario, crashes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    crashed = ((0, plan) for plan in plans(scenario, crashes=True))
    assert find(plant, scenario, crashed if crashes else [(seed, NO_FAULTS) for seed in range(60)], seconds=SECONDS)
