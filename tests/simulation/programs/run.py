"""One seed, one program, one run, one verdict; and of a run that fails the line that replays it."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from arco_catalog.protocol import operation_request
from arco_catalog.state import pointer, registry
from arco_catalog.upkeep.reconcile import reconcile
from tests.simulation.collecting import KEY_MS
from tests.simulation.explore import REPLAY
from tests.simulation.faults import DENIED, NO_FAULTS, FaultPlan
from tests.simulation.history import render
from tests.simulation.loop import MAX_SECONDS, SimulatedLoop
from tests.simulation.programs.closing import closed, left_over
from tests.simulation.programs.grammar import DAY, MIXED, Profile, drawn
from tests.simulation.programs.history import Asked, History
from tests.simulation.programs.judge import judged
from tests.simulation.programs.places import misplaced
from tests.simulation.programs.player import Player
from tests.simulation.programs.requests import Program
from tests.simulation.programs.restoring import play_elsewhere, play_in_place
from tests.simulation.programs.unread_keys import may_stay_open
from tests.simulation.programs.working import finish_tasks
from tests.simulation.runtime import EPOCH_MS
from tests.simulation.world import DIED, World
from tests.support.past_heads import short_chains

DRAWN = "drawn"
"""In place of a fault plan: the faults that the seed draws."""
LEASES_OVER = 120.0
"""Seconds after which whatever a dead coordinator left may be cleared away by anybody."""


@dataclass(slots=True)
class Outcome:
    """What came of one run. `wrong` is empty if all was well."""

    seed: int
    program: Program
    world: World
    wrong: list[str] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """Calls to the store."""
        return sum(map(len, self.world.calls.values()))


@contextmanager
def short_memory(moves: int | None) -> Iterator[None]:
    """Pointers and the registry remember so few moves that programs outrun them."""
    with pytest.MonkeyPatch.context() as patch:
        if moves is not None:
            patch.setattr(pointer, "RECENT_MOVES", moves)
            patch.setattr(registry, "RECENT_COMMITS", moves - 1)
            patch.setattr(registry, "RECENT_OPERATIONS", moves)
        yield


@contextmanager
def short_keys(ages: bool) -> Iterator[None]:
    """Keys that have no marker are too old after seconds, where ages are of seconds."""
    with pytest.MonkeyPatch.context() as patch:
        if ages:
            patch.setattr(operation_request, "DAY_MS", KEY_MS)
        yield


def program_of(seed: int, profile: Profile = MIXED) -> Program:
    """The program of a seed."""
    return drawn(random.Random(f"{seed}/program"), profile)


def play(seed: int, program: Program, plan: FaultPlan | None) -> Outcome:
    """Plays a program and judges what came of it. `plan` names the faults; None: they are drawn."""
    loop = SimulatedLoop(seed, max_seconds=400 * DAY if program.conditions.months else MAX_SECONDS)
    world = World(loop, plan or NO_FAULTS)
    outcome = Outcome(seed, program, world)
    player = Player(world, program, draw_faults=plan is None)
    try:
        conditions = program.conditions
        with short_memory(conditions.memory), short_keys(conditions.ages), short_chains(conditions.proposals):
            loop.run(_played(player, outcome.wrong))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # also a `Crashed` that got out of its process
        outcome.wrong.append(f"the run ends in {_in_short(error)}")
    denials = [event.at for event in world.history if event.step == f"sent [{DENIED}]"]
    for history in (*player.histories, player.history):
        history.denials = denials
        misplaced_tables = misplaced(history, overlap=program.conditions.overlap)
        outcome.wrong = [*judged(history), *misplaced_tables, *outcome.wrong]
    return outcome


async def _played(player: Player, wrong: list[str]) -> None:
    restores = player.program.conditions.restores
    if not restores:
        await player.play()
        await _end(player, wrong)
        return
    with TemporaryDirectory() as folder:
        if restores == "in place":
            await play_in_place(player, Path(folder))
            await _end(player, wrong)
            return
        copy = Player(player.world, player.program, draw_faults=player.draws_faults, copy=True)
        await play_elsewhere(player, copy, Path(folder), lambda: _end(player, wrong, tasks=False))
        await _end(copy, wrong)


async def _end(player: Player, wrong: list[str], *, tasks: bool = True) -> None:
    """Finishes all that is left to do in a catalog, and judges what that leaves. Without `tasks` no purge goes on."""
    world, history, paths = player.world, player.history, player.paths
    ages = player.program.conditions.ages or player.program.conditions.months
    wrong += closed(history, world.snapshot(), paths, reconciled=False, collected=ages)
    await world.runtime.sleep(LEASES_OVER)
    has_tasks = player.program.conditions.expires or player.program.conditions.window_ms is not None
    if tasks and has_tasks and not await finish_tasks(player):
        wrong.append("the tasks do not end")
    last = world.process(player.name_of("last walk"), 0)
    stats = await last.run(reconcile(player.fixture(last).session(deadline_ms=600_000)))
    assert stats is not DIED
    wrong += [f"the reconciler could not read {each}" for each in stats.unreadable]
    await world.settle()
    wrong += closed(history, world.snapshot(), paths, reconciled=True, collected=ages)
    wrong += left_over(history, player.recorder.entries)
    if not player.program.conditions.memory and not ages:
        unanswered = [
            request
            for request in history.asked
            if request.told is None
            and not request.given_up
            and not may_stay_open(history, request)
            and _must_know(request.key_ms, request.since)
            and not _is_result_lost(history, request)
        ]
        wrong += [f"{request} never got a definite answer" for request in unanswered]


def _must_know(key_ms: int | None, since: float) -> bool:
    """Whether a client that has a key must learn its answer in the end: unless the key is too old to be executed."""
    return key_ms is not None and abs(EPOCH_MS + since * 1000 - key_ms) < 3_600_000


def _is_result_lost(history: History, request: Asked) -> bool:
    """Whether a commit was applied and a purge has deleted its metadata file, which would be the answer: the client
    learns that the change was made, and not more (`result-lost` in docs/observability.md)."""
    deleted = {each.file for each in history.deletions}
    return any(effect.file in deleted for effect in history.of(request.principal))


def failure(outcome: Outcome, about: str) -> str:
    """What went wrong, with as few faults as it takes, and the line that replays it; `about` is the profile of the
    program, or the name of one written by hand."""
    plan = FaultPlan(tuple(outcome.world.fired))
    again = play(outcome.seed, outcome.program, plan)
    if again.wrong:
        outcome = again
        for planned in plan.faults:
            smaller = play(outcome.seed, outcome.program, outcome.world.plan.without(planned))
            if smaller.wrong:
                outcome = smaller
        name = f"{about}|{outcome.seed}|{outcome.world.plan}"
    else:  # calls under a fault that stays are no part of a plan
        name = f"{about}|{outcome.seed}|{DRAWN}"
    said = "\n".join(outcome.wrong[:5])
    return (
        f"{said}\n{REPLAY}='{name}'\n{outcome.program}\n"
        f"the last of {len(outcome.world.history)} events:\n{render(outcome.world.history[-30:])}"
    )


def _in_short(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
