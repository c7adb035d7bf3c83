from dataclasses import dataclass, field

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.operations.load import load_table
from arco_catalog.operations.policies.attachments import attach_policy
from arco_catalog.operations.policies.policies import PolicyText, create_policy
from arco_catalog.planning.access import Securable
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.upkeep_policy import SNAPSHOT_EXPIRY
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.task import TABLE_EXPIRY, Task
from arco_catalog.state.task_log import list_tasks, read_task
from arco_catalog.tasks.work_stats import WorkStats
from arco_catalog.upkeep.expiry.executor import FILES_AGE_MS
from arco_catalog.upkeep.purge.worker import task_worker
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import ScriptedStore
from tests.support.table_files import append, commit_files, key_of
from tools.support.catalog_fixture import NS, CatalogFixture

DAY_MS = 86_400_000
NAMESPACE = Securable(NS)


@dataclass
class Expiries:
    """A catalog in memory, its time, and the worker that expires snapshots of its tables."""

    runtime: FakeRuntime
    store: ScriptedStore
    fixture: CatalogFixture
    stats: WorkStats = field(default_factory=WorkStats)
    """What workers have reported."""

    @classmethod
    async def made(cls, settings: Settings | None = None) -> "Expiries":
        runtime = FakeRuntime()
        store = ScriptedStore(runtime.now_ms)
        made = cls(runtime, store, CatalogFixture(store, runtime, settings or Settings("wh")))
        await made.fixture.namespace("db")
        return made

    async def policy(self, on: Securable = NAMESPACE, *, enable: bool = True, **config: JsonValue) -> None:
        """Attaches a policy of expiry to the namespace, by default of a day."""
        content: JsonObject = {"enable": enable, "config": config or {"max_snapshot_age_days": 1}}
        session = self.fixture.session()
        name = f"p{self.runtime.ulid().lower()}"
        await create_policy(session, NS, name, SNAPSHOT_EXPIRY, PolicyText("", dumps(content).decode()))
        await attach_policy(self.fixture.session(), NS, name, on, {})

    async def table(self, name: str = "t", *, days: int = 4, **more: JsonValue) -> TableState:
        """A table with a snapshot a day, each with a file of its own, `0`, `1` and so on, as the only one."""
        await self.fixture.table(name, None, **more)
        for day in range(days):
            await self.append(str(day), name=name)
            self.runtime.ms += DAY_MS
        return await self.state(name)

    async def state(self, name: str = "t") -> TableState:
        return await load_table(self.fixture.another().session(), NS, name)

    async def append(self, *names: str, name: str = "t") -> TableState:
        return await append(self.fixture, await self.state(name), *names, name=name)

    async def name_files(self, *files: str, name: str = "t") -> TableState:
        """A snapshot of files that are there."""
        return await commit_files(self.fixture, await self.state(name), files, name=name)

    async def commit(self, *updates: JsonObject, name: str = "t") -> TableState:
        return await self.fixture.commit({"requirements": [], "updates": [*updates]}, name)

    async def document(self, name: str = "t") -> JsonObject:
        document = loads((await self.state(name)).metadata)
        assert isinstance(document, dict)
        return document

    async def stored_snapshots(self, name: str = "t") -> list[JsonObject]:
        """The table's snapshots as its metadata has them."""
        snapshots = (await self.document(name))["snapshots"]
        assert isinstance(snapshots, list)
        return [each for each in snapshots if isinstance(each, dict)]

    async def snapshots(self, name: str = "t") -> list[int]:
        """The ids of the table's snapshots."""
        return [int(str(each["snapshot-id"])) for each in await self.stored_snapshots(name)]

    async def work(self) -> None:
        """What a worker elsewhere does with all that is due."""
        worker = task_worker(self.fixture.another().catalog)
        await worker.run_until_idle()
        self.stats.add(worker.take_stats())

    async def expire(self) -> None:
        """Removes snapshots, and lets the files become old enough that they are deleted."""
        await self.work()
        self.runtime.ms += FILES_AGE_MS + 60_000

    async def tasks(self, kind: str = TABLE_EXPIRY) -> list[Task]:
        state = self.fixture.session().state
        stored = [await read_task(state, each) for each in await list_tasks(state)]
        return [each.task for each in stored if each is not None and each.task.kind == kind]

    async def task(self) -> Task:
        [task] = await self.tasks()
        return task

    async def data_files(self, name: str = "t") -> list[str]:
        """The names of the data files that are there."""
        place = key_of(str((await self.document(name))["location"]))
        return sorted(key.rpartition("/")[2] for key in self.store.keys(f"{place}/data/"))

    async def metadata_files(self, name: str = "t") -> list[str]:
        place = key_of(str((await self.document(name))["location"]))
        return sorted(key.rpartition("/")[2] for key in self.store.keys(f"{place}/metadata/"))


@pytest.fixture
async def expiries() -> Expiries:
    return await Expiries.made()
