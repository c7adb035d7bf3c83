"""In healthy use no outcome is unknown, whatever the age of caches; where one is, it is counted with its reason."""

import json
import logging
from pathlib import Path

import pytest

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.state import pointer, registry
from tests.simulation import healthy_use
from tests.simulation.healthy_use import PART, Tally, played
from tests.simulation.rule_mutations_for_idle_processes import a_swap_that_names_a_version_of_any_age
from tests.simulation.thoroughness import count

SEED = 1
SCALE = 3
"""What a pointer and HEAD remember, a world and its bursts are this many times smaller than in `make test-healthy-use`,
so that idle processes miss as much of what is remembered."""
COMMITS = PART // SCALE


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)
    for module, name in (
        (pointer, "RECENT_MOVES"),
        (registry, "RECENT_COMMITS"),
        (registry, "RECENT_OPERATIONS"),
        (healthy_use, "BURST"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name) // SCALE)


def test_in_healthy_use_no_outcome_is_unknown_nor_that_of_any_retry() -> None:
    tally = Tally()
    for seed in range(SEED, SEED + count(4)):
        tally.add(played(seed, COMMITS))

    assert tally.commits >= COMMITS
    assert tally.retries > COMMITS // 20
    assert tally.refused
    assert tally.virtual_days > 30
    assert tally.reasons == {}


def test_healthy_use_finds_a_swap_that_names_a_version_of_any_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends at the first unknown outcome, which is counted with its reason."""
    tallies: list[Tally] = []

    class CountingTally(Tally):
        def __init__(self) -> None:
            super().__init__()
            tallies.append(self)

    a_swap_that_names_a_version_of_any_age(monkeypatch)
    monkeypatch.setattr(healthy_use, "Tally", CountingTally)
    with pytest.raises((CommitStateUnknown, ExceptionGroup)):
        played(SEED, COMMITS)

    assert {*tallies[0].reasons} == {"evidence-lost"}


def test_a_tally_is_kept_in_a_file(tmp_path: Path) -> None:
    tally, file = Tally(worlds=1, commits=7), tmp_path / "state" / "healthy-use.json"
    tally.reasons["undecided"] += 1
    tally.write(file)

    assert Tally.read(file) == tally
    assert json.loads(file.read_text())["commits"] == 7
