"""Notifications by simulation: in any order, and with a crash or another fault at any call; and rules left out, which
must show."""

from collections.abc import Mapping

import pytest

from tests.simulation import rule_mutations_for_polaris as rule_mutations
from tests.simulation.explore import REPLAY, Scenario, explore, trace
from tests.simulation.faults import FAULTS, every_single_fault
from tests.simulation.following import notifications_in_any_order, notifications_that_come_after_a_collection
from tests.simulation.rule_mutations import Mutation
from tests.simulation.thoroughness import TIMES, count, sample

SCENARIOS = (notifications_in_any_order, notifications_that_come_after_a_collection)
SPARED = ("setup",)
SECONDS = 120.0 * TIMES


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_tables_follow_notifications_that_come_in_any_order(scenario: Scenario) -> None:
    assert explore(scenario, range(count(60)), seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_tables_follow_them_through_any_fault(scenario: Scenario) -> None:
    calls = {name: kinds for name, kinds in trace(scenario).calls.items() if name not in SPARED}
    plans = sample(scenario, list(every_single_fault(calls, list(FAULTS))), 120)

    assert explore(scenario, range(TIMES), plans, seconds=SECONDS).complete


PLANTED: Mapping[Mutation, tuple[Scenario, str]] = {
    rule_mutations.notifications_in_the_order_in_which_they_come: (notifications_in_any_order, "came after"),
    rule_mutations.a_drop_of_whichever_table_has_the_name: (notifications_in_any_order, "another table was dropped"),
    rule_mutations.an_order_that_goes_with_the_tombstone: (notifications_that_come_after_a_collection, "came after"),
}


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.__name__)
def test_a_rule_that_is_left_out_shows(bug: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    scenario, why = PLANTED[bug]
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=why):
        explore(scenario, range(60), seconds=SECONDS)
