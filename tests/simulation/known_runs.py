"""The search for a planted bug begins with the run that found it before (`known_runs.json`).

A run that finds its bug no more, since the code or the simulation has changed, costs the search that it saves
otherwise: tests with ARCO_SIM_RECORD=1 write what they find instead. `make test-thorough` always searches.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.simulation.explore import Scenario, explore, name_of
from tests.simulation.faults import FaultPlan
from tests.simulation.rule_mutations import Mutation
from tests.simulation.thoroughness import SEARCHES

FILE = Path(__file__).with_name("known_runs.json")

RECORD = "ARCO_SIM_RECORD"
Run = tuple[int, FaultPlan]
"""A seed, and what is planned to happen."""


def known_first(bug: Mutation, where: str, runs: Iterable[Run]) -> Iterator[Run]:
    """Yields the run of a scenario or program that is known to find a bug, if there is one, and then the others."""
    text = None if SEARCHES else _table().get(_key(bug, where))
    if text is not None:
        seed, _, plan = text.partition("|")
        yield int(seed), FaultPlan.parse(plan)
    yield from runs


def record(bug: Mutation, where: str, run: Run) -> None:
    """Writes a run that has found a bug into the table, if the environment wants it."""
    seed, plan = run
    table, found = {**_table()}, f"{seed}|{plan}"
    if os.environ.get(RECORD) and table.get(_key(bug, where)) != found:
        table[_key(bug, where)] = found
        FILE.write_text(json.dumps(table, indent=2, sort_keys=True) + "\n")


def find(bug: Mutation, scenario: Scenario, runs: Iterable[Run], *, seconds: float = 120.0) -> Run:
    """Returns the first run that fails with the bug and passes without it; the known one is tried before `runs`, which
    are drawn without the bug. Raises AssertionError if none does, or after so many seconds."""
    began, where = time.perf_counter(), name_of(scenario)
    for seed, plan in known_first(bug, where, runs):
        if _fails(bug, scenario, seed, plan) and not _fails(None, scenario, seed, plan):
            record(bug, where, (seed, plan))
            return seed, plan
        if time.perf_counter() - began > seconds:
            break
    raise AssertionError(f"no run of {where} finds {bug.__name__}")


def _fails(bug: Mutation | None, scenario: Scenario, seed: int, plan: FaultPlan) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        if bug is not None:
            bug(patch)
        try:
            explore(scenario, [seed], [plan])
        except AssertionError:
            return True
    return False


def _key(bug: Mutation, where: str) -> str:
    return f"{bug.__name__} by {where}"


def _table() -> Mapping[str, str]:
    table: Mapping[str, str] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return table
