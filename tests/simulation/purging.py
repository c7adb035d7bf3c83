"""Purges in the simulated world: workers that die, stand still and wake, beside clients who undo the drop, or want the
place or the files; and an auditor who judges every file that goes (docs/design/purge.md)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from arco_catalog.iceberg.errors import CatalogError, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.register import register_table
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.index import relations_in
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.purge_progress import Progress
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.segments import Segment
from arco_catalog.state.task import ENDED, LEASED, TRANSITIONS, Status, Task
from arco_catalog.state.tombstone import DROPPED, PURGED, PURGING, Tombstone
from arco_catalog.tasks.lease import MARGIN_MS
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import ABSENT, ObjectStore, StoreError, Version
from tests.simulation.explore import Scenario
from tests.simulation.history import Event
from tests.simulation.runtime import EPOCH_MS
from tests.simulation.world import DIED, World
from tests.support.table_files import append
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.wrapped_stores import DelayingStore

PATHS = Paths("wh")
FILES = "wh/warehouse/"
PLACE = "memory:///wh/warehouse/place"
MINUTE = 60_000
STORE_TICK_S = 1
"""The store's clock tells whole seconds: by it, a lease may end so much sooner, which its holder's margin covers."""
STOPPED_WITHIN_S = 15
ONE_CALL_S = MARGIN_MS / 1000 - STORE_TICK_S
SHORT_LIVED = 1_000
"""Stops of workers none of which lives longer than a few seconds."""
AT_ONCE = Settings("wh", purge=PurgeSettings(undrop_window_ms=0))
IN_A_MINUTE = Settings("wh", purge=PurgeSettings(undrop_window_ms=MINUTE))
SHARED = Settings("wh", allow_location_overlap=True, purge=PurgeSettings(undrop_window_ms=0, trust_locations=True))
POLICIES = TaskPolicies.parse(
    {"delegation.task.lease.lost-timeout-duration": "2m", "delegation.retry.TABLE_PURGE.max-attempts": "100"}
)
SHORT = TaskPolicies.parse(
    {"delegation.task.lease.lost-timeout-duration": "20s", "delegation.retry.TABLE_PURGE.max-attempts": "100"}
)
IMPATIENT = TaskPolicies.parse(
    {"delegation.task.lease.lost-timeout-duration": "2m", "delegation.retry.TABLE_PURGE.max-attempts": "1"}
)


class PurgeAuditor:
    """Watches what becomes of files, and of tasks."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._there: set[str] = set()
        self.gone: list[str] = []
        self.kept: set[str] = set()
        """Files that somebody was told to rely on."""
        self.expired: set[str] = set()
        """Files that an engine deletes itself, since its table does not lead to them any more."""
        self.current: set[str] = set()
        """Metadata files that were current."""
        self._leases: dict[tuple[str, str], _SeenLease] = {}
        self._purged: set[str] = set()
        world.observe(self._see)

    def _see(self, event: Event) -> None:
        if event.key.startswith(PATHS.tasks) and not event.key.startswith(PATHS.open_tasks):
            self._see_task(event)
        elif event.key.startswith(PATHS.pointers) and event.kind == "put":
            self.current.add(Pointer.parse(self._body(event.key), Version(""), event.key).metadata.location)
        elif event.key == PATHS.manifest:
            self._see_registry(event)
        if not event.key.startswith(FILES):
            return
        if event.kind != "delete":
            self._there.add(event.key)
        elif event.key in self._there:
            self._there.discard(event.key)
            if event.key in self.expired:
                return
            self.gone.append(event.key)
            self._judge(event)

    def _see_task(self, event: Event) -> None:
        """Notes whose lease a version of a task is."""
        if event.kind == "put":
            task = Task.parse(self._body(event.key), event.key)
            if task.status in LEASED:
                known = self._leases.get((event.process, task.id))
                since = event.number if known is None or known.number != task.lease_number else known.since
                ends = event.at + task.lease_ms / 1000
                self._leases[event.process, task.id] = _SeenLease(task.lease_number, since, ends)
            else:
                self._leases.pop((event.process, task.id), None)

    def _see_registry(self, event: Event) -> None:
        """A release is made by the lease that has the tombstone, and no other is believed in
        (docs/design/purge.md#rule-6)."""
        for _, entry in self.entries()["dropped"]:
            tombstone = Tombstone(entry)
            if tombstone.state != PURGED or str(tombstone.task) in self._purged:
                continue
            self._purged.add(str(tombstone.task))
            for (process, task), lease in self._leases.items():
                if task == tombstone.task and lease.number != tombstone.fence:
                    alive = self._world.process(process).alive
                    over = lease.ends <= event.at + STORE_TICK_S
                    assert not alive or over, f"released while {process} believes in its lease"

    def _judge(self, event: Event) -> None:
        """A file goes only under a tombstone that is being purged, past its time, and never inside what lives; and by a
        lease that has written itself into the tombstone (docs/design/purge.md#rule-4)."""
        key = event.key
        assert key not in self.kept, f"{key} was deleted under somebody who was told to rely on it"
        file, entries = f"memory:///{key}", self.entries()
        for name, entry in entries["live"]:
            for location in RelationEntry(entry).locations:
                assert not file.startswith(f"{location}/"), f"a file of the live {name} was deleted: {key}"
        holders = [
            tombstone
            for tombstone in (Tombstone(entry) for _, entry in entries["dropped"])
            if any(file.startswith(f"{location}/") for location in tombstone.locations)
        ]
        assert any(each.state == PURGING for each in holders), f"{key} was deleted, and nothing was being purged"
        for each in holders:
            lease = self._leases.get((event.process, str(each.task)))
            if lease is not None and lease.since < event.number:
                assert each.fence >= lease.number, f"{event.process} deleted before it had fenced"
        now_ms = EPOCH_MS + int(self._world.loop.time() * 1000)
        assert all(each.purge_after_ms <= now_ms for each in holders if each.state == PURGING), "deleted too early"

    def entries(self) -> dict[str, list[tuple[str, JsonObject]]]:
        """What is live, and what was dropped, as HEAD says now."""
        body = self._world.peek(PATHS.manifest)
        assert body is not None
        head = RegistryState.parse(body, Version(""), "HEAD").with_segments(self._segment)
        return {
            "live": [(key.rpartition("\n")[2], entry) for key, entry in head.index.scan(relations_in(NS))],
            "dropped": [*head.index.scan("tombstone\n")],
        }

    def _body(self, key: str) -> bytes:
        body = self._world.peek(key)
        assert body is not None
        return body

    def _segment(self, segment: str) -> Segment | None:
        body = self._world.peek(PATHS.index_segment(segment))
        return None if body is None else Segment.parse(segment, body, segment)

    def tasks(self) -> dict[str, list[Task]]:
        """The versions of every task, in order."""
        found: dict[str, list[Task]] = {}
        for key in self._world.keys(PATHS.tasks):
            if not key.startswith(PATHS.open_tasks):
                body = self._world.peek(key)
                assert body is not None
                task = Task.parse(body, key)
                found.setdefault(task.id, []).append(task)
        return {task: sorted(versions, key=lambda each: each.number) for task, versions in found.items()}

    def began(self) -> bool:
        """Whether the purge of anything has begun."""
        return any(Tombstone(entry).state in (PURGING, PURGED) for _, entry in self.entries()["dropped"])

    def over(self) -> bool:
        """Whether there is nothing left to do."""
        return not self._world.keys(PATHS.open_tasks)

    def close(self, *, keeps_tasks: bool = True) -> None:
        """Judges what is left when all is over. Without `keeps_tasks` the first versions of a task may have been
        collected."""
        for task, versions in self.tasks().items():
            first = 1 if keeps_tasks else versions[0].number
            assert [each.number for each in versions] == [*range(first, first + len(versions))], f"versions of {task}"
            for before, after in pairwise(versions):
                legal = after.status is before.status or after.status in TRANSITIONS[before.status]
                assert legal, f"{before.status} became {after.status}"
            assert sum(each.status is Status.SUCCESS for each in versions) <= 1
            assert versions[-1].status in ENDED, f"task {task} is {versions[-1].status}, and nobody will look at it"
        entries = self.entries()
        for name, entry in entries["live"]:
            for location in RelationEntry(entry).locations:
                lost = [key for key in self.gone if f"memory:///{key}".startswith(f"{location}/")]
                assert location == PLACE or not lost, f"{name} is live, and lost {lost}"
        for _, entry in entries["dropped"]:
            tombstone = Tombstone(entry)
            if tombstone.task is not None and tombstone.state != PURGED:
                last = self.tasks().get(tombstone.task, [])[-1:]
                assert [each.status for each in last] == [Status.FAILURE], f"the purge of {tombstone.entity} is lost"
                has_deleted = Progress.parse(last[0].checkpoint).deleting
                assert has_deleted or tombstone.state == DROPPED, f"nothing purges {tombstone.entity}, or restores it"
            below = tuple(f"{location.removeprefix('memory:///')}/" for location in tombstone.locations)
            if tombstone.state == PURGED and PLACE not in tombstone.locations:
                left = [key for key in self._world.keys(FILES) if key.startswith(below) and not self._in_vain(key)]
                assert not left, f"left behind: {left}"
            elif tombstone.state not in (PURGED, PURGING):
                lost = [key for key in self.gone if key.startswith(below)]
                assert PLACE in tombstone.locations or not lost, f"can be restored, and lost {lost}"

    def _in_vain(self, key: str) -> bool:
        """Whether it is somebody else's, or a metadata file that never became current: a try may write one while the
        table is purged."""
        return key in self.kept or (key.endswith(".metadata.json") and f"memory:///{key}" not in self.current)


