"""In healthy use no outcome is unknown, whatever the age of caches; where one is, it is counted with its reason."""

import json
import logging
from pathlib import Path

import pytest

from arco_catalog.iceberg.errors import CommitStateUnknown
from tests.simulation import healthy_use
from tests.simulation.healthy_use import PART, Tally, played
from tests.simulation.rule_mutations_for_idle_processes import a_swap_that_names_a_version_of_any_age
from tests.simulation.thoroughness import count

SEED = 1


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)


def test_in_healthy_use_no_outcome_is_unknown_nor_that_of_any_retry() -> None:
    tally = Tally()
    for seed in range(SEED, SEED + count(4)):
        tally.add(played(seed))

    assert tally.commits >= PART
    assert tally.retries > PART // 20
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
        played(SEED)

    assert {*tallies[0].reasons} == {"evidence-lost"}


def test_a_tally_is_kept_in_a_file(tmp_path: Path) -> None:
    tally, file = Tally(worlds=1, commits=7), tmp_path / "state" / "healthy-use.json"
    tally.reasons["undecided"] += 1
    tally.write(file)

    assert Tally.read(file) == tally
    assert json.loads(file.read_text())["commits"] == 7
