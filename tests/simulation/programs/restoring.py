"""Plays a program whose catalog is backed up beside requests, and restored (docs/recovery.md): in its place, when its
processes have stopped and its state is lost; or elsewhere, as a copy beside the living original, which is adopted when
the original has ended. Backup, restore and adoption meet faults as requests do, and are retried until they succeed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from arco_catalog.iceberg.errors import AlreadyExists, CatalogError
from arco_catalog.operations.adopt import adopt
from arco_catalog.state.purge_progress import Progress
from arco_catalog.state.task import Task
from arco_catalog.state.tombstone import PURGED, Tombstone
from arco_catalog.upkeep.recovery.archive import Archive, ArchiveWriter
from arco_catalog.upkeep.recovery.backup import backup
from arco_catalog.upkeep.recovery.unpack import restore_backup
from storage_backends import StoreError
from tests.simulation.history import Event
from tests.simulation.programs.history import History, Moment
from tests.simulation.programs.player import Player
from tests.simulation.programs.recorder import STORE, Recorder
from tests.simulation.programs.servers import PREFIX, Servers
from tests.simulation.programs.states import CatalogState, in_order
from tests.simulation.world import DIED, Process, World
from tools.support.catalog_fixture import CatalogFixture

T = TypeVar("T")

TRIES = 60
DAY_MS = 24 * 60 * 60_000


@dataclass(frozen=True, slots=True)
class BackedUp:
    """An archive, and when its backup began and ended."""

    file: Path
    since: float
    until: float


async def play_in_place(player: Player, folder: Path) -> None:
    """Plays a program whose catalog is lost, and restored in its place."""
    player.begin_faults()
    await player.play_clients(player.program.clients)
    beside = asyncio.get_running_loop().create_task(player.play_clients(player.program.beside))
    made = await back_up(player, folder)
    await _stop(player, beside)
    lost = player.recorder
    lost.closed = True
    player.histories.append(lost.history)
    player.world.lose(player.paths.state)
    player.begin_faults()
    await restore(player, made)
    player.recorder = Recorder(player.world, player.paths)
    resume(player.recorder, lost.history, made)
    protect(player.recorder, lost.history)
    await player.play_clients(player.program.restored)
    await player.end_faults()


async def play_elsewhere(
    player: Player, copy: Player, folder: Path, end_original: Callable[[], Awaitable[None]]
) -> None:
    """Plays a program whose catalog lives on beside a copy. `end_original` judges the original, which ends before the
    copy is adopted."""
    guard = Guard(player.world, player.history)
    player.begin_faults()
    await player.play_clients(player.program.clients)

    async def live_as_copy() -> None:
        made = await back_up(player, folder)
        await restore(copy, made)
        copy.recorder = Recorder(copy.world, copy.paths)
        resume(copy.recorder, player.history, made)
        await copy.play_clients(player.program.restored)

    async with asyncio.TaskGroup() as group:
        group.create_task(player.play_clients(player.program.beside))
        group.create_task(live_as_copy())
    await player.end_faults()
    await copy.end_faults()
    await end_original()
    player.recorder.closed = True
    player.histories.append(copy.history)
    guard.adopted = True
    copy.begin_faults()
    await persist(copy, "operator", lambda fixture: adopt(fixture.session()))
    await copy.play_clients(player.program.adopted)
    await copy.end_faults()


async def _stop(player: Player, clients: "asyncio.Task[None]") -> None:
    """Stops all processes: at once, or those that survive when their clients have been answered."""
    if player.program.conditions.survives:
        await clients
    else:
        await player.world.runtime.sleep(3 * player.world.runtime.random())
        clients.cancel()
        with suppress(asyncio.CancelledError):
            await clients
        for name in player.fixtures:
            player.world.process(name).crash()
    await player.end_faults()


async def back_up(player: Servers, folder: Path) -> BackedUp:
    """Makes a backup."""
    tries = 0

    async def once(fixture: CatalogFixture) -> BackedUp:
        nonlocal tries
        tries += 1
        since, file = player.world.loop.time(), folder / f"{tries}.tar.gz"
        writer, prefix = ArchiveWriter(file), f"{player.paths.root}/"
        writer.begin({"id": "01", "of": STORE, "made_ms": fixture.runtime.now_ms(), "realm": False, "prefix": prefix})
        try:
            await backup(fixture.session(deadline_ms=DAY_MS), None, writer)
        finally:
            writer.abandon()
        return BackedUp(file, since, player.world.loop.time())

    return await persist(player, "operator", once)


async def restore(player: Servers, made: BackedUp) -> None:
    """Restores a backup as the catalog that these servers serve."""

    async def once(fixture: CatalogFixture) -> None:
        with suppress(AlreadyExists):  # by a try that ended without an answer
            await restore_backup(fixture.session(deadline_ms=DAY_MS), await Archive.opened(made.file), dry=False)

    await persist(player, "operator", once)


async def persist(player: Servers, name: str, perform: Callable[[CatalogFixture], Awaitable[T]]) -> T:
    """Retries until it succeeds, in another process where one has died."""

    async def once(process: Process) -> T:
        return await perform(player.fixture(process))

    for _ in range(TRIES):
        process = player.process(name)
        try:
            done = await process.run(once(process))
        except (CatalogError, StoreError):
            done = DIED
        if done is not DIED:
            return done
        await player.world.runtime.sleep(5 * player.world.runtime.random())
    raise AssertionError(f"{name} does not get it done")


class Guard:
    """Watches the processes of a copy: until it is adopted, they delete nothing but its own state."""

    def __init__(self, world: World, history: History) -> None:
        self._history = history
        self.adopted = False
        world.observe(self._see)

    def _see(self, event: Event) -> None:
        is_of_copy = event.kind == "delete" and event.process.startswith(PREFIX)
        if is_of_copy and not self.adopted and "/_catalog/" not in event.key:
            self._history.problems.append(f"{event.at:.3f} s: {event.process} of a copy deleted {event.key}")


def protect(recorder: Recorder, lost: History) -> None:
    """Watches a catalog that was restored in its place: what was committed before it was lost, and is no longer known
    to it, stays, for an operator may register it; unless its table is purged."""
    known = {file for _, file, _ in recorder.history.current}
    others = {file: entity for entity, file, _ in lost.current if file not in known}

    def see(event: Event) -> None:
        entity = others.get(STORE + event.key) if event.kind == "delete" else None
        if entity is not None and not any(
            entry.get("entity") == entity and key.startswith("tombstone\n") and entry.get("task") is not None
            for key, entry in recorder.entries.items()
        ):
            recorder.history.problems.append(f"{event.at:.3f} s: {event.key}, which had been committed, was deleted")

    recorder.world.observe(see)


def resume(recorder: Recorder, archived: History, made: BackedUp) -> None:
    """Lets a recorder go on from a restored catalog, which must be as the archived one was: the registry as it was at
    one instant of the backup, each table as it was at one, and each transaction whole or not at all."""
    recorder.resume_restored(archived)
    history, moments = recorder.history, [*archived.window(made.since, made.until)]
    state = history.state
    found = next((moment.state for moment in moments if _names(moment.state) == _names(state)), None)
    if found is None:
        history.problems.append(f"the restored names are {_names(state)}, which they never were during the backup")
        found = archived.state
    else:
        history.moments = [Moment(-1.0, in_order(state, found))]
    for entity, file in state.files.items():
        if all(moment.state.files.get(entity) != file for moment in moments):
            history.problems.append(f"{file} of {entity} was restored, which was not current during the backup")
    history.problems += _torn(archived, history)
    history.problems += _going_on(recorder)


def _going_on(recorder: Recorder) -> Iterator[str]:
    """Purges that had deleted nothing, and were not taken back."""
    for key, entry in recorder.entries.items():
        tombstone = Tombstone(entry)
        if not key.startswith("tombstone\n") or tombstone.task is None or tombstone.state == PURGED:
            continue
        bodies = map(recorder.world.peek, recorder.world.keys(recorder.paths.task(tombstone.task)))
        versions = [Task.parse(body, tombstone.task) for body in bodies if body is not None]
        last = max(versions, key=lambda version: version.number, default=None)
        if last is None or not Progress.parse(last.checkpoint).deleting:
            yield f"the purge of {tombstone.name} had deleted nothing, and was restored"


def _names(state: CatalogState) -> tuple[object, ...]:
    """The names, tombstones and governance of a registry. A restore changes the states of purges, so these are left
    out."""
    names = {name: (there.kind, there.entity) for name, there in state.names.items()}
    stones = {name: {stone.entity for stone in found} for name, found in state.stones.items() if found}
    return names, dict(state.spaces), stones, dict(state.governance)


def _torn(archived: History, restored: History) -> Iterator[str]:
    """Transactions that were restored in part."""
    there = {(entity, file) for entity, file, _ in restored.current}
    known = restored.state.files.keys()
    for transaction, each in archived.transactions.items():
        if each.committed:
            done = [effect for effect in archived.effects if effect.unit == transaction and effect.entity in known]
            parts = {(effect.entity, effect.file) in there for effect in done}
            if len(parts) > 1:
                yield f"{transaction} was restored in part"
