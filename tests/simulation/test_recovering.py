"""HEAD or pointers lost at any instant: what comes back is what was there, or the operator is asked."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest

from arco_catalog.upkeep.recovery.heads import Candidate, HeadSearch
from arco_catalog.upkeep.recovery.pointers import Commit, PointerSearch
from tests.simulation.explore import Scenario, name_of
from tests.simulation.faults import random_plans
from tests.simulation.recovering import Outcomes, instants_of, lose_head, lose_pointers
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.test_protocols import calls_of, crashes
from tests.simulation.thoroughness import count, sample

Lose = Callable[[Mapping[str, bytes], Outcomes], Coroutine[Any, Any, None]]
AT_MOST = 12
"""Instants of one run that are looked at."""


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


def tried(lose: Lose, snapshots: Sequence[dict[str, bytes]]) -> Outcomes:
    """Loses objects at each of these instants."""
    outcomes = Outcomes()

    async def every() -> None:
        for objects in snapshots:
            await lose(objects, outcomes)

    asyncio.run(every())
    return outcomes


def some_instants(scenario: Scenario, seed: int) -> Sequence[dict[str, bytes]]:
    snapshots = instants_of(scenario, seed)
    return snapshots[:: max(1, len(snapshots) // AT_MOST)]


@pytest.mark.parametrize("lose", [lose_head, lose_pointers])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_what_was_lost_at_any_instant_comes_back(scenario: Scenario, lose: Lose) -> None:
    for seed in range(count(2)):
        assert tried(lose, some_instants(scenario, seed)).known, "nothing is ever known"


@pytest.mark.parametrize("lose", [lose_head, lose_pointers])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_what_was_lost_after_a_crash_comes_back(scenario: Scenario, lose: Lose) -> None:
    plans = [*sample(scenario, crashes(scenario), 3), *random_plans(15, count(2), calls_of(scenario))]
    snapshots: list[dict[str, bytes]] = []
    for plan in plans:
        lived = instants_of(scenario, 1, plan)
        snapshots += [lived[-1], lived[len(lived) // 2], lived[len(lived) // 3]]
    outcomes = tried(lose, snapshots)
    assert outcomes.known + outcomes.asked > 0, "nothing was ever lost"


def all_are_right(lose: Lose) -> None:
    for scenario in SCENARIOS:
        tried(lose, some_instants(scenario, 0))


def test_a_head_that_is_chosen_by_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def newest(search: HeadSearch) -> Candidate | None:
        return max(search.candidates, key=lambda each: each.at_ms or 0, default=None)

    monkeypatch.setattr(HeadSearch, "certain", property(newest))
    with pytest.raises(AssertionError, match="was chosen"):
        all_are_right(lose_head)


def test_a_head_of_which_only_what_came_after_is_believed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeadSearch, "certain", property(lambda search: search.known))
    with pytest.raises(AssertionError, match="was chosen"):
        all_are_right(lose_head)


def test_a_pointer_that_is_chosen_by_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def newest(search: PointerSearch) -> Commit | None:
        return max(search.candidates, key=lambda each: each.file.ms, default=None)

    monkeypatch.setattr(PointerSearch, "certain", property(newest))
    with pytest.raises(AssertionError):
        all_are_right(lose_pointers)


def test_a_pointer_of_which_only_what_came_after_is_believed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PointerSearch, "certain", property(lambda search: search.made[0] if search.made else None))
    with pytest.raises(AssertionError, match="was chosen"):
        all_are_right(lose_pointers)
