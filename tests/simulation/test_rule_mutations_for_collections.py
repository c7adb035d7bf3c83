"""Each rule of collections, left out, makes the simulation fail."""

import logging
from collections.abc import Sequence

import pytest

from arco_catalog.protocol import operation_request
from arco_catalog.upkeep.collection import receipts
from tests.simulation import collecting, purging_beside_collections, rule_mutations_for_collections
from tests.simulation.explore import REPLAY, Scenario, trace
from tests.simulation.faults import (
    CRASH_AFTER,
    CRASH_BEFORE,
    CRASH_LATE,
    DELAY,
    LOST_ANSWER,
    NO_FAULTS,
    Fault,
    FaultPlan,
    every_single_fault,
)
from tests.simulation.known_runs import find
from tests.simulation.rule_mutations_for_collections import Mutation

CLIENTS = ("p1", "p2", "p3")
SEEDS = 120


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    monkeypatch.setattr(operation_request, "DAY_MS", collecting.KEY_MS)
    monkeypatch.setattr(receipts, "BATCH", 1)  # or a listing of so few receipts has no middle
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


bugs = rule_mutations_for_collections
CASES: list[tuple[Mutation, Scenario, Sequence[Fault], Sequence[str]]] = [
    (
        bugs.lost_tries_of_pointers_that_have_not_moved,
        collecting.a_collector_beside_a_commit_to_an_idle_table,
        (CRASH_LATE,),
        CLIENTS,
    ),
    (
        bugs.lost_tries_without_a_walk,
        collecting.a_collector_beside_commits_and_their_retries,
        (CRASH_AFTER,),
        CLIENTS,
    ),
    (
        bugs.files_that_a_registration_has_claimed,
        collecting.a_collector_beside_a_registration_of_a_lost_file,
        (CRASH_BEFORE,),
        CLIENTS,
    ),
    (
        bugs.entities_without_a_fence_of_the_registry,
        collecting.a_hasty_collector_beside_one_create,
        (CRASH_LATE,),
        CLIENTS,
    ),
    (bugs.pointers_of_any_age, collecting.a_hasty_collector_beside_creates, (), ()),
    (bugs.tombstones_as_they_were_seen, collecting.an_undrop_at_the_last_moment, (), ()),
    (
        bugs.tombstones_of_tables_that_were_not_walked,
        collecting.a_drop_that_nobody_undoes,
        (CRASH_AFTER,),
        ("p1",),
    ),
    (bugs.receipts_without_a_floor, collecting.a_collector_beside_commits_and_their_retries, (), ()),
    (bugs.the_receipt_of_the_current_file, collecting.a_collector_beside_commits_and_their_retries, (), ()),
    (bugs.receipts_before_their_pending_ones, collecting.a_collector_that_comes_late, (), ()),
    (
        bugs.markers_of_keys_that_may_be_used,
        collecting.a_hasty_collector_beside_commits,
        (LOST_ANSWER, CRASH_AFTER),
        CLIENTS,
    ),
    (
        bugs.markers_that_are_taken_over_while_they_go,
        collecting.a_refusal_that_is_sent_again_while_its_marker_goes,
        (CRASH_BEFORE,),
        ("g1",),
    ),
    (
        bugs.unfinished_markers_that_nobody_closes,
        collecting.a_commit_that_is_under_way_while_its_marker_goes,
        (DELAY,),
        ("p1",),
    ),
    (
        bugs.slots_from_the_first_on,
        collecting.a_collector_beside_commits_and_their_retries,
        (CRASH_BEFORE,),
        ("g1",),
    ),
    (
        bugs.decisions_before_their_markers,
        collecting.a_hasty_collector_beside_transactions,
        (CRASH_AFTER,),
        CLIENTS,
    ),
    (bugs.decisions_before_their_intents, collecting.a_collector_beside_transactions, (CRASH_AFTER,), CLIENTS),
    (bugs.segments_that_a_page_needs, collecting.a_collector_beside_a_listing, (), ()),
    (
        bugs.commits_of_a_head_that_has_not_moved,
        collecting.a_hasty_collector_beside_one_create,
        (CRASH_LATE,),
        CLIENTS,
    ),
    (bugs.commits_that_later_ones_need, collecting.a_collector_beside_creates_far_apart, (), ()),
    (bugs.commits_that_a_page_needs, collecting.a_collector_beside_a_listing_on_edits, (), ()),
    (bugs.pages_of_whole_objects_alone, collecting.a_collector_beside_a_listing_on_edits, (), ()),
    (bugs.views_before_they_are_forgotten, collecting.a_collector_beside_a_view, (), ()),
    (bugs.tasks_that_have_not_ended, purging_beside_collections.a_purge_beside_a_collector, (), ()),
    (
        bugs.hints_that_nobody_puts_again,
        purging_beside_collections.a_purge_whose_hints_are_stolen_beside_a_collector,
        (),
        (),
    ),
]


def test_every_planted_bug_is_looked_for() -> None:
    assert {bug for bug, _, _, _ in CASES} == {*bugs.BUGS}


@pytest.mark.parametrize(("bug", "scenario", "faults", "processes"), CASES, ids=[case[0].__name__ for case in CASES])
def test_the_simulation_finds(
    bug: Mutation, scenario: Scenario, faults: Sequence[Fault], processes: Sequence[str]
) -> None:
    runs = ((seed, plan) for seed in range(SEEDS) for plan in plans(scenario, seed, faults, processes))
    assert find(bug, scenario, runs)


def plans(scenario: Scenario, seed: int, faults: Sequence[Fault], processes: Sequence[str]) -> list[FaultPlan]:
    """Each of these faults at each call of these processes; of a collector, at each delete."""
    if not faults:
        return [NO_FAULTS]
    calls = {process: kinds for process, kinds in trace(scenario, seed).calls.items() if process in processes}
    return [
        plan
        for plan in every_single_fault(calls, faults)
        if all(each.process != "g1" or calls["g1"][each.number - 1] == "delete" for each in plan.faults)
    ]
