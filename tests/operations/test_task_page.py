"""Pages of tasks add up to the whole, also with purges that wait for their first worker, within a bound of reads."""

import asyncio
from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.errors import BadRequest, NotFound, Unsupported
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.listing import Paging
from arco_catalog.operations.task_page import MAX_TASKS, TaskFilter, get_task, retry, task_page
from arco_catalog.operations.undrop import undrop
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.task import TABLE_MAINTENANCE, TABLE_PURGE, Status, Task
from arco_catalog.state.task_log import append_task, put_hint
from storage_backends import ABSENT
from storage_backends.memory import MemoryStore
from tests.support.page_tokens import encode_token
from tools.support.catalog_fixture import NS, CatalogFixture, CountingFixture
from tools.support.wrapped_stores import CountingStore

PAYLOAD: JsonObject = {
    "operation_parameters": {"table_identity": {"namespace_levels": ["db"], "table_name": "t"}},
    "common_payload": {"correlation_id": "c-1"},
}
EVERY = TaskFilter()


@pytest.fixture
async def fixture() -> CountingFixture:
    made = CountingFixture(CountingStore(MemoryStore()))
    await made.namespace("db")
    return made


async def store(fixture: CatalogFixture, *versions: str, kind: str = TABLE_MAINTENANCE) -> str:
    """A task that went through these statuses."""
    session = fixture.session()
    runtime, at_ms = session.runtime, session.now_ms()
    task = Task.submitted(
        record=runtime.ulid(), task=runtime.uuid(), kind=kind, payload=PAYLOAD, at_ms=at_ms, not_before_ms=at_ms
    )
    await append_task(session.state, task)
    for status in versions:
        changed: JsonObject = {"id": runtime.ulid(), "task_version": task.number + 1, "status": status}
        task = Task({**task.document, **changed, "lease_ms": 60_000, "result_summary": status})
        await append_task(session.state, task)
    return task.id


async def listed(
    fixture: CatalogFixture, selection: TaskFilter = EVERY, size: int | None = None
) -> Sequence[JsonObject]:
    """All pages, each by a process that has nothing in memory."""
    found: list[JsonObject] = []
    token: str | None = None
    for _ in range(100):
        page = await task_page(fixture.another().session(), selection, Paging(token, size))
        assert len(page.tasks) <= min(size or MAX_TASKS, MAX_TASKS)
        found += page.tasks
        token = page.next_page_token
        if token is None:
            return found
    raise AssertionError("tasks without an end")


async def test_a_task_is_shown_with_status_progress_and_result(fixture: CountingFixture) -> None:
    task = await store(fixture, "RUNNING", "FAILURE")

    (found,) = await listed(fixture)

    times = {name: found.pop(name) for name in ("created-at-ms", "changed-at-ms", "next-run-at-ms")}
    assert all(isinstance(time, int) for time in times.values())
    assert found == {
        "id": task,
        "type": "TABLE_MAINTENANCE",
        "namespace": ["db"],
        "name": "t",
        "status": "FAILURE",
        "version": 3,
        "attempts": 0,
        "held": False,
        "undone": False,
        "stuck": False,
        "retriable": True,
        "progress": {},
        "result": "FAILURE",
        "correlation-id": "c-1",
    }
    whole = await get_task(fixture.session(), task)
    assert {**found, **times} == {name: whole[name] for name in [*found, *times]}
    assert (whole["payload"], whole["result-details"]) == (PAYLOAD, None)


@pytest.mark.parametrize("size", [1, 3, 8, 100, None])
async def test_pages_of_any_size_add_up_to_the_whole(fixture: CountingFixture, size: int | None) -> None:
    stored = [await store(fixture, *["RUNNING"] * number) for number in range(10)]
    for name in ("a", "b", "c"):
        await fixture.table(name)
        await drop_table(fixture.session(), NS, name, purge=True)

    paths, lost = fixture.catalog.paths, (await listed(fixture, TaskFilter(unfinished=True)))[0]
    await fixture.store.delete(paths.task_version(str(lost["id"]), 1))  # the first worker writes it again

    found = await listed(fixture, size=size)

    ids = [str(each["id"]) for each in found]
    assert ids[:12] == sorted({*ids} - {str(lost["id"])})
    assert (ids[12], found[12]["status"], {*stored} < {*ids}) == (lost["id"], "SUBMITTED", True)
    purges = [each for each in found if each["type"] == TABLE_PURGE]
    assert sorted(str(each["name"]) for each in purges) == ["a", "b", "c"]