@dataclass(frozen=True, slots=True)
class _SeenLease:
    """A lease: its number, the call of its process with which it began, and when it ends by the true time."""

    number: int
    since: int
    ends: float


MAX_HURRIED_LOOKS = 200
"""Looks of a worker after which it hurries no more: a hint whose version never came is removed only when it is old."""


class Purging:
    """One world's workers and clients."""

    def __init__(
        self, world: World, settings: Settings, policies: TaskPolicies = POLICIES, *, vends: bool = False
    ) -> None:
        self.world = world
        self.vends = vends
        self.auditor = PurgeAuditor(world)
        self.settings = settings
        self.policies = policies
        self.setup = CatalogFixture(world.process("setup", skew_ms=0).store, world.runtime, settings)
        self.file = ""

    async def table(self, **more: str) -> None:
        """A table with two snapshots, before anything can go wrong."""
        await self.setup.namespace("db")
        state = await self.setup.table("t", None, **more)
        for number in range(2):
            state = await append(self.setup, state, f"{number}-a.parquet", f"{number}-b.parquet")
        self.file = state.metadata_location

    async def worker(
        self,
        name: str,
        skew_ms: int | None = None,
        *,
        busy_s: float = 0,
        pause_s: float = 40,
        stops: int = 0,
        stopped_s: tuple[float, float] = (0, STOPPED_WITHIN_S),
        through: Callable[[ObjectStore], ObjectStore] = lambda store: store,
    ) -> None:
        """Works until there is nothing left to do, and so many seconds at least; where it dies, another takes its
        place. So many times it is stopped after some seconds. It reaches the store `through` another."""
        until = self.world.loop.time() + busy_s
        for looks in range(400):
            process = self.world.process(name, skew_ms)
            catalog = CatalogFixture(through(process.store), process.runtime, self.settings).catalog
            catalog = replace(catalog, entry=("id", 1)) if self.vends else catalog
            least, most = stopped_s
            seconds = least + (most - least) * self.world.runtime.random() if stops else None
            stops = max(0, stops - 1)
            try:
                async with asyncio.timeout(seconds):
                    if await process.run(task_worker(catalog, self.policies).run_due(lambda: False)) is DIED:
                        name += "+"
            except (StoreError, CatalogError, TimeoutError):
                pass
            if self.auditor.over() and self.world.loop.time() >= until:
                return
            hurries = self.world.loop.time() < until if busy_s else looks < MAX_HURRIED_LOOKS
            await self.world.runtime.sleep((pause_s if hurries else 40) * self.world.runtime.random())
        raise AssertionError("the tasks do not end")

    async def drop(self, name: str = "setup") -> None:
        """Drops the table with purge."""
        fixture = CatalogFixture(self.world.process(name).store, self.world.process(name).runtime, self.settings)
        await drop_table(fixture.session(), NS, "t", purge=True)

    async def client(
        self, name: str, seconds: float, request: Callable[[CatalogFixture], Awaitable[object]], tries: int = 1
    ) -> bool:
        """Sends a request after a while, and again where it was refused. Returns whether it was told yes."""
        for _ in range(tries):
            await self.world.runtime.sleep(seconds * self.world.runtime.random())
            process = self.world.process(name)
            fixture = CatalogFixture(process.store, process.runtime, self.settings)
            try:
                return await process.run(_answer(request(fixture))) is not DIED
            except Refusal:
                continue
            except (StoreError, CatalogError):
                return False
        return False


