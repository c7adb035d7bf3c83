"""Rules left out that the scenarios written by hand do not miss: programs do, each within seconds."""

from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from tests.simulation import (
    rule_mutations_for_appends,
    rule_mutations_for_collections,
    rule_mutations_for_copies,
    rule_mutations_for_decisions,
    rule_mutations_for_expiries,
    rule_mutations_for_fences,
    rule_mutations_for_keys,
    rule_mutations_for_polaris,
)
from tests.simulation import rule_mutations_for_programs as rule_mutations
from tests.simulation.faults import NO_FAULTS, FaultPlan
from tests.simulation.known_runs import Run, known_first, record
from tests.simulation.programs.campaign import Schedule, without_warnings
from tests.simulation.rule_mutations import (
    BY_PROGRAMS,
    Mutation,
    a_registry_commit_on_an_undecided_name,
    evidence_from_the_newest_move_only,
)
from tests.simulation.rule_mutations_for_purges import a_purge_that_asks_nobody

MOST = 600
"""Runs in which a bug must show."""

CASES: list[tuple[Mutation, str]] = [
    (rule_mutations.a_new_write_set_under_the_same_attempt, "commit_while_its_name_changes_hands"),
    (rule_mutations.a_drop_content_with_any_older_mark, "drops_and_undrops_of_one_table"),
    (rule_mutations.what_is_beyond_recent_taken_for_not_committed, "commits_that_are_forgotten"),
    (rule_mutations.an_undrop_that_takes_no_location_back, "drops_and_undrops_of_one_table"),
    (
        rule_mutations.tombstones_of_the_namespace_that_was_there_first,
        "a_namespace_made_again_over_what_was_dropped",
    ),
    (rule_mutations.leases_that_never_end, "tables_that_dead_coordinators_hold"),
    (rule_mutations.nameless_pointers_noted_as_walked, "creates_that_die_beside_a_reconciler"),
    (rule_mutations.evidence_of_a_drop_that_leaves_no_mark, "answers_to_drops_of_dead_processes"),
    (
        rule_mutations.the_next_slot_not_looked_at_after_a_fresher_read_set,
        "creates_that_are_late_to_see_a_newer_registry",
    ),
    (rule_mutations.one_sequence_for_all_tombstones, "tombstones_of_one_name"),
    (rule_mutations.the_age_of_a_key_judged_by_the_machine_before_its_marker, "wrong clocks"),
    (rule_mutations.an_expired_transaction_taken_for_aborted, "tables_that_dead_coordinators_hold"),
    (evidence_from_the_newest_move_only, "commits_that_are_forgotten"),
    (a_registry_commit_on_an_undecided_name, "names_that_dead_coordinators_hold"),
    (rule_mutations.an_attempt_without_a_key_bound_to_nothing, "keyless_commit_while_its_name_changes_hands"),
    (rule_mutations.a_pointer_read_before_the_name_that_leads_to_it, "loads_of_a_name_that_goes_and_comes_back"),
    (rule_mutations.a_definite_no_for_what_is_undecided, "names_that_dead_coordinators_hold"),
    (rule_mutations.intents_on_names_that_nobody_takes_away, "names_that_dead_coordinators_hold"),
    (rule_mutations.queued_work_over_what_no_name_leads_to, "creates_that_die_beside_queued_work"),
    (rule_mutations.a_file_that_a_load_missed_believed_to_be_gone, "loads_beside_cleaning"),
    (rule_mutations.cleaning_that_asks_nobody_who_needs_a_file, "cleaning"),
    (rule_mutations.one_file_name_for_all_tables_of_a_request, "transactions"),
    (rule_mutations.a_listing_that_takes_what_it_learns_in_one_round, "listings_beside_transactions_and_creates"),
    (rule_mutations.ones_own_claim_taken_for_anothers, "claims_that_failures_beside_them_cancel"),
    (rule_mutations.a_definite_no_that_no_final_slot_holds, "denials_of_what_another_sending_does"),
    (rule_mutations.a_name_that_is_free_unless_a_table_has_it, "one_name_for_four_things"),
    (rule_mutations.a_name_that_is_free_unless_a_table_has_it, "one_name_that_is_followed_and_made"),
    (rule_mutations_for_polaris.a_version_not_looked_at, "names"),
    (a_purge_that_asks_nobody, "purging"),
    (rule_mutations_for_appends.a_rebase_that_loses_the_manifests_of_the_winner, "appending"),
    (rule_mutations_for_appends.a_sequence_number_that_is_not_raised, "appending"),
    (rule_mutations_for_appends.a_first_row_id_that_is_repeated, "appending"),
    (rule_mutations_for_appends.a_rebased_merge_that_matched_nothing, "appending"),
    (rule_mutations_for_appends.two_rebased_coordinators, "appending"),
    (rule_mutations_for_appends.a_time_that_is_not_later_than_the_parents, "appending"),
    (
        rule_mutations_for_appends.an_append_whose_snapshot_may_have_been_expired,
        "appends_sent_again_after_a_compaction_and_an_expiry",
    ),
    (rule_mutations.governance_replaced_whole, "governance_of_a_table_that_changes_hands"),
    (rule_mutations.an_undrop_that_forgets_governance, "governance_of_a_table_that_changes_hands"),
    (rule_mutations.a_drop_of_what_is_protected, "drops_and_renames_beside_protection"),
    (rule_mutations.a_rename_of_what_is_protected, "drops_and_renames_beside_protection"),
    (rule_mutations.a_registration_over_what_is_protected, "drops_and_renames_beside_protection"),
    (rule_mutations.a_drop_of_a_protected_namespace, "drops_and_renames_beside_protection"),
    (rule_mutations.protection_judged_by_the_first_plan, "drops_and_renames_beside_protection"),
    (rule_mutations.protection_of_a_namespace_not_in_its_entry, "drops_and_renames_beside_protection"),
    (rule_mutations.a_drop_by_a_notification_of_what_is_protected, "one_name_that_is_followed_and_protected"),
    (rule_mutations.labels_of_what_was_remembered, "governing"),
    (rule_mutations_for_polaris.a_rename_that_policies_do_not_hear_of, "policies"),
    (rule_mutations_for_polaris.a_detachment_from_one_side, "policies"),
    (rule_mutations_for_polaris.a_policy_dropped_whatever_uses_it, "policies"),
    (rule_mutations_for_polaris.a_policy_s_version_looked_at_once, "policies"),
    (rule_mutations_for_polaris.a_policy_made_again_that_begins_anew, "policies"),
    (rule_mutations_for_collections.decisions_of_unsettled_names, "names_that_collections_cannot_settle"),
    (rule_mutations_for_collections.intended_names_that_are_walked, "names_with_an_old_decision"),
    (rule_mutations_for_keys.keys_read_by_the_variables_of_each_server, "retries_at_servers_that_disagree_on_keys"),
    (rule_mutations_for_keys.markers_of_an_earlier_dialect_that_no_request_looks_for, "changes_of_how_keys_are_read"),
    (rule_mutations_for_keys.markers_of_an_earlier_dialect_that_stay_open, "changes_of_how_keys_are_read"),
    (rule_mutations_for_keys.keys_accepted_by_the_variables_of_each_server, "catalogs_that_stop_reading_keys"),
    (rule_mutations_for_keys.markers_that_are_not_searched_while_keys_are_off, "catalogs_that_stop_reading_keys"),
    (rule_mutations_for_keys.markers_closed_while_keys_were_off_taken_for_new, "catalogs_that_stop_reading_keys"),
    (rule_mutations_for_polaris.notifications_in_the_order_in_which_they_come, "following"),
    (rule_mutations.a_pointer_called_missing_by_a_cached_head, "commits_of_a_server_that_was_idle"),
    (rule_mutations.locations_that_a_commit_does_not_reserve, "tables_that_move_to_one_place"),
    (rule_mutations.a_reservation_of_what_another_table_holds, "tables_that_move_to_one_place"),
    (rule_mutations.an_empty_level_taken_for_none, "tables_that_move_to_an_empty_level"),
    (rule_mutations_for_fences.the_oldest_pointer_alone_is_fenced, "commits_whose_name_changes_hands_twice"),
    (
        rule_mutations_for_fences.the_newest_pointer_alone_is_fenced,
        "commits_whose_second_sending_dies_once_it_has_its_slot",
    ),
    (rule_mutations_for_fences.a_refused_abort_taken_for_an_abort, "transactions_that_die_once_they_are_decided"),
    (
        rule_mutations_for_fences.a_registry_not_fenced_for_unfinished_markers,
        "namespaces_that_are_made_late_beside_one_collection",
    ),
    (rule_mutations_for_fences.deadlines_that_no_step_checks, "commits_of_a_process_that_stands_still"),
    (rule_mutations_for_fences.members_sent_past_their_deadline, "creates_that_wait_in_a_process_that_stands_still"),
    (
        rule_mutations_for_decisions.a_name_whose_decision_is_gone_taken_for_aborted,
        "names_that_are_settled_while_they_are_read",
    ),
    (
        rule_mutations_for_decisions.a_listing_that_takes_a_decision_that_is_gone_for_an_abort,
        "names_that_are_settled_while_they_are_read",
    ),
    (
        rule_mutations_for_decisions.a_pointer_whose_decision_is_gone_taken_for_aborted,
        "pointers_that_are_settled_while_they_are_read",
    ),
    (
        rule_mutations_for_decisions.a_decision_that_was_created_as_aborted_taken_for_the_outcome,
        "pointers_that_are_settled_while_they_are_read",
    ),
    (rule_mutations_for_copies.a_copy_that_is_not_recorded, "copies_in_which_tables_are_dropped_and_cleaned"),
    (rule_mutations_for_copies.a_collection_in_a_copy, "copies_in_which_tables_are_dropped_and_cleaned"),
    (rule_mutations_for_copies.a_drop_in_a_copy_that_makes_a_purge, "copies_in_which_tables_are_dropped_and_cleaned"),
    (rule_mutations_for_copies.a_commit_to_a_copy_that_cleans, "copies_in_which_tables_are_dropped_and_cleaned"),
    (rule_mutations_for_copies.a_purge_that_goes_on_in_a_copy, "copies_of_a_catalog_whose_purge_has_begun"),
    (
        rule_mutations_for_copies.a_try_of_before_the_restore_taken_for_lost,
        "commits_that_a_backup_has_before_they_are_made",
    ),
    (
        rule_mutations_for_copies.a_purge_without_a_delete_that_goes_on_after_a_restore,
        "purges_that_are_restored_before_their_first_delete",
    ),
    (rule_mutations_for_copies.transactions_that_commit_during_a_backup_read_once, "transactions_beside_a_backup"),
    (rule_mutations_for_copies.a_head_that_is_read_before_the_pointers, "transactions_beside_a_backup"),
    (rule_mutations_for_expiries.what_the_table_names_read_never, "expiring"),
    (rule_mutations_for_expiries.files_that_are_deleted_after_a_day, "expiring"),
    (rule_mutations_for_expiries.other_tables_that_no_expiry_looks_at, "expiring"),
]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with without_warnings():
        yield


