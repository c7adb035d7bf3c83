"""Purges beside processes that propose their changes of the registry, by simulation: in any order, and with a fault at
any call (docs/design/registry.md#rule-16)."""

import logging
from collections.abc import Iterator

import pytest

from arco_catalog.upkeep.purge import deletion
from tests.simulation import rule_mutations_for_proposals as mutations
from tests.simulation.explore import REPLAY, Scenario, explore, name_of, trace
from tests.simulation.faults import FAULTS, UNAVAILABLE, FaultPlan, every_single_fault
from tests.simulation.known_runs import Run, find
from tests.simulation.purging_beside_proposers import BESIDE_PROPOSERS, a_purge_that_gives_up_beside_creates
from tests.simulation.test_rule_mutations import SEEDS
from tests.simulation.thoroughness import TIMES, count, sample

SPARED = ("setup", "last")
SECONDS = 600.0 * TIMES


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "AT_ONCE", 1)  # or a purge of so few files has no middle
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


@pytest.mark.parametrize("scenario", BESIDE_PROPOSERS, ids=name_of)
def test_they_delete_nothing_else_in_any_order(scenario: Scenario) -> None:
    assert explore(scenario, range(count(8)), seconds=SECONDS).runs > 0


@pytest.mark.parametrize("scenario", BESIDE_PROPOSERS, ids=name_of)
def test_any_fault_at_any_call_is_made_up_for(scenario: Scenario) -> None:
    calls = {process: kinds for process, kinds in trace(scenario).calls.items() if process not in SPARED}
    plans = sample(scenario, list(every_single_fault(calls, list(FAULTS))), 15)

    assert explore(scenario, range(TIMES), plans, seconds=SECONDS).complete


def lost_stores(scenario: Scenario) -> Iterator[Run]:
    """Runs in each of which a worker loses the store after it has proposed."""
    for seed in range(SEEDS):
        for event in trace(scenario, seed).history:
            is_sent = event.kind == "list" and event.step.startswith("sent") and "/proposals/" in event.key
            if is_sent and event.process.startswith("w"):
                yield seed, FaultPlan.parse(f"{event.process}@{event.number}:{UNAVAILABLE}")


def test_a_purge_that_is_given_up_without_a_fence_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    scenario = a_purge_that_gives_up_beside_creates
    bug = mutations.a_purge_given_up_while_its_beginning_waits
    assert find(bug, scenario, lost_stores(scenario), seconds=90.0)
