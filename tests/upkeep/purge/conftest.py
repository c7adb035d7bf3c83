import pytest

from arco_catalog.iceberg.json import JsonValue
from arco_catalog.operations.drop import drop_table
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.task import Task
from arco_catalog.state.task_log import all_hints, read_task
from arco_catalog.state.tombstone import Tombstone
from arco_catalog.upkeep.purge.worker import task_worker
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import ScriptedStore
from tools.support.catalog_fixture import NS, CatalogFixture

DAY_MS = 86_400_000


class Purges:
    """A catalog, its time, and what is left of tables in it."""

    def __init__(self, settings: Settings | None = None, runtime: FakeRuntime | None = None) -> None:
        self.runtime = runtime or FakeRuntime()
        self.store = ScriptedStore(self.runtime.now_ms)
        self.fixture = CatalogFixture(self.store, self.runtime, settings or Settings("wh"))

    async def table(self, name: str = "t", **more: JsonValue) -> TableState:
        return await self.fixture.table(name, None, **more)

    async def drop(self, name: str = "t", *, purge: bool = True) -> None:
        await drop_table(self.fixture.session(), NS, name, purge=purge)

    def window_passes(self) -> None:
        self.runtime.ms += DAY_MS

    async def run(self) -> int:
        """What a worker elsewhere does with what is due."""
        return await task_worker(self.fixture.another().catalog).run_due(lambda: False)

    async def make_due(self, name: str = "t") -> str:
        """Drops a table with purge, and lets the window pass in which the drop can be undone. Returns the task."""
        await self.drop(name)
        tombstone = await self.tombstone(name)
        self.window_passes()
        return str(tombstone.task)

    async def purge(self, name: str = "t") -> Task:
        """Drops a table with purge, and lets it be purged."""
        task = await self.make_due(name)
        await self.run()
        return await self.task(task)

    async def tombstone(self, name: str = "t") -> Tombstone:
        state = self.fixture.another().session().state
        index = (await state.head()).index
        [found] = [
            Tombstone(entry) async for _, entry in entries_in(state, index, "tombstone\n") if entry["name"] == name
        ]
        return found

    async def task(self, task: str) -> Task:
        stored = await read_task(self.fixture.session().state, task)
        assert stored is not None
        return stored.task

    async def hints(self) -> list[str]:
        return [hint.task async for hint in all_hints(self.fixture.session().state)]

    def files(self, prefix: str = "wh/warehouse/") -> list[str]:
        return [*self.store.keys(prefix)]


@pytest.fixture
async def purges() -> Purges:
    made = Purges()
    await made.fixture.namespace("db")
    return made


@pytest.fixture
async def trusting() -> Purges:
    """One whose operator trusts locations, and lets tables overlap."""
    made = Purges(Settings("wh", allow_location_overlap=True, purge=PurgeSettings(trust_locations=True)))
    await made.fixture.namespace("db")
    return made
