"""Who has little time gets through, and nobody pays for what others ask; the bugs that break this are found."""

import logging

import pytest

from tests.simulation import rule_mutations_for_programs as rule_mutations
from tests.simulation.bounds import (
    RUNS,
    a_long_table_and_reconcilers_with_little_time,
    an_old_key_beside_creators,
)
from tests.simulation.explore import REPLAY, Scenario, explore, trace
from tests.simulation.faults import CRASHES, every_single_fault
from tests.simulation.rule_mutations import Mutation

SEEDS = range(5)
DEATHS = 24
"""Deaths of reconcilers that are tried, of all at one call."""


@pytest.fixture(autouse=True)
def no_warnings_about_dropped_writes() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)


def test_runs_of_a_reconciler_that_are_cut_short_get_through_together() -> None:
    assert explore(a_long_table_and_reconcilers_with_little_time, SEEDS).complete


def test_a_run_of_a_reconciler_that_dies_anywhere_costs_one_run_at_most() -> None:
    calls = trace(a_long_table_and_reconcilers_with_little_time).calls
    plans = list(every_single_fault({run: calls[run] for run in (f"run{number}" for number in range(RUNS))}, CRASHES))
    explored = explore(a_long_table_and_reconcilers_with_little_time, range(1), plans[:: len(plans) // DEATHS])
    assert explored.complete
    assert explored.deaths >= DEATHS


def test_an_old_key_walks_through_the_registrys_history_once() -> None:
    assert explore(an_old_key_beside_creators, SEEDS).complete


CASES: list[tuple[Mutation, Scenario]] = [
    (rule_mutations.a_walk_that_is_cut_taken_for_complete, a_long_table_and_reconcilers_with_little_time),
    (rule_mutations.a_walk_that_is_cut_not_remembered, a_long_table_and_reconcilers_with_little_time),
    (rule_mutations.history_walked_through_at_every_look, an_old_key_beside_creators),
]


@pytest.mark.parametrize(("bug", "scenario"), CASES, ids=[bug.__name__ for bug, _ in CASES])
def test_a_scenario_about_bounds_finds(bug: Mutation, scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=REPLAY):
        explore(scenario, SEEDS)