async def _answer(request: Awaitable[object]) -> object:
    return await request


def scenario(
    settings: Settings,
    policies: TaskPolicies = POLICIES,
    *,
    drops: bool = True,
    vends: bool = False,
    keeps_tasks: bool = True,
    **more: str,
) -> Callable[[Callable[[Purging], Iterable[Awaitable[object]]]], Scenario]:
    """Drops a table with purge, and runs what the decorated function lists, all at once. A collector keeps no
    tasks."""

    def decorate(run: Callable[[Purging], Iterable[Awaitable[object]]]) -> Scenario:
        async def played(world: World) -> None:
            purging = Purging(world, settings, policies, vends=vends)
            await purging.table(**more)
            if drops:
                await purging.drop()
            async with asyncio.TaskGroup() as group:
                for work in run(purging):
                    group.create_task(_as_task(work))
            await world.settle()
            await purging.worker("last", pause_s=600, busy_s=7_200)  # by then, old hints are old
            purging.auditor.close(keeps_tasks=keeps_tasks)

        played.__qualname__ = run.__name__
        return played

    return decorate


async def _as_task(work: Awaitable[object]) -> None:
    await work


@scenario(AT_ONCE)
def a_purge_by_two_workers(purging: Purging) -> Iterable[Awaitable[object]]:
    return [purging.worker("w1"), purging.worker("w2")]


