"""The model of combined registry commits keeps its promises, and breaks one as soon as a rule is left out."""

from dataclasses import replace

import pytest

from tests.models.checker import TooManyStates, explore
from tests.models.combined_registry import CombinedRegistry
from tests.models.combined_values import Rules, Scenario

SMALL = (
    Scenario(under_one_key=2, for_the_same_name=1),
    Scenario(under_one_key=2, for_another_name=1),
    Scenario(under_one_key=1, for_the_same_name=1, for_another_name=1),
    Scenario(under_one_key=1, for_another_name=1, window=2, others=2, collections=1),
    Scenario(under_one_key=1, for_the_same_name=1, window=2, others=2, collections=1),
    Scenario(for_the_same_name=1, for_another_name=1, window=3, faults=2),
    Scenario(under_one_key=1, for_the_same_name=1, second_attempts=True, drops=1),
    Scenario(under_one_key=2, second_attempts=True),
    Scenario(under_one_key=1, for_another_name=1, deadlines=1, collections=1, faults=1),
    Scenario(under_one_key=2, cancellations=1),
    Scenario(under_one_key=2, cancellations=1, window=2, others=3),
)
LARGE = (
    Scenario(under_one_key=2, cancellations=2, for_the_same_name=1),
    Scenario(under_one_key=2, cancellations=2, window=2, others=3),
    Scenario(under_one_key=2, cancellations=1, window=2, others=2, collections=1),
    Scenario(under_one_key=2, cancellations=1, faults=1),
    Scenario(under_one_key=2, for_the_same_name=1, others=1),
    Scenario(under_one_key=2, for_the_same_name=1, faults=1),
    Scenario(under_one_key=3),
    Scenario(under_one_key=2, for_another_name=1, faults=1),
    Scenario(under_one_key=2, for_another_name=1, window=3, others=1, collections=1),
    Scenario(for_the_same_name=2, for_another_name=1, faults=1),
    Scenario(under_one_key=2, window=2, faults=1, others=3, collections=1),
    Scenario(under_one_key=2, for_the_same_name=1, second_attempts=True, drops=1),
    Scenario(under_one_key=2, second_attempts=True, window=2, others=2, faults=1),
    Scenario(under_one_key=1, for_the_same_name=1, second_attempts=True, drops=1, deadlines=1, collections=1),
)
MAX_STATES = 3_000_000

KEEPS_ALL = Rules()
LEFT_OUT = {
    "reads must hold": (
        replace(KEEPS_ALL, reads_must_hold=False),
        Scenario(under_one_key=1, for_the_same_name=1),
        "a name has two owners",
    ),
    # While the name is taken, what a committed proposal read does not hold: it takes a drop to bring that back.
    "committed only once": (
        replace(KEEPS_ALL, committed_only_once=False),
        Scenario(under_one_key=1, for_another_name=1, drops=1),
        "a proposal is committed twice",
    ),
    "cancelled never commits": (
        replace(KEEPS_ALL, cancelled_never_commits=False),
        Scenario(under_one_key=2, for_another_name=1),
        "a failure is committed",
    ),
    "listed since the base": (
        replace(KEEPS_ALL, listed_since_base=False),
        Scenario(under_one_key=1, for_the_same_name=1, for_another_name=1, window=2, others=2),
        "a failure is committed",
    ),
    "a walk before a new base": (
        replace(KEEPS_ALL, walk_before_a_new_base=False),
        Scenario(under_one_key=2, window=2, others=3),
        "a failure is committed",
    ),
    "a takeover cancels": (
        replace(KEEPS_ALL, takeover_cancels=False),
        Scenario(under_one_key=2),
        "a failure is committed",
    ),
    "cancellations name ids": (
        replace(KEEPS_ALL, cancels_name_ids=False),
        Scenario(under_one_key=2),
        "a failure is committed",
    ),
    "cancellations hold": (
        replace(KEEPS_ALL, cancellations_hold=False),
        Scenario(under_one_key=2, cancellations=1),
        "an attempt is committed and cancelled",
    ),
    "a walk for the cancelled": (
        replace(KEEPS_ALL, walk_for_the_cancelled=False),
        Scenario(under_one_key=2, cancellations=1, window=2, others=3),
        "an attempt is committed and cancelled",
    ),
    "giving up cancels": (
        replace(KEEPS_ALL, giving_up_cancels=False),
        Scenario(for_the_same_name=1, for_another_name=1),
        "a failure is committed",
    ),
    "a new attempt cancels": (
        replace(KEEPS_ALL, new_attempts_cancel=False),
        Scenario(for_another_name=2, second_attempts=True),
        "a failure is committed",
    ),
    "failures are final": (
        replace(KEEPS_ALL, failures_are_final=False),
        Scenario(under_one_key=2),
        "a failure is committed",
    ),
    "a new attempt claims": (
        replace(KEEPS_ALL, new_attempts_claim=False),
        Scenario(under_one_key=2, second_attempts=True),
        "a failure is committed",
    ),
    "old files are left": (
        replace(KEEPS_ALL, old_files_are_left=False),
        Scenario(for_the_same_name=1, deadlines=1, collections=1),
        "a change is committed without its files",
    ),
    "the age is that of the files": (
        replace(KEEPS_ALL, age_of_files=False),
        Scenario(for_the_same_name=1, deadlines=1, collections=1),
        "a change is committed without its files",
    ),
    "the collector moves HEAD": (
        replace(KEEPS_ALL, collector_moves_head=False),
        Scenario(for_the_same_name=1, deadlines=1, collections=1),
        "a change is committed without its files",
    ),
}
LEFT_OUT_LARGE = {
    "the first base is the claim's": (
        replace(KEEPS_ALL, base_is_the_claim=False),
        Scenario(under_one_key=2, window=2, faults=1, others=3, collections=1),
        "a failure is committed",
    ),
}


@pytest.mark.parametrize("scenario", SMALL, ids=str)
def test_the_rules_keep_every_promise(scenario: Scenario) -> None:
    assert explore(CombinedRegistry(scenario), MAX_STATES).violation is None


@pytest.mark.slow
@pytest.mark.parametrize("scenario", LARGE, ids=str)
def test_the_rules_keep_every_promise_in_larger_scenarios(scenario: Scenario) -> None:
    assert explore(CombinedRegistry(scenario), MAX_STATES).violation is None


@pytest.mark.parametrize(("rules", "scenario", "violation"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_each_rule_that_is_left_out_breaks_a_promise(rules: Rules, scenario: Scenario, violation: str) -> None:
    found = explore(CombinedRegistry(scenario, rules), MAX_STATES)

    assert found.violation == violation
    assert CombinedRegistry(scenario, rules).violation(found.trace[-1]) == violation


@pytest.mark.slow
@pytest.mark.parametrize(("rules", "scenario", "violation"), LEFT_OUT_LARGE.values(), ids=LEFT_OUT_LARGE)
def test_a_rule_that_only_a_larger_scenario_needs(rules: Rules, scenario: Scenario, violation: str) -> None:
    assert explore(CombinedRegistry(scenario, rules), MAX_STATES).violation == violation


def test_too_many_states_are_an_error() -> None:
    with pytest.raises(TooManyStates):
        explore(CombinedRegistry(SMALL[0]), 100)
