"""A table with many commits is purged by workers that live a few seconds: no worker has the time to read all of its
metadata (docs/design/purge.md#rule-29). Virtual time; each call takes 20 ms."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine

import pytest

from arco_catalog.operations.drop import drop_table
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.task import Status, Task
from arco_catalog.state.task_log import list_tasks, read_task
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import Found, Missing, Unchanged, Version
from storage_backends.memory import MemoryStore
from tests.simulation.loop import SimulatedLoop
from tests.simulation.runtime import SimRuntime
from tests.support.table_files import append
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property
from tools.support.wrapped_stores import DelayingStore

SETTINGS = Settings("wh", purge=PurgeSettings(undrop_window_ms=0))
CALL_S = 0.02
LIFE_S = 14.0
COMMITS = 1_000
"""The metadata alone takes a worker more than twice its life: one call after the other for each receipt."""
APPENDS = 50
MAX_READS = 4
"""Of one metadata file: by the walk, by the lost try that it may be, and at the end of a life."""


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.CRITICAL)


class CountingReads(DelayingStore):
    """A store that takes its time, and counts reads of each object."""

    def __init__(self, inner: MemoryStore, reads: Counter[str]) -> None:
        super().__init__(inner, CALL_S)
        self._reads = reads

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        self._reads[key] += 1
        return await super().get(key, if_changed_from)

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        self._reads[key] += 1
        return await super().get_range(key, start, length)


class LongLog:
    """A table with many commits in a catalog, and the workers that purge it."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.runtime = SimRuntime(1, loop)
        self.store = MemoryStore(now_ms=self.runtime.now_ms)
        self.fixture = CatalogFixture(self.store, self.runtime, SETTINGS)
        self.reads: Counter[str] = Counter()
        self.lives = 0

    async def make(self, commits: int = COMMITS, appends: int = APPENDS) -> None:
        """Makes a table with many commits, and drops it with purge."""
        await self.fixture.namespace("db")
        table = await self.fixture.table("t")
        for number in range(appends):
            table = await append(self.fixture, table, f"{number}.parquet", name="t")
        for number in range(commits):
            await self.fixture.commit(set_property("n", str(number)), "t")
        await drop_table(self.fixture.session(), NS, "t", purge=True)

    async def live(self, life_s: float = LIFE_S) -> Task:
        """What a worker does that lives so long. Returns the task after it."""
        slow = CatalogFixture(CountingReads(self.store, self.reads), self.runtime, SETTINGS)
        try:
            async with asyncio.timeout(life_s):
                await task_worker(slow.catalog).run_due(lambda: False)
        except TimeoutError:
            pass
        self.lives += 1
        await asyncio.sleep(3)
        return await self.task()

    async def purge(self, life_s: float = LIFE_S, max_lives: int = 100) -> Task:
        """Lets one worker live after the other until the task has ended."""
        while (task := await self.live(life_s)).status not in (Status.SUCCESS, Status.FAILURE):
            assert self.lives < max_lives, task.document
        return task

    async def task(self) -> Task:
        state = self.fixture.another().session().state
        [task] = await list_tasks(state)
        stored = await read_task(state, task)
        assert stored is not None
        return stored.task

    def files(self) -> list[str]:
        return [*self.store.keys("wh/warehouse/")]


def simulate(play: Callable[[LongLog], Coroutine[object, object, None]]) -> None:
    loop = SimulatedLoop(1, max_steps=10**9, max_seconds=10**7)
    loop.run(play(LongLog(loop)))


def test_a_table_with_many_commits_is_purged_by_workers_that_read_a_part_of_its_log() -> None:
    async def play(log: LongLog) -> None:
        await log.make()
        read = {key for key in log.files() if key.endswith((".metadata.json", ".avro"))}
        task = await log.purge()
        assert (task.status, task.attempts) == (Status.SUCCESS, 0), task.document
        assert log.files() == []
        assert log.lives > 3
        assert {key: log.reads[key] for key in read if not 0 < log.reads[key] <= MAX_READS} == {}

    simulate(play)


def test_a_table_with_many_snapshots_is_purged_by_workers_that_read_a_part_of_its_manifest_lists() -> None:
    async def play(log: LongLog) -> None:
        await log.make(commits=0, appends=150)
        read = {key for key in log.files() if key.endswith(".avro")}
        task = await log.purge(life_s=2.0, max_lives=200)
        assert (task.status, task.attempts) == (Status.SUCCESS, 0), task.document
        assert log.files() == []
        assert log.lives > 3
        assert {key: log.reads[key] for key in read if not 0 < log.reads[key] <= MAX_READS} == {}

    simulate(play)
