"""Appends that the catalog rebases, by simulation: with every crash point, lost answers, and collections between
(docs/design/appends.md)."""

import logging
from collections.abc import Sequence
from functools import cache

import pytest

from arco_catalog.protocol import operation_request, pointer_turns
from tests.simulation import appending
from tests.simulation import rule_mutations_for_appends as bugs
from tests.simulation.collecting import KEY_MS
from tests.simulation.explore import REPLAY, Scenario, explore, name_of, trace
from tests.simulation.faults import (
    CRASHES,
    FAULTS,
    NO_FAULTS,
    FaultPlan,
    Kind,
    distinct_crashes,
    every_single_fault,
    random_plans,
)
from tests.simulation.known_runs import find
from tests.simulation.rule_mutations import Mutation
from tests.simulation.thoroughness import TIMES, count, sample

SPARED = ("setup", "last", "lake")
"""Processes to which nothing happens; the clients write their files by the last of them."""
SECONDS = 120.0 * TIMES


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_request, "DAY_MS", KEY_MS)
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


@cache
def calls_of(scenario: Scenario) -> dict[str, list[Kind]]:
    """The calls of the processes that things may happen to."""
    return {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}


@pytest.mark.parametrize("scenario", appending.SCENARIOS, ids=name_of)
def test_appends_that_meet_in_any_order_are_all_there_once(scenario: Scenario) -> None:
    assert explore(scenario, range(count(60)), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", appending.SCENARIOS, ids=name_of)
def test_a_crash_at_any_call_loses_and_repeats_no_row(scenario: Scenario) -> None:
    wanted = list(distinct_crashes(calls_of(scenario)))
    assert explore(scenario, range(TIMES), sample(scenario, wanted, 90), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", appending.SCENARIOS, ids=name_of)
def test_any_other_fault_at_any_call_loses_and_repeats_no_row(scenario: Scenario) -> None:
    wanted = list(every_single_fault(calls_of(scenario), [fault for fault in FAULTS if fault not in CRASHES]))
    assert explore(scenario, range(TIMES), sample(scenario, wanted, 60), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", appending.SCENARIOS, ids=name_of)
def test_several_faults_at_once_lose_and_repeat_no_row(scenario: Scenario) -> None:
    plans = list(random_plans(2026, count(40), calls_of(scenario)))
    assert explore(scenario, range(1), plans, seconds=SECONDS).complete


CASES: Sequence[tuple[Mutation, Scenario]] = [
    (bugs.a_rebase_that_loses_the_manifests_of_the_winner, appending.appends_of_three_clients),
    (bugs.a_sequence_number_that_is_not_raised, appending.appends_of_three_clients),
    (bugs.a_first_row_id_that_is_repeated, appending.appends_with_row_ids),
    (bugs.a_rebased_merge_that_matched_nothing, appending.appends_of_three_clients),
    (bugs.two_rebased_coordinators, appending.appends_of_three_clients),
    (bugs.a_list_that_goes_with_the_receipt_of_its_commit, appending.appends_beside_a_collector),
    (bugs.a_time_that_is_not_later_than_the_parents, appending.appends_of_three_clients),
]


def test_every_planted_bug_has_a_case() -> None:
    assert [bug for bug, _ in CASES] == [*bugs.BUGS]


@pytest.mark.parametrize(("bug", "scenario"), CASES, ids=[bug.__name__ for bug, _ in CASES])
def test_the_simulation_finds(bug: Mutation, scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    runs: list[tuple[int, FaultPlan]] = [(seed, NO_FAULTS) for seed in range(60)]
    assert find(bug, scenario, runs)


def test_turns_after_every_loss_neither_lose_nor_repeat_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the writer that took one dies at any call, or hears no answer."""
    scenario, before = appending.appends_at_once, calls_of(appending.appends_at_once)
    monkeypatch.setattr(pointer_turns, "LOSSES", 1)
    calls = {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}

    assert sum(map(len, calls.values())) > sum(map(len, before.values()))
    assert explore(scenario, range(count(60)), seconds=SECONDS).complete
    wanted = [*distinct_crashes(calls), *every_single_fault(calls, [each for each in FAULTS if each not in CRASHES])]
    assert explore(scenario, range(TIMES), sample(scenario, wanted, 90), seconds=SECONDS).complete
