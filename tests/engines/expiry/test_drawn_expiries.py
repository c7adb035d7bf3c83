"""Expiries by the worker beside those by Iceberg's Java library, for tables drawn from seeds."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.engines.expiry import planted
from tests.engines.expiry.comparison import Case, drawn_case, faults
from tests.engines.expiry.drawn_tables import FOCUSED
from tools.support.java_programs import JavaProgram

TABLES = 45
SLOW_TABLES = int(os.environ.get("ARCO_EXPIRY_TABLES", "1000"))


@pytest.fixture(scope="module")
def cases(java: JavaProgram, folder: Path) -> list[Case]:
    drawn = [drawn_case(java, seed, folder) for seed in range(TABLES)]
    return [*drawn, *(drawn_case(java, TABLES + place, folder, each) for place, each in enumerate(FOCUSED))]


async def test_snapshots_and_files_are_those_of_java(cases: Sequence[Case], folder: Path) -> None:
    found = [fault for case in cases for fault in await faults(case, folder)]
    assert found == [], "\n".join(found)
    assert sum(bool(case.deleted) for case in cases) > TABLES / 2, "tables of which nothing expires prove little"


def test_java_deletes_no_other_files_where_it_chooses_how_to_find_them(cases: Sequence[Case]) -> None:
    assert [only_by_choice(case) for case in cases if only_by_choice(case)] == []


def only_by_choice(case: Case) -> set[str]:
    """What Java deletes only where it chooses the faster way, without Puffin files: there Java 1.11 takes a file for
    unneeded as soon as one of its vectors is removed, though kept snapshots name others (seed 10042)."""
    return {key for key in case.deleted_by_choice - case.deleted if "/vectors.puffin" not in key}


@pytest.mark.parametrize("plant", planted.ALL, ids=lambda plant: plant.__name__)
async def test_an_expiry_with_a_bug_is_noticed(
    cases: Sequence[Case], folder: Path, plant: planted.Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    for case in cases:
        if await faults(case, folder):
            return
    raise AssertionError("no table shows it")


@pytest.mark.slow
async def test_hundreds_of_expiries_are_those_of_java(java: JavaProgram, tmp_path: Path) -> None:
    some = 0
    for seed in range(10_000, 10_000 + SLOW_TABLES):
        case = drawn_case(java, seed, tmp_path)
        found = await faults(case, tmp_path)
        assert found == [], "\n".join(found)
        assert only_by_choice(case) == set()
        some += bool(case.deleted)
        shutil.rmtree(tmp_path / "wh" / "warehouse" / case.name)
    print(f"{SLOW_TABLES} tables, of {some} of which files are deleted")
    assert some > SLOW_TABLES / 2
