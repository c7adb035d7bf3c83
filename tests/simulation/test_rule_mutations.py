"""Each rule of the protocols, left out, makes the simulation fail."""

import logging
import random
from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from tests.simulation import rule_mutations, scenarios
from tests.simulation.explore import REPLAY, Scenario, trace
from tests.simulation.faults import (
    CRASH_LATE,
    DELAY,
    FREEZE,
    LATE,
    NO_FAULTS,
    UNAVAILABLE,
    Fault,
    every_single_fault,
)
from tests.simulation.known_runs import Run, find
from tests.simulation.scenarios import spilled

SEEDS = 200
SPARED = ("setup", "last walk")
"""Processes to which nothing happens: what comes before, and what the auditor waits for."""


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)


def runs(scenario: Scenario, faults: Sequence[Fault]) -> Iterator[Run]:
    """Every single one of these faults, under each of many seeds, in a random order; nothing but the order of things
    where there are none."""
    plans = [NO_FAULTS]
    if faults:
        plans = [*every_single_fault({p: k for p, k in trace(scenario).calls.items() if p not in SPARED}, faults)]
    drawn = [*product(range(SEEDS), plans)]
    random.Random(0).shuffle(drawn)
    yield from drawn


CASES: list[tuple[rule_mutations.Mutation, Scenario, Sequence[Fault]]] = [
    (rule_mutations.no_fence_at_a_takeover, scenarios.commits_and_a_rename_away, (CRASH_LATE, LATE, DELAY)),
    (rule_mutations.the_next_slot_not_looked_at, scenarios.three_commits_of_one_key_and_foreign_ones, (DELAY, FREEZE)),
    (rule_mutations.only_ones_own_id_looked_for, scenarios.three_commits_of_one_key_and_foreign_ones, ()),
    (rule_mutations.a_failure_answered_without_a_final_slot, scenarios.commits_and_a_rename, ()),
    (rule_mutations.a_verdict_from_a_cached_base, scenarios.a_verdict_on_what_a_process_remembers, ()),
    (
        rule_mutations.a_base_read_after_the_look_at_the_next_slot,
        scenarios.a_warm_commit_beside_foreign_ones,
        (FREEZE,),
    ),
    (
        rule_mutations.a_name_validated_before_the_pointer_was_read,
        scenarios.commits_a_drop_and_a_new_table_of_the_name,
        (),
    ),
    (rule_mutations.a_slot_that_names_no_entity, scenarios.three_commits_of_one_key_and_foreign_ones, ()),
    (rule_mutations.the_pointer_deleted_at_drop, scenarios.creates_of_one_key_and_a_drop, ()),
    (rule_mutations.a_drop_answered_before_its_mark, scenarios.commits_and_two_drops_of_one_key, (DELAY, LATE)),
    (rule_mutations.a_decision_before_every_intent_is_there, scenarios.two_transactions_in_opposite_order, ()),
    (rule_mutations.a_refused_decision_taken_for_a_commit, scenarios.two_transactions_in_opposite_order, ()),
    (rule_mutations.a_plan_placed_again_at_another_version, scenarios.two_transactions_in_opposite_order, ()),
    (rule_mutations.an_abort_acted_on_before_it_is_definite, scenarios.a_transaction_a_drop_and_a_rename, ()),
    (rule_mutations.an_intent_settled_whatever_is_there_now, scenarios.a_transaction_of_one_key_twice_and_a_commit, ()),
    (
        rule_mutations.an_intent_revalidated_by_version,
        scenarios.two_transactions_in_opposite_order,
        (UNAVAILABLE,),
    ),
    (rule_mutations.a_takeover_that_aborts_nothing, scenarios.a_transaction_and_a_rename_away, (FREEZE, DELAY)),
    (
        rule_mutations.a_takeover_that_aborts_only_what_has_begun,
        scenarios.a_transaction_and_a_rename_away,
        (DELAY, FREEZE),
    ),
    (rule_mutations.names_of_a_transaction_not_validated, scenarios.a_transaction_a_drop_and_a_rename, ()),
    (rule_mutations.a_commit_over_an_undecided_intent, scenarios.two_transactions_in_opposite_order, ()),
    (
        rule_mutations.a_rename_from_or_to_an_undecided_name,
        scenarios.a_transaction_that_creates_beside_renames_from_and_to_its_name,
        (),
    ),
    (rule_mutations.a_removal_that_leaves_no_mark, spilled(scenarios.commits_and_a_rename_away), ()),
    (
        rule_mutations.a_segment_written_after_the_commit_that_names_it,
        spilled(scenarios.creates_of_one_key_and_a_drop),
        (),
    ),
    (rule_mutations.a_segment_that_was_not_read_taken_for_an_empty_one, spilled(scenarios.renames_that_cross), ()),
    (rule_mutations.a_segment_that_wins_over_later_edits, spilled(scenarios.a_transaction_a_drop_and_a_rename), ()),
    (
        rule_mutations.an_intent_on_a_name_that_is_spilled,
        spilled(scenarios.transactions_that_create_the_same_table),
        (),
    ),
    (rule_mutations.one_who_was_left_out_told_that_it_is_in, scenarios.creates_beside_each_other, ()),
    (rule_mutations.a_refused_group_taken_for_applied, scenarios.two_processes_whose_requests_share_commits, ()),
    (rule_mutations.a_group_that_goes_before_what_its_members_write_first, scenarios.creates_beside_each_other, ()),
    (rule_mutations.parts_planned_beside_each_other, scenarios.two_processes_whose_requests_share_commits, ()),
    (
        rule_mutations.a_member_whose_next_slot_was_not_seen,
        scenarios.a_create_that_waits_while_it_is_overtaken,
        (DELAY, LATE),
    ),
    (
        rule_mutations.a_member_in_the_hands_of_two,
        scenarios.creates_that_wait_while_their_name_is_taken_and_freed,
        (DELAY,),
    ),
]


def test_every_planted_bug_is_looked_for() -> None:
    assert [bug for bug, _, _ in CASES] == [
        *rule_mutations.BUGS,
        *rule_mutations.TRANSACTION_BUGS,
        *rule_mutations.SPILL_BUGS,
        *rule_mutations.SHARING_BUGS,
    ]


@pytest.mark.parametrize(("bug", "scenario", "faults"), CASES, ids=[bug.__name__ for bug, _, _ in CASES])
def test_the_simulation_finds(bug: rule_mutations.Mutation, scenario: Scenario, faults: Sequence[Fault]) -> None:
    assert find(bug, scenario, runs(scenario, faults), seconds=90.0)