@scenario(AT_ONCE)
def a_purge_by_workers_whose_clocks_are_wrong(purging: Purging) -> Iterable[Awaitable[object]]:
    return [purging.worker("w1", 10 * MINUTE), purging.worker("w2", -10 * MINUTE)]


@scenario(IN_A_MINUTE)
def a_purge_and_an_undrop(purging: Purging) -> Iterable[Awaitable[object]]:
    async def undo(fixture: CatalogFixture) -> object:
        return await undrop(fixture.session(), NS, "t")

    return [purging.worker("w1", 10 * MINUTE), purging.worker("w2"), purging.client("c1", 120, undo)]


@scenario(IN_A_MINUTE)
def a_purge_an_undrop_and_another_drop(purging: Purging) -> Iterable[Awaitable[object]]:
    async def undo_and_drop_again(fixture: CatalogFixture) -> object:
        await undrop(fixture.session(), NS, "t")
        return await drop_table(fixture.session(), NS, "t", purge=True)

    return [purging.worker("w1"), purging.worker("w2", 10 * MINUTE), purging.client("c1", 100, undo_and_drop_again)]


async def wants_the_place(fixture: CatalogFixture) -> object:
    """Creates a table where the purged one lies, by an engine that is so unwise as to use names again."""
    made = await fixture.table("u", None, location=PLACE)
    for name in ("0-a", "0-b", "1-a", "1-b"):
        await fixture.store.put(f"{FILES}place/data/{name}.parquet", b"new", ABSENT)
    return made


