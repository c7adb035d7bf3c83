"""Notifications by simulation: in any order, and with a crash or another fault at any call."""

import pytest

from arco_catalog.operations import notifications
from tests.simulation.explore import REPLAY, explore, trace
from tests.simulation.faults import FAULTS, every_single_fault
from tests.simulation.following import notifications_in_any_order
from tests.simulation.thoroughness import TIMES, count, sample

SPARED = ("setup",)
SECONDS = 120.0 * TIMES


def test_tables_follow_notifications_that_come_in_any_order() -> None:
    assert explore(notifications_in_any_order, range(count(60)), seconds=SECONDS).runs > 0


def test_tables_follow_them_through_any_fault() -> None:
    calls = {name: kinds for name, kinds in trace(notifications_in_any_order).calls.items() if name not in SPARED}
    plans = sample(notifications_in_any_order, list(every_single_fault(calls, list(FAULTS))), 120)

    assert explore(notifications_in_any_order, range(TIMES), plans, seconds=SECONDS).complete


def test_without_their_order_what_was_dropped_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    monkeypatch.setattr(notifications, "check_order", lambda *_: None)
    with pytest.raises(AssertionError, match="came after"):
        explore(notifications_in_any_order, range(20), seconds=SECONDS)
