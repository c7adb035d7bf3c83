"""Each rule of purges, left out, makes the simulation fail."""

import logging
from collections.abc import Sequence

import pytest

from arco_catalog.upkeep.purge import deletion
from tests.simulation import purge_dangers, purging, purging_beside_neighbours, rule_mutations_for_purges
from tests.simulation.explore import REPLAY, Scenario, trace
from tests.simulation.faults import (
    CRASH_AFTER,
    FREEZE,
    NO_FAULTS,
    UNAVAILABLE,
    Fault,
    FaultPlan,
    every_single_fault,
)
from tests.simulation.known_runs import find
from tests.simulation.rule_mutations_for_purges import Mutation

SEEDS = 30


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    monkeypatch.setattr(deletion, "AT_ONCE", 1)  # or a purge of so few files has no middle
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


CASES: list[tuple[Mutation, Scenario, Sequence[Fault]]] = [
    (rule_mutations_for_purges.a_holder_whose_lease_never_ends, purging.a_purge_and_a_table_at_its_place, (FREEZE,)),
    (
        rule_mutations_for_purges.a_lease_counted_by_a_clock_that_stands_still,
        purging.a_purge_and_a_table_at_its_place,
        (FREEZE,),
    ),
    (
        rule_mutations_for_purges.a_purge_of_whatever_was_dropped_under_the_name,
        purging.a_purge_an_undrop_and_another_drop,
        (),
    ),
    (rule_mutations_for_purges.an_undrop_of_what_is_being_purged, purging.an_undrop_while_it_is_purged, ()),
    (
        rule_mutations_for_purges.places_that_nobody_holds_while_they_are_purged,
        purging.a_purge_and_a_table_at_its_place,
        (),
    ),
    (
        rule_mutations_for_purges.overlap_allowed_with_what_is_being_purged,
        purging.a_purge_and_a_table_at_its_place,
        (),
    ),
    (rule_mutations_for_purges.manifests_deleted_with_their_data, purging.a_purge_by_two_workers, (CRASH_AFTER,)),
    (
        rule_mutations_for_purges.deletes_before_the_checkpoint_says_so,
        purging.a_purge_that_gives_up_at_once,
        (UNAVAILABLE,),
    ),
    (rule_mutations_for_purges.a_hint_put_behind_the_drop, purging.a_drop_by_a_client_that_may_die, (CRASH_AFTER,)),
    (
        rule_mutations_for_purges.a_hint_removed_because_no_tombstone_names_its_task_yet,
        purging.a_drop_by_a_client_that_may_die,
        (),
    ),
    (rule_mutations_for_purges.a_hint_removed_when_the_task_is_taken, purging.a_purge_by_two_workers, (CRASH_AFTER,)),
    (
        rule_mutations_for_purges.a_purge_that_begins_without_the_mark_and_the_walk,
        purge_dangers.a_purge_and_a_commit_that_was_on_its_way,
        (),
    ),
    (rule_mutations_for_purges.a_later_lease_that_writes_no_fence, purging.a_purge_by_two_workers, (CRASH_AFTER,)),
    (
        rule_mutations_for_purges.a_release_while_an_earlier_lease_lasts,
        purge_dangers.a_purge_and_a_store_whose_clock_is_set_back,
        (),
    ),
    (
        rule_mutations_for_purges.a_wait_for_earlier_leases_that_begins_anew,
        purging.a_purge_by_workers_none_of_which_lives_long,
        (),
    ),
    (
        rule_mutations_for_purges.a_failed_attempt_that_nobody_makes_again,
        purging.a_purge_by_workers_none_of_which_lives_long,
        (UNAVAILABLE,),
    ),
    (rule_mutations_for_purges.deletes_that_outlive_their_lease, purging.a_purge_and_a_table_at_its_place, (FREEZE,)),
    (
        rule_mutations_for_purges.manifests_counted_before_their_files_are_deleted,
        purging.a_purge_by_two_workers,
        (CRASH_AFTER,),
    ),
    (
        rule_mutations_for_purges.what_is_damaged_taken_for_gone,
        purging_beside_neighbours.a_purge_of_a_table_with_a_damaged_manifest,
        (),
    ),
    (
        rule_mutations_for_purges.what_is_gone_of_a_neighbour_taken_for_nothing,
        purging_beside_neighbours.a_purge_and_a_neighbour_whose_manifests_are_rewritten,
        (),
    ),
    (
        rule_mutations_for_purges.a_missing_file_that_is_remembered_for_good,
        purging_beside_neighbours.a_purge_and_a_neighbour_whose_manifest_is_restored,
        (),
    ),
    (
        rule_mutations_for_purges.a_file_that_a_neighbour_misses_passed_over_at_once,
        purging_beside_neighbours.a_purge_and_a_neighbour_whose_manifest_is_restored,
        (),
    ),
    (
        rule_mutations_for_purges.a_staged_create_that_leaves_no_mark,
        purge_dangers.a_purge_and_a_create_that_is_staged_at_its_place,
        (),
    ),
    (
        rule_mutations_for_purges.any_first_location_taken_for_one_that_was_made,
        purge_dangers.a_purge_of_a_place_that_a_client_chose,
        (),
    ),
    (
        rule_mutations_for_purges.a_release_while_clients_have_credentials,
        purge_dangers.a_purge_and_a_client_that_still_has_credentials,
        (),
    ),
    (
        rule_mutations_for_purges.loans_that_no_purge_looks_at,
        purge_dangers.a_purge_and_a_commit_that_takes_a_manifest_list_of_it,
        (),
    ),
    (
        rule_mutations_for_purges.loans_from_what_is_being_purged,
        purge_dangers.a_purge_and_a_commit_that_takes_a_manifest_list_of_it,
        (),
    ),
    (
        rule_mutations_for_purges.loans_that_are_told_behind_the_commit,
        purge_dangers.a_purge_and_a_commit_that_takes_a_manifest_list_of_it,
        (),
    ),
]


def test_every_planted_bug_is_looked_for() -> None:
    assert [bug for bug, _, _ in CASES] == rule_mutations_for_purges.BUGS


@pytest.mark.parametrize(("bug", "scenario", "faults"), CASES, ids=[bug.__name__ for bug, _, _ in CASES])
def test_the_simulation_finds(bug: Mutation, scenario: Scenario, faults: Sequence[Fault]) -> None:
    runs = ((seed, plan) for seed in range(SEEDS) for plan in plans(scenario, seed, faults))
    assert find(bug, scenario, runs)


def plans(scenario: Scenario, seed: int, faults: Sequence[Fault]) -> list[FaultPlan]:
    """Each of these faults at each call of the first worker and client; a worker stands still over its deletes."""
    if not faults:
        return [NO_FAULTS]
    calls = {process: kinds for process, kinds in trace(scenario, seed).calls.items() if process in ("c1", "w1")}
    found = every_single_fault(calls, faults)
    if FREEZE not in faults:
        return list(found)
    return [plan for plan in found if all(calls[each.process][each.number - 1] == "delete" for each in plan.faults)]
