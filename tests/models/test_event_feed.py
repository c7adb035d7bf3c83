"""The model of the event feed has everything once, after its predecessor, and something less as soon as a rule is left
out (docs/design/events.md)."""

from dataclasses import replace

import pytest

from tests.models.checker import explore
from tests.models.event_feed import ALL, EventFeed, Rules, Scenario

MAX_STATES = 3_000_000
SMALL = (
    Scenario(),
    Scenario(commits=1, runs=(1, 1)),
    Scenario(commits=1, runs=(2,), kills=1),
    Scenario(commits=1, transaction=True, runs=(2,)),
    Scenario(commits=1, creates=True),
    Scenario(commits=1, drops=True),
)
LARGE = (
    Scenario(commits=2, runs=(2, 1), kills=1),
    Scenario(commits=2, runs=(2, 2)),
    Scenario(commits=1, runs=(1, 1), creates=True, drops=True, kills=1),
    Scenario(commits=1, runs=(2, 1), transaction=True, kills=1),
    Scenario(commits=1, runs=(2,), transaction=True, creates=True, drops=True),
)
LOST = "a step ended without all that had happened when it began"
TWICE = "something is in the feed twice"
NEVER = "something is in the feed that did not happen"
ORDER = "something comes before its predecessor"
LEFT_OUT = {
    "segments are created once": (replace(ALL, creates_once=False), Scenario(commits=1, runs=(1, 1)), TWICE),
    "a cursor by time": (replace(ALL, follows_chains=False), Scenario(clocks=(1, 2)), LOST),
    "receipts in any order, one of them a week late": (
        replace(ALL, enters_predecessors_first=False), Scenario(judges_ends=False), ORDER
    ),
    "HEAD before the pointers": (
        replace(ALL, reads_head_first=False), Scenario(commits=1, drops=True, runs=(2,)), ORDER
    ),
    "creations first": (replace(ALL, waits_for_creations=False), Scenario(commits=0, creates=True), NEVER),
    "decisions": (replace(ALL, waits_for_decisions=False), Scenario(commits=0, transaction=True), NEVER),
    "cursors after segments": (
        replace(ALL, cursors_after_segments=False), Scenario(commits=1, runs=(2,), kills=1), LOST
    ),
    "versions with decisions": (
        replace(ALL, versions_with_decisions=False), Scenario(commits=0, transaction=True), LOST
    ),
    "all commits of the registry": (replace(ALL, walks_registry=False), Scenario(commits=0, drops=True), ORDER),
}  # fmt: skip


@pytest.mark.parametrize("scenario", SMALL, ids=str)
def test_everything_enters_once_and_in_order(scenario: Scenario) -> None:
    assert explore(EventFeed(scenario), MAX_STATES).violation is None


@pytest.mark.slow
@pytest.mark.parametrize("scenario", LARGE, ids=str)
def test_everything_enters_once_and_in_order_in_larger_scenarios(scenario: Scenario) -> None:
    assert explore(EventFeed(scenario), MAX_STATES).violation is None


@pytest.mark.parametrize(("rules", "scenario", "expected"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_each_rule_that_is_left_out_is_missed(rules: Rules, scenario: Scenario, expected: str) -> None:
    assert explore(EventFeed(scenario), MAX_STATES).violation is None

    found = explore(EventFeed(scenario, rules), MAX_STATES)

    assert found.violation is not None
    assert found.trace
    assert found.violation == expected