@scenario(SHARED, SHORT, location=PLACE)
def a_purge_and_a_table_at_its_place(purging: Purging) -> Iterable[Awaitable[object]]:
    return [
        purging.worker("w1", pause_s=2),
        purging.worker("w2", pause_s=10),
        purging.client("c1", 4, wants_the_place, tries=100),
    ]


@scenario(AT_ONCE)
def a_purge_and_a_registration_of_its_files(purging: Purging) -> Iterable[Awaitable[object]]:
    async def register(fixture: CatalogFixture) -> object:
        return await register_table(fixture.session(), NS, "u", purging.file, overwrite=False)

    return [purging.worker("w1"), purging.worker("w2"), purging.client("c1", 10, register, tries=5)]


@scenario(AT_ONCE, IMPATIENT)
def a_purge_that_gives_up_at_once(purging: Purging) -> Iterable[Awaitable[object]]:
    return [purging.worker("w1"), purging.worker("w2")]


@scenario(AT_ONCE, drops=False)
def a_drop_by_a_client_that_may_die(purging: Purging) -> Iterable[Awaitable[object]]:
    async def drop(fixture: CatalogFixture) -> object:
        return await drop_table(fixture.session(), NS, "t", purge=True)

    return [purging.client("c1", 5, drop), purging.worker("w1", busy_s=15, pause_s=0.2)]


@scenario(AT_ONCE)
def an_undrop_while_it_is_purged(purging: Purging) -> Iterable[Awaitable[object]]:
    async def undo(fixture: CatalogFixture) -> object:
        return await undrop(fixture.session(), NS, "t", force=True)

    return [purging.worker("w1"), purging.client("c1", 4, undo, tries=20)]


@scenario(AT_ONCE)
def a_purge_by_workers_that_are_stopped(purging: Purging) -> Iterable[Awaitable[object]]:
    return [purging.worker("w1", stops=4, pause_s=2), purging.worker("w2", stops=4)]


@scenario(SHARED, SHORT, location=PLACE)
def a_purge_by_workers_none_of_which_lives_long(purging: Purging) -> Iterable[Awaitable[object]]:
    async def short(name: str) -> None:
        slow = partial(DelayingStore, seconds=0.03)
        await purging.worker(name, stops=SHORT_LIVED, stopped_s=(3, 5), pause_s=4, through=slow)
        for versions in purging.auditor.tasks().values():
            assert versions[-1].status is Status.SUCCESS, f"{versions[-1].status}: {versions[-1].summary}"

    async def client() -> None:
        while not purging.auditor.began():  # who has the place before that keeps it
            await purging.world.runtime.sleep(0.1)
        await purging.client("c1", 4, wants_the_place, tries=100)

    purging.world.bound_abandoned_calls(ONE_CALL_S)  # docs/design/purge.md#rule-5 tells what later ones can do
    return [short("w1"), short("w2"), client()]


SCENARIOS = [
    a_purge_by_workers_none_of_which_lives_long,
    an_undrop_while_it_is_purged,
    a_drop_by_a_client_that_may_die,
    a_purge_by_two_workers,
    a_purge_by_workers_whose_clocks_are_wrong,
    a_purge_and_an_undrop,
    a_purge_an_undrop_and_another_drop,
    a_purge_and_a_table_at_its_place,
    a_purge_and_a_registration_of_its_files,
    a_purge_that_gives_up_at_once,
    a_purge_by_workers_that_are_stopped,
]