def found(bug: Mutation, about: str, plans: Sequence[FaultPlan], seeds: range) -> bool:
    """Whether some run fails with the bug, and passes without it. `NO_FAULTS` stands for what the program draws."""
    for run in known_first(bug, about, product(seeds, plans)):
        if _is_found(bug, about, run):
            record(bug, about, run)
            return True
    return False


def _is_found(bug: Mutation, about: str, run: Run) -> bool:
    seed, faults = run
    schedule, plan = Schedule(about, seed), None if faults == NO_FAULTS else faults
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        fails = bool(schedule.played(plan).wrong)
    return fails and not schedule.played(plan).wrong


def test_what_scenarios_do_not_find_is_looked_for_here() -> None:
    assert {*BY_PROGRAMS, *rule_mutations_for_appends.BY_PROGRAMS} <= {bug for bug, _ in CASES}


@pytest.mark.parametrize(("bug", "about"), CASES, ids=[bug.__name__ for bug, _ in CASES])
def test_a_program_finds(bug: Mutation, about: str) -> None:
    assert found(bug, about, [NO_FAULTS], range(MOST))


def test_a_program_finds_a_takeover_that_fences_before_it_has_its_slot() -> None:
    """Three calls must be slow: two compare-and-swaps of whoever is overtaken, and a look of who takes over."""
    plans = [FaultPlan.parse(f"p1@8:delay,p1@12:delay,p2@{number}:delay") for number in range(16, 30)]
    bug = rule_mutations.a_takeover_that_fences_before_it_has_its_slot
    assert found(bug, "takeovers_and_names_that_move_on", plans, range(20, 80))
