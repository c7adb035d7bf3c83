"""Registry commits of many processes through proposals, by simulation: in any order, with a crash or another fault at
any call (docs/design/registry.md#proposals)."""

import logging

import pytest

from tests.simulation.explore import Scenario, explore, name_of, trace
from tests.simulation.faults import FAULTS, every_single_fault
from tests.simulation.proposing import PROPOSING
from tests.simulation.thoroughness import TIMES, count, sample

SECONDS = 120.0 * TIMES
SPARED = ("setup", "last walk", "last")
"""Processes to which nothing happens: what comes before, and what the auditor waits for."""
SHARE = 12
"""`make test` tries one in so many: these runs are long, and as many planted bugs make one fail as of one in eight."""


@pytest.fixture(autouse=True)
def no_warnings_about_dropped_writes() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)


@pytest.mark.parametrize("scenario", PROPOSING, ids=name_of)
def test_they_keep_every_promise_in_any_order(scenario: Scenario) -> None:
    assert explore(scenario, range(count(120, SHARE)), seconds=SECONDS).complete


@pytest.mark.parametrize("scenario", PROPOSING, ids=name_of)
def test_they_keep_every_promise_through_any_fault(scenario: Scenario) -> None:
    calls = {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}
    plans = sample(scenario, list(every_single_fault(calls, list(FAULTS))), 120, SHARE)

    assert explore(scenario, range(TIMES), plans, seconds=SECONDS).complete
