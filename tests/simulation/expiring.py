"""Expiries in the simulated world: workers that die, stand still and wake, beside writers who append, make branches, go
back, rename, drop and restore; and an auditor who judges every file that goes (docs/design/expiry.md)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from io import BytesIO
from typing import Any

import fastavro

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.policies.attachments import attach_policy
from arco_catalog.operations.policies.policies import PolicyText, create_policy
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.access import Securable
from arco_catalog.planning.upkeep_policy import SNAPSHOT_EXPIRY
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import Pointer
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.upkeep.expiry.executor import FILES_AGE_MS
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import StoreError, Version
from tests.simulation.explore import Scenario
from tests.simulation.history import Event
from tests.simulation.world import DIED, World
from tests.support.table_files import append, commit_files, key_of
from tools.support.catalog_fixture import NS, CatalogFixture

PATHS = Paths("wh")
FILES = "wh/warehouse/"
DAY_S = 86_400
SNAPSHOTS = 3
SETTINGS = Settings("wh")
POLICIES = TaskPolicies.parse(
    {"delegation.task.lease.lost-timeout-duration": "2m", "delegation.retry.default.max-attempts": "100"}
)


class ExpiryAuditor:
    """Judges each file that is deleted: no table names it, and snapshots that did were removed for two days."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._names: dict[str, frozenset[str]] = {}
        """What each metadata file leads to."""
        self._last_named: dict[str, float] = {}
        """When a current metadata file last led to each file, in seconds."""
        self._current: dict[str, str] = {}
        self.deleted: list[str] = []
        world.observe(self._see)

    def _see(self, event: Event) -> None:
        if event.key.startswith(PATHS.pointers) and event.kind == "put":
            body = self._world.peek(event.key)
            assert body is not None
            pointer = Pointer.parse(body, Version(""), event.key)
            before = self._current.get(pointer.entity)
            if before is not None:
                self._last_named.update(dict.fromkeys(self._names[before], event.at))
            self._current[pointer.entity] = location = pointer.metadata.location
            self._names[location] = frozenset(self._reach(location))
        elif event.key.startswith(FILES) and event.kind == "delete":
            self._judge(event)

    def _judge(self, event: Event) -> None:
        key = event.key
        for location in self._current.values():
            assert key not in self._names[location], f"{key} was deleted, and a table names it"
        if key in self._last_named:
            age_s = event.at - self._last_named[key]
            assert age_s >= FILES_AGE_MS / 1000 - 10, f"{key} was deleted {age_s:.0f} s after a snapshot named it"
        self.deleted.append(key)

    def _reach(self, location: str) -> Iterable[str]:
        if self._world.peek(key_of(location)) is None and location.rpartition("/")[2].startswith("00000-"):
            return  # of a create, whose pointer may be there first
        snapshots = self._json(location).get("snapshots")
        assert isinstance(snapshots, list)
        for snapshot in snapshots:
            assert isinstance(snapshot, dict)
            manifest_list = str(snapshot["manifest-list"])
            yield key_of(manifest_list)
            for manifest in self._avro(manifest_list):
                yield key_of(manifest["manifest_path"])
                for entry in self._avro(manifest["manifest_path"]):
                    yield key_of(entry["data_file"]["file_path"])

    def _json(self, location: str) -> JsonObject:
        body = self._world.peek(key_of(location))
        assert body is not None, f"{location} is gone"
        document = loads(body)
        assert isinstance(document, dict)
        return document

    def _avro(self, location: str) -> Iterable[dict[str, Any]]:
        body = self._world.peek(key_of(location))
        assert body is not None, f"{location} is gone, and a table names it"
        return [*fastavro.reader(BytesIO(body))]

    def close(self, *, beside_clients: bool) -> None:
        """Judges the end: all that tables name is there, and without clients, who may die, nothing else."""
        for location in self._current.values():
            missing = [key for key in self._names[location] if self._world.peek(key) is None]
            assert not missing, f"{missing} are missing, and a table names them"
        named = {key for location in self._current.values() for key in self._names[location]}
        left = {key for key in self._world.keys(FILES) if key.endswith((".parquet", ".avro"))} - named
        assert beside_clients or not left, f"{left} were left behind"


