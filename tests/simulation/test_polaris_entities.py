"""Policies and semantic models by simulation: in any order, with a crash or another fault at any call; and rules left
out, which must show."""

from collections.abc import Mapping

import pytest

from tests.simulation import rule_mutations_for_polaris as rule_mutations
from tests.simulation.explore import Scenario, explore, trace
from tests.simulation.faults import FAULTS, every_single_fault
from tests.simulation.polaris_entities import policies_on_what_moves, replacements_of_one_model
from tests.simulation.rule_mutations import Mutation
from tests.simulation.thoroughness import TIMES, count, sample

SCENARIOS = (policies_on_what_moves, replacements_of_one_model)
SECONDS = 120.0 * TIMES


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_they_hold_in_any_order(scenario: Scenario) -> None:
    assert explore(scenario, range(count(60)), seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_they_hold_through_any_fault(scenario: Scenario) -> None:
    calls = {name: kinds for name, kinds in trace(scenario).calls.items() if name != "setup"}
    plans = sample(scenario, list(every_single_fault(calls, list(FAULTS))), 120)

    assert explore(scenario, range(TIMES), plans, seconds=SECONDS).complete


PLANTED: Mapping[Mutation, Scenario] = {
    rule_mutations.a_rename_that_policies_do_not_hear_of: policies_on_what_moves,
    rule_mutations.a_detachment_from_one_side: policies_on_what_moves,
    rule_mutations.a_policy_dropped_whatever_uses_it: policies_on_what_moves,
    rule_mutations.several_policies_of_one_type: policies_on_what_moves,
    rule_mutations.a_drop_that_detaches: policies_on_what_moves,
    rule_mutations.a_policy_s_version_looked_at_once: policies_on_what_moves,
    rule_mutations.attachments_that_outlive_their_namespace: policies_on_what_moves,
    rule_mutations.a_version_not_looked_at: replacements_of_one_model,
    rule_mutations.a_version_looked_at_once: replacements_of_one_model,
}


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.__name__)
def test_a_rule_that_is_left_out_shows(bug: Mutation, planted: pytest.MonkeyPatch) -> None:
    bug(planted)
    with pytest.raises(AssertionError, match=PLANTED[bug].__name__):
        explore(PLANTED[bug], range(60), seconds=SECONDS)