async def test_a_task_with_more_versions_than_a_page_of_the_store_is_listed_once(
    fixture: CountingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage_backends.memory.PAGE_SIZE", 7)
    stored = [await store(fixture, *["RUNNING"] * 20) for _ in range(3)]

    assert [each["id"] for each in await listed(fixture)] == sorted(stored)


async def test_tasks_are_selected(fixture: CountingFixture) -> None:
    failed, ended, waits = (
        await store(fixture, "RUNNING", "FAILURE"),
        await store(fixture, "RUNNING", "SUCCESS"),
        await store(fixture),
    )
    await put_hint(fixture.session().state, waits, fixture.runtime.now_ms())

    async def ids(selection: TaskFilter) -> Sequence[JsonValue]:
        return [each["id"] for each in await listed(fixture, selection)]

    assert await ids(EVERY) == sorted([failed, ended, waits])
    assert await ids(TaskFilter(Status.SUCCESS)) == [ended]
    assert await ids(TaskFilter(unfinished=True)) == [waits]
    assert await ids(TaskFilter(stuck=True)) == []


async def test_a_purge_whose_drop_was_undone_is_marked(fixture: CountingFixture) -> None:
    await fixture.table("t")
    await drop_table(fixture.session(), NS, "t", purge=True)
    (waiting,) = await listed(fixture)
    assert (waiting["status"], waiting["undone"], waiting["retriable"]) == ("SUBMITTED", False, False)
    await undrop(fixture.session(), NS, "t")

    assert [each["undone"] for each in await listed(fixture)] in ([], [True])


async def test_a_damaged_record_is_listed_with_the_reason(fixture: CountingFixture) -> None:
    task, other = await store(fixture), await store(fixture)
    await fixture.store.put(fixture.catalog.paths.task_version(task, 2), b"{", ABSENT)

    found = {each["id"]: each.get("unreadable") for each in await listed(fixture, TaskFilter(Status.SUBMITTED))}

    assert found[other] is None
    assert isinstance(found[task], str)


async def test_a_failed_task_is_retried_once(fixture: CountingFixture) -> None:
    task = await store(fixture, "RUNNING", "FAILURE")

    again = await retry(fixture.session(), task)

    assert (again["status"], again["version"], again["result"], again["retriable"]) == ("SUBMITTED", 4, None, False)
    with pytest.raises(BadRequest, match="only a failed task"):
        await retry(fixture.session(), task)


async def test_of_many_retries_at_once_one_submits_the_task(fixture: CountingFixture) -> None:
    task = await store(fixture, "RUNNING", "FAILURE")

    outcomes = await asyncio.gather(
        *(retry(fixture.another().session(), task) for _ in range(8)), return_exceptions=True
    )

    assert sorted(type(each).__name__ for each in outcomes) == ["BadRequest"] * 7 + ["dict"]
    again = await get_task(fixture.session(), task)
    assert (again["status"], again["version"]) == ("SUBMITTED", 4)


@pytest.mark.parametrize("task", ["x", "open", "..", "a/b", "é", "0" * 65, ""])
async def test_a_task_that_does_not_exist_is_not_found(fixture: CountingFixture, task: str) -> None:
    await store(fixture)
    for operation in (get_task, retry):
        with pytest.raises(NotFound, match="Task does not exist"):
            await operation(fixture.session(), task)


async def test_a_read_only_catalog_retries_nothing(fixture: CountingFixture) -> None:
    task = await store(fixture, "RUNNING", "FAILURE")
    fixture.settings = Settings("wh", read_only_because="the store ignores If-Match")

    with pytest.raises(Unsupported, match="read-only"):
        await retry(fixture.another().session(), task)


async def test_a_page_keeps_to_its_budget(fixture: CountingFixture) -> None:
    for _ in range(12):
        await store(fixture, "RUNNING", "FAILURE")

    measured = await fixture.cost(task_page(fixture.another().session(), EVERY, Paging(None, None)))

    assert measured.calls <= 3 + 2 * MAX_TASKS


@pytest.mark.parametrize("position", [[], [1, "x"], ["a"], [None, None], "x"])
async def test_a_token_of_another_listing_is_refused(fixture: CountingFixture, position: JsonValue) -> None:
    token = encode_token(position)
    with pytest.raises(BadRequest, match="another listing"):
        await task_page(fixture.session(), EVERY, Paging(token, None))
