"""Workers that are killed while they purge.

Many tables are dropped with purge, and several processes do the tasks, `arco serve` and `arco tasks run`. Each is ended
by SIGKILL at random instants, and started again, until all tasks have ended. Then each task must have exactly one
`SUCCESS`, nothing of a dropped table may be left, and nothing else may be gone. A seed decides when who is killed; what
that meets differs from run to run.
"""

import asyncio
import os
import random
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from arco_catalog.iceberg.json import loads
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.tasks import ListedTask, tasks
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.concurrency import batches
from arco_catalog.state.paths import Paths
from arco_catalog.state.task import ENDED, Status, Task
from storage_backends import ANY, Cursor, Found, ObjectStore
from storage_backends.open import open_store
from tools.support.arco_server import ARCO
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.synthetic_table import Shape, key_prefix, location_of

WAREHOUSE = "wh"
STATE = (f"{Paths(WAREHOUSE).state}/", "_probe/")
LEASE_S = 10
"""Long enough that a process on a busy machine renews it: half of it is margin."""
AT_ONCE = 32
BOUND_S = 1_500.0
RETRIES = "delegation.retry.TABLE_PURGE."
PROPERTIES = (
    f"delegation.task.lease.lost-timeout-duration=PT{LEASE_S}S",
    f"{RETRIES}max-attempts=1000",  # a worker that is killed before its first checkpoint has failed
    f"{RETRIES}initial-backoff-duration=PT1S",
    f"{RETRIES}max-backoff-duration=PT1S",
)


@dataclass(frozen=True)
class Storm:
    """How many tables, of how many manifests with how many files each; how many workers, and how many of them are
    killed."""

    tables: int
    manifests: int
    files: int
    workers: int
    kills: int
    seed: int


@dataclass(frozen=True)
class StormResult:
    """What a storm came to: how many versions the tasks took in all, and how many leases."""

    kills: int
    versions: int
    leases: int


class Workers:
    """A server that does tasks, and processes of `arco tasks run`, each started again when it has ended."""

    def __init__(self, url: str, environment: Mapping[str, str], number: int, log: Path) -> None:
        self._environment = {
            **os.environ,
            **environment,
            "ARCO_WAREHOUSE": WAREHOUSE,
            "ARCO_TASK_PROPERTIES": ",".join(PROPERTIES),
        }
        once = [str(ARCO), "tasks", "run", "--store", url]
        served = [str(ARCO), "serve", "--store", url, "--port", "0", "--workers", "1", "--quiet", "--tasks", "true"]
        self._commands = [served, *[once] * (number - 1)]
        self._log = log
        self._running: list[subprocess.Popen[bytes] | None] = [None] * number

    def keep_running(self) -> None:
        """Starts those that have ended."""
        for place, process in enumerate(self._running):
            if process is None or process.poll() is not None:
                with self._log.open("ab") as log:
                    self._running[place] = subprocess.Popen(
                        self._commands[place], env=self._environment, stdout=log, stderr=log
                    )

    def kill(self, place: int) -> None:
        """Ends one, wherever it is."""
        process, self._running[place] = self._running[place], None
        if process is not None:
            process.kill()
            process.wait()

    def end(self) -> None:
        """Ends them all."""
        for place in range(len(self._running)):
            self.kill(place)


def survive(url: str, environment: Mapping[str, str], storm: Storm, log: Path) -> StormResult:
    """Fills the store at `url`, and has its dropped tables purged in the storm. Raises `AssertionError` for what should
    not be, and `TimeoutError` if it does not end."""
    return asyncio.run(_survive(url, environment, storm, log))


