"""Each consistent cut is of one instant, beside changes that are drawn, under faults and crashes, and the bugs that
break this are found (docs/design/resolve.md#rule-5)."""

import logging
import os
from collections.abc import Sequence

import pytest

from tests.simulation import cutting
from tests.simulation import rule_mutations_for_cuts as bugs
from tests.simulation.explore import REPLAY, Scenario, explore, name_of, trace
from tests.simulation.faults import NO_FAULTS, FaultPlan, random_plans
from tests.simulation.known_runs import find
from tests.simulation.rule_mutations import Mutation
from tests.simulation.thoroughness import TIMES, count

SECONDS = 120.0 * TIMES
READS = int(os.environ.get("ARCO_CUT_SIM_READS", "1000000"))
"""Reads of a table in a cut that was accepted, of all scenarios together."""


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


@pytest.mark.parametrize("scenario", cutting.SCENARIOS, ids=name_of)
def test_a_cut_is_of_one_instant(scenario: Scenario) -> None:
    cutting.COUNTED.clear()
    assert explore(scenario, range(count(200)), seconds=SECONDS).complete
    assert cutting.COUNTED["cuts"] > 9 * cutting.COUNTED["given up"]
    assert cutting.COUNTED["of changes"] > cutting.COUNTED["cuts"] / 10, "few cuts meet a change"


@pytest.mark.parametrize("scenario", cutting.SCENARIOS, ids=name_of)
def test_a_cut_is_of_one_instant_under_several_faults(scenario: Scenario) -> None:
    calls = {process: kinds for process, kinds in trace(scenario).calls.items() if process != "setup"}
    assert explore(scenario, range(1), [*random_plans(2026, count(200), calls)], seconds=SECONDS).complete


@pytest.mark.slow
@pytest.mark.parametrize("scenario", cutting.SCENARIOS, ids=name_of)
def test_a_million_reads_show_nothing_of_two_instants(scenario: Scenario) -> None:
    cutting.COUNTED.clear()
    wanted = READS / len(cutting.SCENARIOS)
    for first in range(200, 200 + READS, 100):
        assert explore(scenario, range(first, first + 100), seconds=SECONDS).complete
        if cutting.COUNTED["reads"] >= wanted:
            break
    assert cutting.COUNTED["reads"] >= wanted
    print(f"{name_of(scenario)}: {dict(cutting.COUNTED)}")


CASES: Sequence[tuple[Mutation, Scenario]] = [
    (bugs.cuts_by_versions_alone, cutting.cuts_beside_transactions),
    (bugs.cuts_of_one_collection, cutting.cuts_beside_drawn_changes),
    (bugs.cuts_by_a_head_that_is_not_read_again, cutting.cuts_beside_drawn_changes),
    (bugs.cuts_with_decisions_from_memory, cutting.cuts_beside_transactions),
    (bugs.cuts_with_a_head_after_the_pointers, cutting.cuts_beside_renames_back_and_forth),
]


def test_every_planted_bug_has_a_case() -> None:
    assert [bug for bug, _ in CASES] == [*bugs.BUGS]


@pytest.mark.parametrize(("bug", "scenario"), CASES, ids=[bug.__name__ for bug, _ in CASES])
def test_the_simulation_finds(bug: Mutation, scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    runs: list[tuple[int, FaultPlan]] = [(seed, NO_FAULTS) for seed in range(1_000)]
    assert find(bug, scenario, runs)
