"""What a purge deletes is listed once, in chunks, however many workers that takes (docs/design/purge.md#rule-29)."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from arco_catalog.iceberg.json import dumps, loads
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.load import load_table
from arco_catalog.planning.purge import first_version
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.purge_chunks import Chunk
from arco_catalog.state.purge_progress import Progress
from arco_catalog.state.task import TABLE_PURGE, Status, Task
from arco_catalog.tasks.execution import Execution, TaskResult
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.worker import Worker
from arco_catalog.upkeep.purge import take_inventory as taking
from arco_catalog.upkeep.purge.inventory import StoredInventory
from arco_catalog.upkeep.purge.take_inventory import take_inventory
from arco_catalog.upkeep.purge.worker import LeftToThePipeline, task_worker
from storage_backends import ANY, Found
from tests.support.scripted_store import Call, Nth, Rule, delete, get
from tests.support.table_files import append, key_of
from tests.upkeep.purge.conftest import DAY_MS, Purges
from tools.support.catalog_fixture import NS
from tools.support.request_bodies import set_property

COMMITS = 30


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a short log has several."""
    monkeypatch.setattr(taking, "MAX_NAMES", 8)
    monkeypatch.setattr(taking, "AT_ONCE", 2)


async def a_table_of_many_commits(purges: Purges) -> None:
    table = await purges.table()
    for number in range(4):
        table = await append(purges.fixture, table, f"{number}.parquet")
    for number in range(COMMITS):
        table = await purges.fixture.commit(set_property("n", str(number)))
    await append(purges.fixture, table, "last.parquet")


def chunks(purges: Purges) -> list[str]:
    return [*purges.store.keys("wh/_catalog/operational/purges/")]


async def run_cut(purges: Purges, call: Callable[[Call], bool]) -> None:
    """What a worker does whose time is over at this call."""
    running = asyncio.create_task(task_worker(purges.fixture.another().catalog).run_due(lambda: False))

    async def stop() -> None:
        running.cancel()

    purges.store.rules = [Rule(call, first=stop)]
    await asyncio.wait([running])
    purges.store.rules = []


async def the_task(purges: Purges) -> Task:
    return await purges.task(str((await purges.tombstone()).task))


def metadata_file(call: Call) -> bool:
    return get(".metadata.json")(call)


async def test_a_walk_that_is_cut_goes_on_where_it_was(purges: Purges) -> None:
    await a_table_of_many_commits(purges)
    await purges.drop()
    purges.window_passes()
    before = len([call for call in purges.store.calls if metadata_file(call)])
    await run_cut(purges, Nth(COMMITS, metadata_file))
    assert chunks(purges)
    await purges.run()
    assert (await the_task(purges)).status is Status.SUCCESS
    assert purges.files() == []
    read = len([call for call in purges.store.calls if metadata_file(call)]) - before
    assert read < 1.5 * COMMITS


@pytest.mark.parametrize("damage", [b"", b"garbage", b'{"version":1}', None])
@pytest.mark.parametrize("number", [0, -1])
async def test_an_inventory_with_a_damaged_chunk_is_taken_again(
    purges: Purges, damage: bytes | None, number: int
) -> None:
    await a_table_of_many_commits(purges)
    await purges.drop()
    purges.window_passes()
    await run_cut(purges, Nth(2, delete("/warehouse/")))
    key = chunks(purges)[number]
    if damage is None:
        await purges.store.delete(key)
    else:
        await purges.store.put(key, damage, ANY)
    for _ in range(3):
        await purges.run()
        purges.window_passes()
    assert (await the_task(purges)).status is Status.SUCCESS
    assert purges.files() == []


async def test_an_inventory_that_is_lost_among_the_data_files_is_taken_again(purges: Purges) -> None:
    await a_table_of_many_commits(purges)
    await purges.drop()
    purges.window_passes()
    await run_cut(purges, Nth(1, get("-m0.avro")))
    assert (await the_task(purges)).checkpoint["phase"] == "data"
    for key in chunks(purges):
        await purges.store.delete(key)
    await purges.run()
    assert (await the_task(purges)).status is Status.SUCCESS
    assert purges.files() == []


async def test_an_inventory_that_is_lost_among_the_metadata_files_is_taken_again(purges: Purges) -> None:
    await a_table_of_many_commits(purges)
    await purges.drop()
    purges.window_passes()
    await run_cut(purges, Nth(10, delete(".metadata.json")))
    assert (await the_task(purges)).checkpoint["phase"] == "metadata"
    for key in chunks(purges):
        await purges.store.delete(key)
    await purges.run()
    assert (await the_task(purges)).status is Status.SUCCESS
    assert purges.files() == []


