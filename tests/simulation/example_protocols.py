"""Small protocols with known bugs, on which the harness proves that it finds what it is for."""

import asyncio
import json
from dataclasses import dataclass, replace

from storage_backends import (
    ABSENT,
    ANY,
    Applied,
    Found,
    Matches,
    Outcome,
    PreconditionFailed,
    StoreUnavailable,
    Unknown,
    Version,
)
from tests.simulation.explore import Scenario
from tests.simulation.history import Event
from tests.simulation.world import DIED, Process, World

LIST = "toys/list.json"
LOCK = "toys/lock.json"
DATA = "toys/data.json"


@dataclass(frozen=True, slots=True)
class Habits:
    """How a writer of the shared list behaves when a compare-and-swap does not say Applied."""

    reads_again: bool = True
    looks_for_itself_when_refused: bool = True
    looks_for_itself_when_unknown: bool = True
    takes_unknown_for_done: bool = False


CAREFUL = Habits()
LOSES_UPDATES = replace(CAREFUL, reads_again=False)
IGNORES_ECHOES = replace(CAREFUL, looks_for_itself_when_refused=False)
APPLIES_TWICE = replace(CAREFUL, looks_for_itself_when_unknown=False)
LIES = replace(CAREFUL, takes_unknown_for_done=True)


def shared_list(habits: Habits, writers: tuple[str, ...] = ("p1", "p2", "p3")) -> Scenario:
    """Each writer appends its word to one object, and starts again in a new process whenever its own died."""

    async def scenario(world: World) -> None:
        acknowledged: set[str] = set()

        def audit(_: Event | None = None) -> None:
            words = json.loads(world.snapshot()[LIST])
            assert len(words) == len(set(words)), f"applied twice: {words}"
            assert acknowledged <= set(words), f"acknowledged {sorted(acknowledged)} and lost: {words}"

        async def client(word: str) -> None:
            process = world.process(word)
            while await process.run(append(process, word, habits)) is DIED:
                process = world.process(f"{process.name}+")
            acknowledged.add(word)

        world.observe(audit)
        async with asyncio.TaskGroup() as clients:
            for word in writers:
                clients.create_task(client(word))
        await world.settle()
        audit()

    return scenario


async def append(process: Process, word: str, habits: Habits) -> None:
    """Adds a word to the list once, whatever it takes."""
    looks = True  # an earlier process may have done it
    while True:
        try:
            words, version = await _read_list(process)
            if looks and word in words:
                return
            body = json.dumps([*words, word]).encode()
            outcome = await process.store.put(LIST, body, Matches(version) if version else ABSENT)
            if isinstance(outcome, PreconditionFailed) and outcome.version and not habits.reads_again:
                outcome = await process.store.put(LIST, body, Matches(outcome.version))
        except StoreUnavailable:
            outcome = None
        if isinstance(outcome, Applied) or (isinstance(outcome, Unknown) and habits.takes_unknown_for_done):
            return
        looks = _looks_for_itself(habits, outcome)
        await process.runtime.sleep(process.runtime.random())


def _looks_for_itself(habits: Habits, outcome: Outcome | None) -> bool:
    match outcome:
        case PreconditionFailed():
            return habits.looks_for_itself_when_refused
        case Unknown():
            return habits.looks_for_itself_when_unknown
        case _:
            return True


async def _read_list(process: Process) -> tuple[list[str], Version | None]:
    found = await process.store.get(LIST)
    return (json.loads(found.body), found.version) if isinstance(found, Found) else ([], None)


LEASE_MS = 20_000


def leased_counter(*, fenced: bool, writers: tuple[str, ...] = ("p1", "p2")) -> Scenario:
    """Each writer takes a lease on a lock and increments a counter that the lease protects, or so it believes: a write
    that names no version of what it overwrites may land long after the lease has gone to somebody else."""

    async def scenario(world: World) -> None:
        counts = [0]

        def audit(event: Event) -> None:
            if event.key == DATA:
                counts.append(json.loads(world.snapshot()[DATA]))
                assert counts[-1] == counts[-2] + 1, f"an increment was overwritten: {counts}"

        async def client(name: str) -> None:
            process = world.process(name, skew_ms=0)
            await process.run(_increment_under_lease(process, fenced=fenced))

        world.observe(audit)
        async with asyncio.TaskGroup() as clients:
            for name in writers:
                clients.create_task(client(name))
        await world.settle()

    return scenario


async def _increment_under_lease(process: Process, *, fenced: bool) -> None:
    store, runtime = process.store, process.runtime
    while not await _take_lease(process):
        await runtime.sleep(1 + runtime.random())
    found = await store.get(DATA)
    if isinstance(found, Found):
        count, when = json.loads(found.body), Matches(found.version)
        await store.put(DATA, json.dumps(count + 1).encode(), when if fenced else ANY)
    else:
        await store.put(DATA, b"1", ABSENT if fenced else ANY)


async def _take_lease(process: Process) -> bool:
    found = await process.store.get(LOCK)
    if isinstance(found, Found) and found.now_ms - found.written_ms < LEASE_MS:
        return False
    when = Matches(found.version) if isinstance(found, Found) else ABSENT
    return isinstance(await process.store.put(LOCK, process.runtime.ulid().encode(), when), Applied)
