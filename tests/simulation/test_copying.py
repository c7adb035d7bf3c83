"""No drawn program over a catalog and its copy makes the copy delete a file; each rule that is left out is found."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulation import rule_mutations_for_copies as bugs
from tests.simulation.copying import CopyProgram
from tests.simulation.thoroughness import count

MAX_SEEDS = 60


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


def try_seeds(folder: Path, seeds: range, *, in_place: bool) -> None:
    for seed in seeds:
        program = CopyProgram(seed, folder / f"{seed}.tar.gz")
        asyncio.run(program.run_in_place() if in_place else program.run_beside())


@pytest.mark.parametrize("in_place", [False, True])
def test_neither_a_copy_nor_a_restored_catalog_deletes_what_is_needed(tmp_path: Path, in_place: bool) -> None:
    try_seeds(tmp_path, range(count(60)), in_place=in_place)


@pytest.mark.parametrize(
    ("bug", "in_place"),
    [
        (bugs.a_copy_that_is_not_recorded, False),
        (bugs.a_collection_in_a_copy, False),
        (bugs.a_drop_in_a_copy_that_makes_a_purge, False),
        (bugs.a_purge_that_goes_on_in_a_copy, False),
        (bugs.a_commit_to_a_copy_that_cleans, False),
        (bugs.a_try_of_before_the_restore_taken_for_lost, True),
        (bugs.a_purge_without_a_delete_that_goes_on_after_a_restore, True),
        (bugs.the_largest_sequence_number_cached, True),
    ],
)
def test_a_rule_that_is_left_out_is_found(
    bug: Callable[[pytest.MonkeyPatch], None], in_place: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"deleted|before the restore"):
        try_seeds(tmp_path, range(MAX_SEEDS), in_place=in_place)
