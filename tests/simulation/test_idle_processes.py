"""An idle process leaves no outcome open, whether it lives or dies; the bugs that break this are found."""

import logging

import pytest

from tests.simulation import rule_mutations_for_idle_processes as rule_mutations
from tests.simulation.explore import REPLAY, Scenario, explore, name_of
from tests.simulation.idle_processes import (
    a_commit_by_an_idle_process,
    a_commit_whose_idle_process_dies_behind_its_claim,
    a_create_whose_idle_process_dies_behind_its_claim,
)
from tests.simulation.rule_mutations import Mutation

SEEDS = range(5)
CASES: list[tuple[Mutation, Scenario]] = [
    (rule_mutations.a_swap_that_names_a_version_of_any_age, a_commit_by_an_idle_process),
    (rule_mutations.a_claim_that_names_a_pointer_of_any_age, a_commit_whose_idle_process_dies_behind_its_claim),
    (rule_mutations.a_claim_that_names_a_head_of_any_age, a_create_whose_idle_process_dies_behind_its_claim),
]


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)


def test_every_planted_bug_is_searched() -> None:
    assert [bug for bug, _ in CASES] == [*rule_mutations.BUGS]


@pytest.mark.parametrize("scenario", [scenario for _, scenario in CASES], ids=name_of)
def test_an_idle_process_leaves_no_outcome_open(scenario: Scenario) -> None:
    assert explore(scenario, SEEDS).complete


@pytest.mark.parametrize(("bug", "scenario"), CASES, ids=[bug.__name__ for bug, _ in CASES])
def test_the_simulation_finds(bug: Mutation, scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=REPLAY):
        explore(scenario, SEEDS)
