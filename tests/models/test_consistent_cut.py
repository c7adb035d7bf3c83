"""The model of a consistent cut accepts only what was true at one instant, and something else as soon as a rule is left
out (docs/design/resolve.md)."""

from dataclasses import replace

import pytest

from tests.models.checker import explore
from tests.models.consistent_cut import ConsistentCut, Rules, Scenario

MAX_STATES = 3_000_000
SMALL = (
    Scenario(),
    Scenario(warm=False),
    Scenario(commits=1),
    Scenario(transactions=0, renames=2, commits=1),
    Scenario(transactions=0, names=3, renames=2, commits=2),
    Scenario(names=3, creates=True),
    Scenario(transactions=0, drops=1, renames=1, commits=2),
)
LARGE = (
    Scenario(commits=2),
    Scenario(transactions=2),
    Scenario(names=3, creates=True, commits=1),
    Scenario(drops=1, renames=1, commits=1),
    Scenario(names=3, renames=2, commits=1),
)
KEEPS_ALL = Rules()
LEFT_OUT = {
    "two collections": (replace(KEEPS_ALL, collects_twice=False), Scenario(warm=False)),
    "decisions are compared": (replace(KEEPS_ALL, compares_decisions=False), Scenario()),
    "decisions are read again": (replace(KEEPS_ALL, reads_decisions_again=False), Scenario()),
    "HEAD between": (replace(KEEPS_ALL, reads_head_between=False), Scenario(transactions=0, renames=1)),
    "HEAD before the pointers": (
        replace(KEEPS_ALL, reads_head_first=False),
        Scenario(transactions=0, renames=2, commits=3),
    ),
}


@pytest.mark.parametrize("scenario", SMALL, ids=str)
def test_a_cut_is_of_one_instant(scenario: Scenario) -> None:
    assert explore(ConsistentCut(scenario), MAX_STATES).violation is None


@pytest.mark.slow
@pytest.mark.parametrize("scenario", LARGE, ids=str)
def test_a_cut_is_of_one_instant_in_larger_scenarios(scenario: Scenario) -> None:
    assert explore(ConsistentCut(scenario), MAX_STATES).violation is None


@pytest.mark.parametrize(("rules", "scenario"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_each_rule_that_is_left_out_lets_a_cut_be_of_no_instant(rules: Rules, scenario: Scenario) -> None:
    assert explore(ConsistentCut(scenario), MAX_STATES).violation is None

    found = explore(ConsistentCut(scenario, rules), MAX_STATES)

    assert found.violation == "the cut is of no instant"
    assert found.trace
