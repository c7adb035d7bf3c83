"""Runs a scenario under many seeds and fault plans, and makes every failure a line that replays it."""

import os
import time
import unittest
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NoReturn

from tests.simulation.faults import NO_FAULTS, FaultPlan, PlannedFault
from tests.simulation.history import render
from tests.simulation.loop import SimulatedLoop
from tests.simulation.world import World

Scenario = Callable[[World], Coroutine[Any, Any, object]]
"""Sets processes to work in a world, and asserts what must be true."""

MakeWorld = Callable[[SimulatedLoop, FaultPlan], World]

REPLAY = "ARCO_SIM_REPLAY"
_EVENTS_SHOWN = 40


@dataclass(slots=True)
class Exploration:
    """What was covered. `complete` says that no budget cut it short."""

    scenario: str
    runs: int = 0
    calls: int = 0
    deaths: int = 0
    fired: Counter[PlannedFault] = field(default_factory=Counter)
    seconds: float = 0.0
    complete: bool = True

    def faults(self) -> Counter[str]:
        """How often each fault happened, by name."""
        names: Counter[str] = Counter()
        for planned, times in self.fired.items():
            names[planned.fault.name] += times
        return names

    def add(self, world: World) -> None:
        """Counts one run."""
        self.runs += 1
        self.calls += sum(map(len, world.calls.values()))
        self.deaths += sum(event.step == "dies" for event in world.history)
        self.fired.update(world.fired)

    def __str__(self) -> str:
        cut = "" if self.complete else " (cut short)"
        return (
            f"{self.scenario}: {self.runs} runs{cut}, {self.calls} calls, {len(self.fired)} fault points, "
            f"{self.deaths} deaths, {self.seconds:.1f} s"
        )


def explore(
    scenario: Scenario,
    seeds: Iterable[int],
    plans: Iterable[FaultPlan] = (NO_FAULTS,),
    *,
    name: str | None = None,
    max_runs: int = 10_000,
    seconds: float = 60.0,
    make_world: MakeWorld = World,
    clock: Callable[[], float] = time.perf_counter,
) -> Exploration:
    """Runs every plan under the first seed, then under the second, until a budget is spent.

    The first failure is reduced to the faults that it needs and raised as an AssertionError that says how to replay it.
    When the environment variable ARCO_SIM_REPLAY is set, that run alone is executed and its history printed; if it
    passes, or belongs to another scenario, `unittest.SkipTest` ends the test, which then proved nothing.
    """
    name = name_of(scenario) if name is None else name
    if replay := os.environ.get(REPLAY):
        _replay(name, replay, scenario, make_world)
    covered = Exploration(name)
    began = clock()
    for seed, plan in product(seeds, plans):
        if covered.runs >= max_runs or clock() - began > seconds:
            covered.complete = False
            break
        world, error = _attempt(scenario, seed, plan, make_world)
        if error is not None:
            _fail(name, *_reduce(scenario, world, error, make_world))
        covered.add(world)
        del world, error  # garbage of the next run
    covered.seconds = clock() - began
    return covered


def name_of(scenario: Scenario) -> str:
    """What a replay line calls a scenario that was given no other name."""
    return getattr(scenario, "__qualname__", type(scenario).__qualname__).replace(".<locals>", "")


def trace(scenario: Scenario, seed: int = 0, plan: FaultPlan = NO_FAULTS, make_world: MakeWorld = World) -> World:
    """Runs a scenario once and returns the world as it left it. Raises what the scenario raises."""
    world, error = _attempt(scenario, seed, plan, make_world)
    if error is not None:
        raise error
    return world


def _attempt(
    scenario: Scenario, seed: int, plan: FaultPlan, make_world: MakeWorld
) -> tuple[World, BaseException | None]:
    loop = SimulatedLoop(seed)
    world = make_world(loop, plan)
    try:
        loop.run(scenario(world))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # also a `Crashed` that a scenario let out of its process
        return world, error
    return world, None


def _reduce(
    scenario: Scenario, world: World, error: BaseException, make_world: MakeWorld
) -> tuple[World, BaseException]:
    """Leaves out one fault after the other for as long as the run still fails."""
    for planned in world.plan.faults:
        smaller, its_error = _attempt(scenario, world.seed, world.plan.without(planned), make_world)
        if its_error is not None:
            world, error = smaller, its_error
    return world, error


def _fail(name: str, world: World, error: BaseException) -> NoReturn:
    raise AssertionError(
        f"{name} fails: {_in_short(error)}\n"
        f"{REPLAY}='{name}|{world.seed}|{world.plan}'\n"
        f"the last of {len(world.history)} events:\n{render(world.history[-_EVENTS_SHOWN:])}"
    ) from error


def _in_short(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def _replay(name: str, text: str, scenario: Scenario, make_world: MakeWorld) -> NoReturn:
    if text.count("|") != 2:
        raise ValueError(f"{REPLAY} reads scenario|seed|plan, not {text!r}")
    wanted, seed, plan = text.split("|")
    if wanted != name:
        raise unittest.SkipTest(f"{REPLAY} names {wanted}, not {name}")
    world, error = _attempt(scenario, int(seed), FaultPlan.parse(plan), make_world)
    print(render(world.history))
    if error is not None:
        _fail(name, world, error)
    raise unittest.SkipTest(f"replayed {text}: it passes")
