"""Plans that come together are all answered: some at a time, of which none waits for what another one keeps."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable

import pytest

from arco_catalog.iceberg.scan_request import parse_plan_request
from arco_catalog.operations.scans import delete_files
from arco_catalog.operations.scans.answer import TaskAnswer
from arco_catalog.operations.scans.delete_files import DeleteFiles
from arco_catalog.operations.scans.files_memory import FREE_BYTES, MAX_FILES_BYTES, FilesMemory
from arco_catalog.operations.scans.plan_turns import PLANS_AT_ONCE, SENT_WEIGHT, TURN_BYTES, plan_turns
from arco_catalog.operations.scans.planner import PartPlan, Planner
from arco_catalog.operations.scans.plans import Plan, begin
from arco_catalog.operations.scans.scan_manifests import ENTRY_BYTES
from arco_catalog.operations.scans.tokens import Range
from arco_catalog.protocol.catalog import Session
from arco_catalog.state import worker_threads
from arco_catalog.state.memory import REQUEST_MEMORY_BYTES, Memory
from storage_backends.memory import MemoryStore
from tests.support.scanned_tables import Manifest, ScannedTable, commit_of, entry
from tools.support.catalog_fixture import NS, CountingFixture
from tools.support.wrapped_stores import CountingStore

MANIFESTS = 20
FILES = 15
"""In each manifest."""


@pytest.fixture
async def made() -> CountingFixture:
    """A catalog with a table of small manifests."""
    made = CountingFixture(CountingStore(MemoryStore()))
    await made.namespace("db")
    state = await made.table("t")
    table = ScannedTable(made.store, state.metadata_location.rpartition("/metadata/")[0])
    manifests = [
        Manifest([entry(f"memory:///wh/{place}-{number}.parquet") for number in range(FILES)])
        for place in range(MANIFESTS)
    ]
    await made.commit(commit_of(await table.snapshot(1, manifests)))
    return made


async def plan(session: Session, owner: str | None = None) -> Plan:
    session.hold.owner = owner
    return await begin(session, NS, "t", parse_plan_request({}))


class Running:
    """Observes which plans run at the same time, each of which takes as many turns of the event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.greatest = 0, 0
        work = Planner.plan

        async def observed(planner: Planner, part: Range) -> PartPlan:
            self.now += 1
            self.greatest = max(self.greatest, self.now)
            try:
                for _ in range(20):
                    await asyncio.sleep(0)
                return await work(planner, part)
            finally:
                self.now -= 1

        monkeypatch.setattr(Planner, "plan", observed)


async def test_a_crowd_of_plans_is_answered_some_at_a_time(
    made: CountingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(monkeypatch)
    found = await asyncio.gather(*(plan(made.session()) for _ in range(8 * PLANS_AT_ONCE)))
    assert {each.planned.tasks.files for each in found} == {MANIFESTS * FILES}
    assert running.greatest == PLANS_AT_ONCE
    assert plan_turns().used == 0


async def test_the_plans_of_one_principal_have_half_of_the_turns(
    made: CountingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(monkeypatch)
    await asyncio.gather(*(plan(made.session(), "one") for _ in range(8)))
    assert running.greatest == PLANS_AT_ONCE // 2
    await asyncio.gather(*(plan(made.session(), owner) for owner in ("one", "other") for _ in range(8)))
    assert running.greatest == PLANS_AT_ONCE


async def test_a_plan_that_fails_ends_its_turn(made: CountingFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object) -> PartPlan:
        raise ValueError("a defect")

    monkeypatch.setattr(Planner, "plan", fails)
    with pytest.raises(ValueError, match="a defect"):
        await plan(made.session())
    assert plan_turns().used == 0


async def test_the_memory_of_requests_has_room_for_what_all_turns_may_take() -> None:
    assert plan_turns().max_bytes == PLANS_AT_ONCE * TURN_BYTES
    assert plan_turns().max_bytes <= Memory(REQUEST_MEMORY_BYTES).max_bytes


async def test_an_answer_that_is_planned_keeps_the_memory_of_its_bytes_alone(made: CountingFixture) -> None:
    memory = Memory(REQUEST_MEMORY_BYTES)
    session = made.session()
    with memory.hold() as hold:
        session.hold = hold
        answered = await plan(session)
        large = memory.share_of(2 << 20)
        assert large.used == SENT_WEIGHT * answered.planned.tasks.size
    assert memory.used == 0


async def test_the_files_of_a_plan_give_back_their_memory() -> None:
    memory = Memory(REQUEST_MEMORY_BYTES)
    with memory.hold() as hold:
        files = FilesMemory(hold.take)
        await files.add(FREE_BYTES, is_first=True)
        assert memory.used == 0
        await files.add(MAX_FILES_BYTES, is_first=False)
        assert memory.used == MAX_FILES_BYTES
        files.close()
        assert memory.used == 0


async def test_threads_plan_the_files_of_many_small_manifests(
    made: CountingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each manifest alone is little work for the event loop, and hundreds in a row are a tenth of a second. Also if
    nothing is read, because the files are in memory."""
    monkeypatch.setattr(worker_threads, "SMALL_BYTES", 4 * FILES * ENTRY_BYTES)
    in_loop: list[bool] = []
    add = TaskAnswer.add

    def observed(*arguments: object) -> bool:
        in_loop.append(threading.current_thread() is threading.main_thread())
        return add(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(TaskAnswer, "add", observed)
    for _ in range(3):
        in_loop.clear()
        await plan(made.session())
        assert len(in_loop) == MANIFESTS * FILES
        assert sum(in_loop) < 4 * FILES


@pytest.mark.parametrize("few", [True, False], ids=["few_deletes", "an_index_of_deletes"])
async def test_nothing_of_a_plan_waits_for_the_collector_of_cycles(
    made: CountingFixture, monkeypatch: pytest.MonkeyPatch, few: bool
) -> None:
    """The collector leaves large objects alone for as long as any request has memory for some. A megabyte of an index
    of deletes stayed for each answer."""
    monkeypatch.setattr(delete_files, "FEW_FILES", 2_000 if few else 0)
    kept: list[weakref.ref[object]] = []
    for each in (Planner, DeleteFiles):
        monkeypatch.setattr(each, "__init__", noting(each.__init__, kept))
    state = await made.commit({"requirements": [], "updates": []})
    table = ScannedTable(made.store, state.metadata_location.rpartition("/metadata/")[0])
    deletes = Manifest([entry("memory:///wh/d.parquet", content=1)], content=1)
    await made.commit(commit_of(await table.snapshot(2, [Manifest([entry("memory:///wh/1.parquet")]), deletes])))
    gc.disable()
    try:
        found = await plan(made.session())
        assert (found.planned.tasks.files, found.planned.tasks.delete_files) == (1, 1)
        del found
        assert len(kept) == 2
        assert [each() for each in kept] == [None, None]
    finally:
        gc.enable()


def noting(work: Callable[..., None], kept: list[weakref.ref[object]]) -> Callable[..., None]:
    """Returns `work`, a constructor, which then keeps a weak reference to each object."""

    def noted(made: object, *arguments: object) -> None:
        kept.append(weakref.ref(made))
        work(made, *arguments)

    return noted