async def test_the_checkpoint_of_an_earlier_version_has_no_inventory(purges: Purges) -> None:
    await a_table_of_many_commits(purges)
    await purges.drop()
    purges.window_passes()
    await run_cut(purges, Nth(2, delete("/warehouse/")))
    key = sorted(purges.store.keys("wh/_catalog/tasks/"))
    for each in key:
        found = await purges.store.get(each)
        if isinstance(found, Found) and b'"inventory"' in found.body:
            document = loads(found.body)
            assert isinstance(document, dict)
            document["checkpoint"] = {"deleting": True, "phase": "data", "done": 3, "files": 3}
            await purges.store.put(each, dumps(document), ANY)
    await purges.run()
    assert (await the_task(purges)).status is Status.SUCCESS
    assert purges.files() == []


class Probe(LeftToThePipeline):
    """An executor that does this with the lease of a task."""

    def __init__(self, step: Callable[[Execution], Awaitable[None]]) -> None:
        self._step = step

    def takes(self, task: Task) -> bool:
        return True

    async def execute(self, execution: Execution) -> TaskResult:
        await self._step(execution)
        return TaskResult("done", {})


async def with_a_lease(purges: Purges, step: Callable[[Execution], Awaitable[None]]) -> None:
    """Does this with the lease of a task, whose table is another."""
    await purges.table("other")
    await purges.drop("other")
    purges.window_passes()
    tombstone = await purges.tombstone("other")

    async def submitted(session: Session, task: str) -> Task:
        runtime = session.runtime
        return first_version("wh", task, tombstone, record=runtime.ulid(), at_ms=session.now_ms())

    failures: list[BaseException] = []

    async def noted(execution: Execution) -> None:
        try:
            await step(execution)
        except BaseException as error:
            failures.append(error)

    worker = Worker(purges.fixture.another().catalog, {TABLE_PURGE: Probe(noted)}, submitted, TaskPolicies())
    assert await worker.run_due(lambda: False) == 1
    for failure in failures:
        raise failure


async def pointer_of(execution: Execution, entity: str) -> Pointer:
    pointer = await execution.session().state.pointer(entity)
    assert pointer is not None
    return pointer


async def names(inventory: StoredInventory) -> list[Chunk]:
    return [chunk async for chunk in inventory.chunks()]


async def test_an_inventory_from_an_earlier_metadata_file_on_is_not_believed(purges: Purges) -> None:
    """As the checkpoint of a catalog may name one that was restored in its place."""
    table = await append(purges.fixture, await purges.table(), "a.parquet")

    async def step(execution: Execution) -> None:
        await take_inventory(execution, await pointer_of(execution, table.entity), dry=True)
        body = set_property("a", "1")
        await commit_table(purges.fixture.another().session(body, deadline_ms=DAY_MS), NS, "t", body)
        later = (await load_table(purges.fixture.another().session(deadline_ms=DAY_MS), NS, "t")).metadata_location
        found = await names(await take_inventory(execution, await pointer_of(execution, table.entity), dry=True))
        assert later in [file for chunk in found for file in chunk.files]

    await with_a_lease(purges, step)


async def test_all_names_are_in_some_chunk_and_none_is_in_many(purges: Purges) -> None:
    await a_table_of_many_commits(purges)
    entity = (await load_table(purges.fixture.another().session(deadline_ms=DAY_MS), NS, "t")).entity

    async def step(execution: Execution) -> None:
        found = await names(await take_inventory(execution, await pointer_of(execution, entity), dry=True))
        assert len(found) > 5
        assert all(len(each.files) + len(each.lists) + len(each.manifests) <= 16 for each in found)
        files = [key_of(file) for chunk in found for file in chunk.files]
        lists = [key_of(each) for chunk in found for each in chunk.lists]
        manifests = [key_of(each.location) for chunk in found for each in chunk.manifests]
        stored = purges.files("wh/warehouse/db/t-")
        assert sorted(files) == [key for key in stored if key.endswith(".metadata.json")]
        assert sorted(lists) == [key for key in stored if "/snap-" in key]
        assert sorted(manifests) == [key for key in stored if key.endswith("-m0.avro")]
        assert Progress.parse(execution.checkpoint).inventory == found[0].id

    await with_a_lease(purges, step)
