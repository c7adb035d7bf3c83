"""Each rule of access, left out, makes the simulation fail."""

import logging

import pytest

from tests.simulation.access import rule_mutations, scenarios
from tests.simulation.explore import REPLAY, Scenario, explore


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


CASES: list[tuple[rule_mutations.Mutation, Scenario]] = [
    (rule_mutations.rights_judged_in_front_of_the_marker, scenarios.a_grant_revoked_beside_commits),
    (rule_mutations.a_commit_judged_on_the_cached_head_alone, scenarios.a_grant_revoked_beside_commits),
    (
        rule_mutations.a_load_judged_by_the_realm_as_it_is_remembered,
        scenarios.a_role_taken_from_a_principal_beside_commits,
    ),
    (
        rule_mutations.the_realm_not_read_again_beside_the_first_writes,
        scenarios.a_role_taken_from_a_principal_beside_commits,
    ),
    (rule_mutations.a_reading_of_the_realm_that_was_cut_short_taken_for_whole, scenarios.a_takeover_after_a_revocation),
    (
        rule_mutations.a_principal_that_is_gone_refused_without_a_final_slot,
        scenarios.a_principal_dropped_and_made_again,
    ),
    (rule_mutations.members_of_a_batch_not_judged_again, scenarios.requests_that_share_commits_beside_revocations),
    (rule_mutations.a_replay_for_another_principal, scenarios.a_key_that_another_principal_has_learnt),
    (rule_mutations.a_grant_stored_from_one_side, scenarios.a_grant_revoked_beside_commits),
    (rule_mutations.a_dropped_principal_that_keeps_its_roles, scenarios.a_principal_dropped_and_made_again),
    (rule_mutations.a_grant_by_name, scenarios.a_table_dropped_made_again_and_brought_back),
    (rule_mutations.a_rename_that_leaves_the_old_name_in_grants, scenarios.a_table_dropped_made_again_and_brought_back),
    (rule_mutations.a_tombstone_found_by_its_name, scenarios.a_namespace_dropped_and_made_again_beside_undrops),
]


def test_every_planted_bug_is_looked_for() -> None:
    assert [bug for bug, _ in CASES] == [*rule_mutations.BUGS]


@pytest.mark.parametrize(("bug", "scenario"), CASES, ids=[bug.__name__ for bug, _ in CASES])
def test_the_simulation_finds(
    bug: rule_mutations.Mutation, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        bug(patch)
        with pytest.raises(AssertionError, match=REPLAY):
            explore(scenario, range(60), seconds=90.0)