class Expiring:
    """One world's workers and clients."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.auditor = ExpiryAuditor(world)
        self.answered: set[str] = set()
        """The clients whose request succeeded."""
        self.setup = CatalogFixture(world.process("setup", skew_ms=0).store, world.runtime, SETTINGS)

    async def table(self) -> None:
        """A table with a snapshot a day, each with a file of its own and all earlier ones but the first."""
        await self.setup.namespace("db")
        state = await self.setup.table("t", None)
        files: list[str] = []
        for number in range(SNAPSHOTS):
            state = await append(self.setup, state, f"{number}.parquet")
            document = loads(state.metadata)
            assert isinstance(document, dict)
            files.append(f"{document['location']}/data/{number}.parquet")
            await self.world.runtime.sleep(DAY_S)
        await commit_files(self.setup, state, files[1:])
        content = dumps({"enable": True, "config": {"max_snapshot_age_days": 0.5}}).decode()
        await create_policy(self.setup.session(), NS, "p", SNAPSHOT_EXPIRY, PolicyText("", content))
        await attach_policy(self.setup.session(), NS, "p", Securable(NS), {})

    async def worker(self, name: str, skew_ms: int | None = None, *, stops: int = 0) -> None:
        """Works until files were due to be deleted, and for some time more. Where it dies, another takes its place."""
        until = self.world.loop.time() + 4 * DAY_S
        while self.world.loop.time() < until:
            process = self.world.process(name, skew_ms)
            catalog = CatalogFixture(process.store, process.runtime, SETTINGS).catalog
            seconds = 15 * self.world.runtime.random() if stops else None
            stops = max(0, stops - 1)
            try:
                async with asyncio.timeout(seconds):
                    if await process.run(task_worker(catalog, POLICIES).run_until_idle()) is DIED:
                        name += "+"
                        continue
            except (StoreError, CatalogError, TimeoutError):
                pass
            short = self.world.runtime.random() < 0.5
            await self.world.runtime.sleep((300 if short else DAY_S / 2) * self.world.runtime.random())

    async def client(
        self,
        name: str,
        request: Callable[[CatalogFixture], Awaitable[object]],
        times: int = 1,
        within_s: float | None = None,
    ) -> None:
        """Sends a request again and again, each time within `within_s` seconds, or at any time of some days. What is
        refused is left out."""
        for _ in range(times):
            drawn = within_s or (120 if self.world.runtime.random() < 0.5 else 1.5 * DAY_S)
            await self.world.runtime.sleep(drawn * self.world.runtime.random())
            process = self.world.process(name)
            fixture = CatalogFixture(process.store, process.runtime, SETTINGS)
            try:
                if await process.run(_sent(request, fixture)) is DIED:
                    return
            except (StoreError, CatalogError):
                continue
            self.answered.add(name)


async def _sent(request: Callable[[CatalogFixture], Awaitable[object]], fixture: CatalogFixture) -> object:
    return await request(fixture)


def scenario(run: Callable[[Expiring], Iterable[Awaitable[object]]]) -> Scenario:
    """Makes a table, and runs what the decorated function lists, all at once."""

    async def played(world: World) -> None:
        expiring = Expiring(world)
        await expiring.table()
        async with asyncio.TaskGroup() as group:
            for work in run(expiring):
                group.create_task(_awaited(work))
        last = world.process("last", skew_ms=0)
        catalog = CatalogFixture(last.store, last.runtime, SETTINGS).catalog
        for _ in range(3):
            await task_worker(catalog, POLICIES).run_until_idle()
            await world.runtime.sleep(3 * DAY_S)
        await world.settle()
        if "b" in expiring.answered:
            assert '"b"' in (await load_table(expiring.setup.another().session(), NS, "t")).metadata.decode(), (
                "no branch"
            )
        expiring.auditor.close(beside_clients=run.__name__ not in ("one_worker", "two_workers"))
        assert expiring.auditor.deleted, "no file was deleted"

    played.__qualname__ = run.__qualname__
    return played


async def _awaited(work: Awaitable[object]) -> None:
    await work


async def append_more(fixture: CatalogFixture) -> None:
    """An append of a fresh file, beside those of the present snapshot."""
    state = await load_table(fixture.session(), NS, "t")
    await append(fixture, state, f"{fixture.runtime.ulid()}.parquet")


async def _refer(fixture: CatalogFixture, name: str, kind: str) -> None:
    """Makes or moves a branch or tag on the oldest snapshot that the client sees."""
    document = loads((await load_table(fixture.session(), NS, "t")).metadata)
    assert isinstance(document, dict)
    snapshots = document["snapshots"]
    assert isinstance(snapshots, list)
    oldest = snapshots[0]
    assert isinstance(oldest, dict)
    update: JsonObject = {
        "action": "set-snapshot-ref",
        "ref-name": name,
        "type": kind,
        "snapshot-id": oldest["snapshot-id"],
    }
    await commit_table(fixture.session(), NS, "t", {"requirements": [], "updates": [update]})


async def branch(fixture: CatalogFixture) -> None:
    await _refer(fixture, "b", "branch")


async def roll_back(fixture: CatalogFixture) -> None:
    await _refer(fixture, "main", "branch")


async def rename(fixture: CatalogFixture) -> None:
    await rename_table(fixture.session(), (NS, "t"), (NS, "u"))
    await fixture.runtime.sleep(600)
    await rename_table(fixture.session(), (NS, "u"), (NS, "t"))


async def drop_and_restore(fixture: CatalogFixture) -> None:
    await drop_table(fixture.session(), NS, "t", purge=False)
    await fixture.runtime.sleep(600)
    await undrop(fixture.session(), NS, "t")


@scenario
def one_worker(expiring: Expiring) -> list[Awaitable[object]]:
    return [expiring.worker("w")]


@scenario
def two_workers(expiring: Expiring) -> list[Awaitable[object]]:
    return [expiring.worker("w1", stops=4), expiring.worker("w2", skew_ms=300_000)]


@scenario
def workers_beside_appends(expiring: Expiring) -> list[Awaitable[object]]:
    return [expiring.worker("w1"), expiring.worker("w2"), expiring.client("a", append_more, 3)]


@scenario
def a_worker_beside_new_branches(expiring: Expiring) -> list[Awaitable[object]]:
    return [expiring.worker("w"), expiring.client("b", branch, 3), expiring.client("a", append_more, 2)]


@scenario
def a_branch_while_the_worker_commits(expiring: Expiring) -> list[Awaitable[object]]:
    return [expiring.worker("w"), expiring.client("b", branch, within_s=4)]


@scenario
def a_worker_beside_rollbacks(expiring: Expiring) -> list[Awaitable[object]]:
    return [expiring.worker("w"), expiring.client("r", roll_back, 2), expiring.client("a", append_more, 2)]


@scenario
def a_worker_beside_renames_and_drops(expiring: Expiring) -> list[Awaitable[object]]:
    return [expiring.worker("w"), expiring.client("n", rename), expiring.client("d", drop_and_restore)]


SCENARIOS: list[Scenario] = [
    one_worker,
    two_workers,
    workers_beside_appends,
    a_worker_beside_new_branches,
    a_branch_while_the_worker_commits,
    a_worker_beside_rollbacks,
    a_worker_beside_renames_and_drops,
]
