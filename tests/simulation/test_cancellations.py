"""Takeovers in a registry where they cancel attempts by id, by simulation: in any order, with a crash or another fault
at any call (docs/design/registry.md#rule-8)."""

import logging
import random
from collections.abc import Iterator
from itertools import product

import pytest

from tests.simulation import rule_mutations_for_fences, scenarios
from tests.simulation.explore import Scenario, explore, name_of, trace
from tests.simulation.faults import CRASH_LATE, DELAY, FAULTS, FREEZE, LATE, every_single_fault
from tests.simulation.known_runs import Run, find
from tests.simulation.scenarios import cancelling
from tests.simulation.thoroughness import TIMES, count, sample

SCENARIOS = [
    cancelling(scenarios.two_creates_of_one_key_and_another),
    cancelling(scenarios.creates_of_one_key_and_a_drop),
    cancelling(scenarios.two_renames_of_one_key_and_one_back),
    cancelling(scenarios.commits_and_two_drops_of_one_key),
]
SECONDS = 120.0 * TIMES
SPARED = ("setup", "last walk")
"""Processes to which nothing happens: what comes before, and what the auditor waits for."""


@pytest.fixture(autouse=True)
def no_warnings_about_dropped_writes() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_they_keep_every_promise_in_any_order(scenario: Scenario) -> None:
    assert explore(scenario, range(count(40)), seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_they_keep_every_promise_through_any_fault(scenario: Scenario) -> None:
    calls = {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}
    plans = sample(scenario, list(every_single_fault(calls, list(FAULTS))), 60)

    assert explore(scenario, range(TIMES), plans, seconds=SECONDS).complete


def late_writes(scenario: Scenario) -> Iterator[Run]:
    """Every single fault after which a write may apply while a takeover is under way, in a random order."""
    calls = {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}
    drawn = [*product(range(200), every_single_fault(calls, (DELAY, LATE, FREEZE, CRASH_LATE)))]
    random.Random(0).shuffle(drawn)
    yield from drawn


def test_a_fence_that_shows_the_registry_before_it_shows() -> None:
    scenario = scenarios.two_creates_of_one_key_and_another
    bug = rule_mutations_for_fences.a_fence_that_shows_the_registry_before_it
    assert find(bug, scenario, late_writes(scenario), seconds=90.0)


def test_a_cancellation_without_a_search_shows() -> None:
    scenario = cancelling(scenarios.two_creates_of_one_key_and_another)
    bug = rule_mutations_for_fences.attempts_cancelled_without_a_search
    assert find(bug, scenario, late_writes(scenario), seconds=90.0)
