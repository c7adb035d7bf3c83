"""Programs of requests drawn from seeds: whatever ships is asked of several machines at once, and nobody is told a lie.

`make test-slow` runs 1,000,000 of them (`python -m tests.simulation`); here is a sample (`thoroughness.py`).
"""

import os
import unittest
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from tests.simulation.explore import REPLAY
from tests.simulation.faults import FaultPlan
from tests.simulation.history import render
from tests.simulation.programs.campaign import (
    BATCH,
    Campaign,
    Make,
    Schedule,
    part,
    replayed,
    schedule,
    without_warnings,
)
from tests.simulation.programs.focused import FOCUSED, one_name_that_is_followed_and_made
from tests.simulation.programs.profiles import PROFILES
from tests.simulation.programs.requests import READS, WORK, Kind, Name, Program, Request
from tests.simulation.programs.run import failure, program_of
from tests.simulation.thoroughness import count

DRAWN = 25
"""Programs of each profile. Another sample than any campaign's begins with would only be luckier."""
BY_HAND = 15


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with without_warnings():
        yield


def check(chosen: Schedule) -> None:
    """Plays it, unless another run is to be replayed."""
    outcome = chosen.played()
    if outcome.wrong:
        raise AssertionError(failure(outcome, chosen.about))


@pytest.fixture(scope="module", autouse=True)
def replay() -> None:
    """Runs what the environment asks for, and nothing else."""
    if line := os.environ.get(REPLAY):
        with without_warnings():
            outcome = replayed(line)
        if outcome is not None:
            print(render(outcome.world.history))
            assert not outcome.wrong, "\n".join(outcome.wrong)
        raise unittest.SkipTest(f"{REPLAY} asks for {line}")


@pytest.mark.parametrize("about", PROFILES)
def test_a_drawn_program_tells_nobody_a_lie_and_loses_nothing(about: str) -> None:
    for seed in range(count(DRAWN)):
        check(Schedule(about, seed))


@pytest.mark.parametrize("make", FOCUSED, ids=lambda make: make.__name__)
def test_a_short_program_about_one_danger_passes(make: Make) -> None:
    for seed in range(count(BY_HAND)):
        check(Schedule(make.__name__, seed))


def test_programs_ask_for_everything_there_is() -> None:
    asked: set[Kind] = set()
    for about in PROFILES.values():
        for seed in range(100):
            asked |= {sending.request.kind for client in program_of(seed, about).clients for sending in client}
    assert asked == set(Kind.__args__)  # type: ignore[attr-defined]
    assert asked >= READS | WORK


TAKES: frozenset[Kind] = frozenset(
    {
        "create",
        "create-view",
        "create-generic",
        "create-model",
        "register",
        "rename",
        "rename-view",
        "undrop",
        "follow",
    }
)
"""Requests that give a name to something, besides transactions."""


def taken(request: Request) -> Iterator[Name]:
    """The names that a request gives to something."""
    if request.kind in TAKES:
        yield request.to or request.names[0]
    yield from request.creates


def meetings(program: Program) -> set[frozenset[Kind]]:
    """Which two kinds of requests, of different clients, take one name."""
    takers: dict[Name, set[tuple[int, Kind]]] = {}
    for number, client in enumerate(program.clients):
        for sending in client:
            for name in taken(sending.request):
                takers.setdefault(name, set()).add((number, sending.request.kind))
    return {
        frozenset({one, other})
        for found in takers.values()
        for (mine, one), (theirs, other) in combinations(found, 2)
        if mine != theirs
    }


def test_every_two_ways_to_take_a_name_meet() -> None:
    met = set().union(*(meetings(program_of(seed, PROFILES["names"])) for seed in range(100)))
    followed = meetings(one_name_that_is_followed_and_made())

    ways = {*TAKES, "transaction"} - {"follow"}  # which is for catalogs whose tables nobody makes
    assert met == {frozenset({one, other}) for one in ways for other in ways}
    assert followed >= {
        frozenset({"follow", other}) for other in ("follow", "create-generic", "create-model", "undrop")
    }


def test_a_seed_gives_the_same_run() -> None:
    for number in range(10):
        first, second = schedule(number).played(), schedule(number).played()
        assert render(first.world.history) == render(second.world.history)
        assert first.wrong == second.wrong


def test_the_faults_that_a_run_met_give_the_same_run_again() -> None:
    met = 0
    for number in range(30):
        drawn = schedule(number).played()
        plan = FaultPlan(tuple(drawn.world.fired))
        assert render(schedule(number).played(plan).world.history) == render(drawn.world.history)
        met += len(plan.faults)
    assert met > 10


def test_a_receipt_that_two_collections_delete_is_deleted_once() -> None:
    """The slower one deletes nothing, when the commit has no receipt any more."""
    plan = FaultPlan.parse("p3@9:freeze,p2@4:echo,p3@27:echo,p1@96:duplicate")
    assert not Schedule("collecting", 731001150).played(plan).wrong


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    whole = Campaign(0)
    for first in (0, 10):
        whole.add(part(first, 10))
        whole.write(tmp_path / "state.json")
        whole = Campaign.read(tmp_path / "state.json")
    once = part(0, 20)
    assert (whole.done, whole.calls, whole.deaths, whole.failed) == (20, once.calls, once.deaths, once.failed)
    assert BATCH >= 20
