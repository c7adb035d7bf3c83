"""Plans of the catalog beside those of Iceberg's own planner, for tables and filters drawn from seeds."""

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.engines.scans import planted, planted_requests
from tests.engines.scans.comparison import Comparison, compare, notices
from tests.engines.scans.oracle import Case, Oracle, drawn_case
from tests.engines.scans.second_opinion import agrees, opinions
from tests.engines.scans.served_planner import ServedPlanner
from tests.engines.scans.smallest import smallest

SCANS = 8
"""Scans of each table."""
TABLES = 40
PAIRS = int(os.environ.get("ARCO_SCAN_PAIRS", "5000"))


@pytest.fixture(scope="module")
def cases(oracle: Oracle, folder: Path) -> list[Case]:
    tables = ServedPlanner.of(folder).tables
    return [drawn_case(oracle, seed, SCANS, tables) for seed in range(TABLES)]


@pytest.fixture
async def registered(folder: Path, cases: Iterable[Case]) -> None:
    """Registers the tables, once."""
    served = ServedPlanner.of(folder)
    if (await served.client.head(served.url)).status == 404:
        await served.make_namespace()
        for case in cases:
            await served.register(case.name, case.table.metadata_location)


@pytest.mark.usefixtures("registered")
async def test_plans_are_those_of_java(oracle: Oracle, folder: Path, cases: list[Case]) -> None:
    served = ServedPlanner.of(folder)
    found = await compare(oracle, served, cases)
    assert found.faults == [], await smallest(oracle, served, found)
    assert_each_outcome_is_there(found.outcomes, TABLES * SCANS)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("plant", [*planted.ALL, *planted_requests.ALL], ids=lambda plant: plant.__name__)
async def test_a_planner_with_a_bug_is_noticed(
    oracle: Oracle, folder: Path, cases: list[Case], plant: planted.Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert await notices(oracle, ServedPlanner.of(folder), cases)


@pytest.mark.usefixtures("registered")
async def test_a_fault_is_shown_by_a_small_table_and_filter(
    oracle: Oracle, folder: Path, cases: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted.delete_files_of_which_one_is_dropped(monkeypatch)
    served = ServedPlanner.of(folder)
    for case in cases:
        found = await compare(oracle, served, [case])
        found.faulty = [(case, scan) for case, scan in found.faulty if scan.of_present_state and scan.min_rows is None]
        if found.faulty:
            break
    description, drawn = await smallest(oracle, served, found)

    assert drawn is True
    steps = description["steps"]
    assert isinstance(steps, list)
    assert len(steps) == 2, "rows, and deletes of some"


@pytest.mark.usefixtures("registered")
async def test_pyiceberg_finds_the_files_of_nearly_every_plan(folder: Path, cases: list[Case]) -> None:
    assert agrees(await _opinions_of_pyiceberg(folder, cases))


@pytest.mark.usefixtures("registered")
async def test_pyiceberg_finds_fewer_files_than_a_planner_without_bounds(
    folder: Path, cases: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted.bounds_without_effect(monkeypatch)
    assert not agrees(await _opinions_of_pyiceberg(folder, cases))


async def _opinions_of_pyiceberg(folder: Path, cases: Iterable[Case]) -> Counter[str]:
    served, counted = ServedPlanner.of(folder), Counter[str]()
    for case in cases:
        of_case, faults = await opinions(served, case)
        assert faults == []
        counted += of_case
    return counted


@pytest.mark.slow
async def test_thousands_of_plans_are_those_of_java(oracle: Oracle, tmp_path: Path) -> None:
    served = ServedPlanner.of(tmp_path)
    await served.make_namespace()
    found = Comparison()
    for seed in range(1000, 1000 + PAIRS // SCANS):
        case = drawn_case(oracle, seed, SCANS, served.tables)
        await served.register(case.name, case.table.metadata_location)
        of_case = await compare(oracle, served, [case])
        found.outcomes += of_case.outcomes
        found.faults += of_case.faults
        found.faulty += of_case.faulty
        assert found.faults == [], await smallest(oracle, served, found)
        shutil.rmtree(served.tables / case.name)
    print(f"{found.outcomes.total()} pairs: {dict(found.outcomes)}")
    assert_each_outcome_is_there(found.outcomes, PAIRS // SCANS * SCANS)


def assert_each_outcome_is_there(outcomes: Mapping[str, int], pairs: int) -> None:
    """Tables whose plans are empty or refused prove little."""
    counted = Counter(outcomes)
    assert counted.total() == pairs
    assert counted["with deletes"] > pairs / 8
    assert counted["without deletes"] > pairs / 4
    assert counted["ended early"] > pairs / 100
    assert counted["refused"] < pairs / 5