async def _survive(url: str, environment: Mapping[str, str], storm: Storm, log: Path) -> StormResult:
    store = open_store(url, environment)
    try:
        fixture = CatalogFixture(store, settings=Settings(WAREHOUSE, purge=PurgeSettings(undrop_window_ms=0)), url=url)
        await _fill(fixture, storm)
        kept = await _files(store)
        for number in range(storm.tables):
            dropped = f"t{number}"
            prefix = key_prefix(fixture, await location_of(fixture, dropped))
            kept = {key for key in kept if not key.startswith(prefix)}
            await drop_table(fixture.session(), NS, dropped, purge=True)
        kills = await _rage(fixture, Workers(url, environment, storm.workers, log), storm)
        ended = await _all_tasks(fixture)
        logs = [await _versions(fixture, task) for task in ended]
        _check(storm, ended, logs, kept, await _files(store))
        return StormResult(kills, sum(map(len, logs)), sum(map(_leases, logs)))
    finally:
        await store.close()


async def _rage(fixture: CatalogFixture, workers: Workers, storm: Storm) -> int:
    """Kills workers until that was often enough, and lets them end what is left. Returns how many were killed."""
    rng, kills, until = random.Random(storm.seed), 0, time.monotonic() + BOUND_S
    try:
        while True:
            workers.keep_running()
            await asyncio.sleep(rng.uniform(0.5, 4.0))
            if kills < storm.kills:
                workers.kill(rng.randrange(storm.workers))
                kills += 1
            elif all(task.status in ENDED for task in await _all_tasks(fixture)):
                return kills
            if time.monotonic() > until:
                raise TimeoutError(f"the tasks did not end within {BOUND_S} s")
    finally:
        workers.end()


def _check(storm: Storm, ended: Sequence[Task], logs: Sequence[Sequence[Task]], kept: set[str], left: set[str]) -> None:
    assert len(ended) == storm.tables, f"{len(ended)} tasks of {storm.tables}"
    for task, versions in zip(ended, logs, strict=True):
        statuses = [version.status for version in versions]
        assert statuses.count(Status.SUCCESS) == 1, f"task {task.id}: {statuses}"
        result = loads(str(task.document["result_extended"]).encode())
        assert isinstance(result, dict)
        assert result.get("left_behind", 0) == 0, f"task {task.id}: {result}"
    assert kept <= left, f"gone without a reason: {sorted(kept - left)[:20]}"
    assert left <= kept, f"left behind: {sorted(left - kept)[:20]}"


async def _fill(fixture: CatalogFixture, storm: Storm) -> None:
    """The tables that are to go, and a neighbour of each that stays."""
    await fixture.namespace(*NS)
    for number in range(storm.tables):
        for name in (f"t{number}", f"kept{number}"):
            await fixture.table(name)
            await _append(fixture, name, storm)


async def _append(fixture: CatalogFixture, name: str, storm: Storm) -> None:
    shape = Shape(storm.manifests, storm.files, snapshots=2)
    location = await location_of(fixture, name)
    prefix = key_prefix(fixture, location)
    for batch in batches(shape.objects(location), AT_ONCE):
        await asyncio.gather(*(fixture.store.put(prefix + key, body, ANY) for key, body in batch))
    await shape.commit(fixture, name)


async def _all_tasks(fixture: CatalogFixture) -> list[Task]:
    return [each.task async for each in tasks(fixture.another().session()) if isinstance(each, ListedTask)]


async def _versions(fixture: CatalogFixture, task: Task) -> list[Task]:
    versions: list[Task] = []
    for number in range(1, task.number + 1):
        key = fixture.catalog.paths.task_version(task.id, number)
        found = await fixture.store.get(key)
        assert isinstance(found, Found), f"version {number} of task {task.id} is gone"
        versions.append(Task.parse(found.body, key))
    return versions


def _leases(versions: Sequence[Task]) -> int:
    return len({each.lease for each in versions} - {None})


async def _files(store: ObjectStore) -> set[str]:
    """All keys but those of the catalog's state."""
    keys: set[str] = set()
    after: Cursor | None = None
    while True:
        page = await store.list("", after)
        keys |= {entry.key for entry in page.entries if not entry.key.startswith(STATE)}
        after = page.after
        if after is None:
            return keys
