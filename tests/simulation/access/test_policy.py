"""A policy outside of the catalog is queried rightly whatever happens: it changes between any two calls, fails and is
slow, and processes die. Each planted bug makes a scenario fail.

`make test` tries a share of it, `make test-thorough` all, `make test-slow` many times that (`thoroughness.py`).
"""

import logging

import pytest

from tests.simulation.access import policy_mutations as bugs
from tests.simulation.access import policy_scenarios as scenarios
from tests.simulation.access.test_scenarios import SAMPLE, SECONDS, calls_of
from tests.simulation.explore import REPLAY, Scenario, explore, name_of
from tests.simulation.faults import FAULTS, every_single_fault, random_plans
from tests.simulation.thoroughness import TIMES, count, sample


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


CASES: list[tuple[bugs.Mutation, Scenario]] = [
    (bugs.a_refusal_of_the_policy_remembered, scenarios.a_policy_that_changes_beside_commits),
    (bugs.a_consent_remembered_for_a_minute, scenarios.a_policy_that_changes_beside_commits),
    (bugs.no_answer_taken_for_a_refusal, scenarios.a_policy_that_is_down_beside_commits),
    (bugs.no_answer_stored_as_the_answer_of_a_key, scenarios.a_policy_that_is_down_beside_commits),
    (bugs.a_policy_queried_in_front_of_the_marker, scenarios.a_policy_that_changes_beside_commits),
    (bugs.a_policy_queried_in_front_of_the_marker_alone, scenarios.a_policy_that_changes_beside_commits),
]


@pytest.mark.parametrize("scenario", scenarios.SCENARIOS, ids=name_of)
def test_a_policy_that_changes_is_queried_for_each_request(scenario: Scenario) -> None:
    assert explore(scenario, range(count(15)), seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", scenarios.SCENARIOS, ids=name_of)
def test_no_fault_carries_out_what_the_policy_denies(scenario: Scenario) -> None:
    plans = [*sample(scenario, list(every_single_fault(calls_of(scenario), FAULTS)), SAMPLE)]
    plans += random_plans(2026, count(10), calls_of(scenario))
    assert explore(scenario, range(TIMES), plans, seconds=SECONDS).runs > 0


def test_every_planted_bug_has_a_scenario() -> None:
    assert [bug for bug, _ in CASES] == [*bugs.BUGS]


@pytest.mark.parametrize(("bug", "scenario"), CASES, ids=[bug.__name__ for bug, _ in CASES])
def test_the_simulation_finds(bug: bugs.Mutation, scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    with monkeypatch.context() as patch:
        bug(patch)
        with pytest.raises(AssertionError, match=REPLAY):
            explore(scenario, range(60), seconds=90.0)
