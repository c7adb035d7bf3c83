"""The event feed has everything once, after its predecessor, beside changes that are drawn, under faults and crashes,
and the bugs that break this are found (docs/design/events.md)."""

import logging
from collections.abc import Iterator, Mapping, Sequence

import pytest

from tests.simulation import feed_histories, feeding
from tests.simulation import rule_mutations_for_feeds as bugs
from tests.simulation.explore import REPLAY, Scenario, explore, name_of, trace
from tests.simulation.faults import (
    CRASH_BEFORE,
    NO_FAULTS,
    SLOW,
    FaultPlan,
    Kind,
    PlannedFault,
    every_single_fault,
    random_plans,
)
from tests.simulation.known_runs import find
from tests.simulation.rule_mutations import Mutation
from tests.simulation.thoroughness import TIMES, count, sample

SECONDS = 240.0 * TIMES
SHARE = 16
"""Runs of the feed are long: `make test` tries one in so many."""
JUDGES = ("setup", "last", "operator", "restorer")
"""Processes that meet no fault."""
DRAWN, RESTORES, TRANSACTIONS = (
    feeding.a_feed_beside_drawn_changes,
    feeding.a_feed_beside_restores,
    feeding.a_feed_beside_transactions,
)

SCENARIOS = (*feeding.SCENARIOS, *feed_histories.SCENARIOS)


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_the_feed_has_everything_once(scenario: Scenario) -> None:
    feeding.COUNTED.clear()
    assert explore(scenario, range(count(160, SHARE)), seconds=SECONDS).complete
    assert feeding.COUNTED["records"] > 20 * count(160, SHARE) / 2, "little happened"
    assert feeding.COUNTED["lost segments"], "sequencers never met"


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each is not TRANSACTIONS], ids=name_of)
def test_the_feed_has_everything_once_under_several_faults(scenario: Scenario) -> None:
    calls = {process: kinds for process, kinds in trace(scenario).calls.items() if process not in JUDGES}
    assert explore(scenario, range(1), [*random_plans(2026, count(160, SHARE), calls)], seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", feeding.SCENARIOS[:2], ids=name_of)
def test_a_sequencer_may_be_killed_or_misled_at_any_call(scenario: Scenario) -> None:
    calls = {process: kinds for process, kinds in trace(scenario).calls.items() if process[0] in "sc"}
    calls.pop("setup", None)
    plans = sample(scenario, [*every_single_fault(calls)], 240, SHARE)
    assert explore(scenario, range(1), plans, seconds=SECONDS).complete


def slow_and_then_dead(calls: Mapping[str, Sequence[Kind]]) -> Iterator[FaultPlan]:
    """A plan for each write of a writer: it takes seconds, and the writer does not live to make another call."""
    for process, kinds in calls.items():
        for number, kind in enumerate(kinds, 1):
            if process.startswith("w") and kind == "put":
                yield FaultPlan((PlannedFault(process, number, SLOW), PlannedFault(process, number + 1, CRASH_BEFORE)))


def test_writers_may_die_after_a_slow_write() -> None:
    calls = trace(TRANSACTIONS).calls
    plans = sample(TRANSACTIONS, [*slow_and_then_dead(calls)], 160, SHARE)
    assert explore(TRANSACTIONS, range(1), plans, seconds=SECONDS).complete


CASES: Sequence[tuple[Mutation, Scenario]] = [
    (bugs.segments_that_replace_others, DRAWN),
    (bugs.a_cursor_by_time, DRAWN),
    (bugs.receipts_in_the_order_in_which_they_are_found, DRAWN),
    (bugs.operations_of_head_alone, DRAWN),
    (bugs.a_head_after_the_pointers, DRAWN),
    (bugs.tables_of_transactions_that_may_abort, DRAWN),
    (bugs.tables_without_an_operation, DRAWN),
    (bugs.intents_that_count_at_once, DRAWN),
    (bugs.cursors_before_their_segments, DRAWN),
    (bugs.a_beginning_by_a_later_head, DRAWN),
    (bugs.a_restore_that_enters_everything_again, RESTORES),
    (bugs.a_restore_back_to_what_was_left, RESTORES),
    (bugs.a_search_that_ends_at_a_restored_file, RESTORES),
    (bugs.a_search_that_goes_on_although_others_entered_commits, RESTORES),
    (bugs.dropped_tables_without_a_pointer_that_are_passed_over, feeding.a_feed_that_is_filled_late),
    (bugs.a_remembered_end_of_the_feed_that_a_restore_removed, feeding.a_feed_beside_backups),
    (bugs.tokens_that_name_a_number_alone, feed_histories.a_feed_of_a_catalog_made_anew),
]


def test_every_planted_bug_has_a_case() -> None:
    assert [bug for bug, _ in CASES] == [*bugs.BUGS]


@pytest.mark.parametrize(("bug", "scenario"), CASES, ids=[bug.__name__ for bug, _ in CASES])
def test_the_simulation_finds(bug: Mutation, scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    calls = {process: kinds for process, kinds in trace(scenario).calls.items() if process not in JUDGES}
    runs: list[tuple[int, FaultPlan]] = [(seed, NO_FAULTS) for seed in range(40)]
    runs += [(seed, plan) for seed, plan in enumerate(random_plans(7, 300, calls))]
    assert find(bug, scenario, runs)
