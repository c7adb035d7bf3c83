"""As many workers as there are cores, as far as memory goes, where the store can be shared."""

import os
from pathlib import Path

import pytest

from arco_catalog.cli import capacity
from arco_catalog.cli.capacity import PROCESS_BYTES, cores, memory_bytes, usual_workers

GB = 1 << 30


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The control group `/outer/inner`, which sets no limit yet, on a machine of sixteen cores and 64 GB."""
    (tmp_path / "own").write_text("1:cpu:/other\n0::/outer/inner\n")
    group = tmp_path / "outer" / "inner"
    group.mkdir(parents=True)
    monkeypatch.setattr(capacity, "OWN_CGROUP", tmp_path / "own")
    monkeypatch.setattr(capacity, "CGROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(16)})
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 16 << 20, "SC_PAGE_SIZE": 4096}.__getitem__)
    return group


def test_without_limits_there_is_a_worker_for_each_core(group: Path) -> None:
    assert (cores(), memory_bytes()) == (16, 64 * GB)
    assert usual_workers("s3://bucket", 356 << 20, 64) == 16


def test_a_store_in_memory_has_one(group: Path) -> None:
    assert usual_workers("memory:", 1 << 20, 64) == 1


@pytest.mark.parametrize(("limit", "count"), [("max 100000", 16), ("200000 100000", 2), ("50000 100000", 1)])
def test_cores_are_those_of_the_control_group(group: Path, limit: str, count: int) -> None:
    (group / "cpu.max").write_text(f"{limit}\n")
    assert cores() == count


def test_a_group_further_out_bounds_those_in_it(group: Path) -> None:
    (group / "cpu.max").write_text("800000 100000\n")
    (group.parent / "cpu.max").write_text("300000 100000\n")
    (group / "memory.max").write_text("max\n")
    (group.parent / "memory.max").write_text(f"{2 * GB}\n")
    assert (cores(), memory_bytes()) == (3, 2 * GB)


@pytest.mark.parametrize(("fit", "workers"), [(0, 1), (1, 1), (3, 3), (99, 16)])
def test_no_more_are_started_than_memory_suffices_for(group: Path, fit: int, workers: int) -> None:
    each = 100 << 20
    (group / "memory.max").write_text(f"{fit * (each + PROCESS_BYTES) + 5}\n")
    assert usual_workers("file:/x", each, 64) == workers


def test_the_number_has_a_limit(group: Path) -> None:
    assert usual_workers("file:/x", 1 << 20, 4) == 4


def test_a_machine_without_control_groups_sets_no_limit(group: Path) -> None:
    (group.parent.parent / "own").unlink()
    assert (cores(), memory_bytes()) == (16, 64 * GB)
