"""The versions of a task: which may follow which, and what they keep (docs/design/tasks.md#records)."""

from itertools import product

import pytest

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.access import Caches, State
from arco_catalog.state.paths import Paths
from arco_catalog.state.task import TABLE_PURGE, TRANSITIONS, Status, Task
from arco_catalog.state.task_log import append_task, due_hints, list_tasks, put_hint, read_task
from storage_backends import ABSENT, Cursor, Page
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import Rule, ScriptedStore, lost, put

ID = "00000000-0000-4000-8000-000000000001"


def submitted(at_ms: int = 5) -> Task:
    return Task.submitted(
        record="r1", task=ID, kind=TABLE_PURGE, payload={"a": [1]}, at_ms=at_ms, not_before_ms=at_ms + 10
    )


def leased(task: Task) -> Task:
    return task.leased(record="l", at_ms=7, lease_ms=1_000)


def of(status: Status) -> Task:
    return Task({**submitted().document, "status": status.value})


def test_a_task_is_submitted_leased_run_and_ended() -> None:
    held = leased(submitted())
    ended = held.running(record="r3", at_ms=8).ended(
        record="r4", at_ms=9, status=Status.SUCCESS, summary="done", extended=None
    )
    assert [held.status, held.number, held.lease_number, held.lease] == [Status.ACQUIRING_RESOURCES, 2, 2, "l"]
    assert [ended.status, ended.number, ended.attempts, ended.summary] == [Status.SUCCESS, 4, 0, "done"]
    assert Task.parse(ended.body, "x") == ended
    assert ended.payload == {"a": [1]}


@pytest.mark.parametrize(("before", "after"), [*product(Status, Status)])
def test_a_status_follows_another_only_if_the_table_has_the_transition(before: Status, after: Status) -> None:
    task = of(before)
    if before is after or after in TRANSITIONS[before]:
        assert task._next("r", after, 1, {}).status is after
    else:
        with pytest.raises(InternalError, match=f"is {before} and cannot become {after}"):
            task._next("r", after, 1, {})


def test_a_renewal_is_no_change_of_status() -> None:
    held = leased(submitted())
    assert held.renewed(record="r", checkpoint={}).document["last_status_change_ts"] == 7


def test_a_task_that_is_tried_again_does_not_show_the_failure_of_an_earlier_attempt() -> None:
    failed = leased(submitted()).scheduled(
        record="s", at_ms=8, next_run_ms=9, attempts=1, summary="the store is down", extended="503"
    )
    again = leased(failed)
    assert (again.summary, again.document["result_extended"]) == (None, None)
    assert (again.running(record="r", at_ms=10).summary, again.attempts) == (None, 1)


@pytest.mark.parametrize(("checkpoint", "attempts"), [({}, 1), ({"phase": "data"}, 0)])
def test_a_lost_attempt_counts_unless_it_got_further(checkpoint: JsonObject, attempts: int) -> None:
    lost_one = leased(submitted()).renewed(record="r", checkpoint=checkpoint)
    taken_over = leased(lost_one)
    assert (taken_over.attempts, taken_over.checkpoint, taken_over.advanced) == (attempts, checkpoint, False)
    assert taken_over.lease_number == 4


def test_a_failed_task_is_submitted_again_with_its_checkpoint() -> None:
    failed = (
        leased(submitted())
        .renewed(record="r", checkpoint={"phase": "data"})
        .ended(record="e", at_ms=9, status=Status.FAILURE, summary="no", extended="at length")
    )
    again = failed.resubmitted(record="again", at_ms=20)
    assert (again.status, again.attempts, again.checkpoint) == (Status.SUBMITTED, 0, {"phase": "data"})
    assert again.summary is None
    assert again.document["result_extended"] is None
    with pytest.raises(InternalError, match="only a failed task"):
        again.resubmitted(record="x", at_ms=21)


def test_a_task_that_is_submitted_again_has_a_later_time_with_any_clock() -> None:
    failed = leased(submitted()).ended(record="e", at_ms=9, status=Status.FAILURE, summary="no", extended=None)
    assert failed.resubmitted(record="again", at_ms=failed.next_run_ms - 600_000).next_run_ms > failed.next_run_ms


@pytest.mark.parametrize("broken", [b"{}", b'{"version":1,"status":"LOST","task_version":1}', b"not json"])
def test_a_task_that_cannot_be_read_is_an_error(broken: bytes) -> None:
    with pytest.raises(InternalError):
        Task.parse(broken, "x")


def state(store: ScriptedStore) -> State:
    return State(store, Paths("wh"), Caches.of(1 << 20), FakeRuntime())


async def test_who_creates_a_version_decides_it() -> None:
    store = ScriptedStore()
    one, other = leased(submitted()), submitted().leased(record="other", at_ms=7, lease_ms=1)
    assert await append_task(state(store), one) is not None
    assert await append_task(state(store), other) is None
    stored = await read_task(state(store), ID)
    assert stored is not None
    assert stored.task == one


@pytest.mark.parametrize("made", [True, False])
async def test_a_version_of_unknown_outcome_is_sent_again(made: bool) -> None:
    store = ScriptedStore()
    store.rules = [Rule(put("/tasks/"), made=made, answers=lost, times=1)]
    assert await append_task(state(store), submitted()) is not None
    assert sum(call.method == "put" for call in store.calls) == 2


async def test_the_last_version_is_found_among_many() -> None:
    store = ScriptedStore()
    task = leased(submitted())
    for _ in range(11):
        await append_task(state(store), task)
        task = task.renewed(record="r", checkpoint={})
    stored = await read_task(state(store), ID)
    assert stored is not None
    assert stored.task.number == 12
    assert await read_task(state(store), "another") is None


NOW_MS = 1_767_225_600_000


class ListsInNoOrder(ScriptedStore):
    """As the directory buckets of S3 do: each page comes backwards."""

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        page = await super().list(prefix, after)
        return Page(tuple(reversed(page.entries)), page.after, page.now_ms)


async def hinted(store: ScriptedStore, due: int, later: int = 0) -> None:
    """So many hints are due, and so many are not."""
    for number in range(-due, later):
        await put_hint(state(store), f"task{number}", NOW_MS + 1 + number)


async def read_due(store: ScriptedStore) -> tuple[list[str], int, int]:
    """Returns the due tasks, the number of listings, and the size of the largest page of hints."""
    store.calls.clear()
    found, largest_page = [], 0
    due = await due_hints(state(store))
    while True:
        found += [hint.task for hint in due.hints]
        largest_page = max(largest_page, len(due.hints))
        if due.after is None:
            return found, sum(call.method == "list" for call in store.calls), largest_page
        due = await due_hints(state(store), due.after)


@pytest.mark.parametrize("kind", [ScriptedStore, ListsInNoOrder])
async def test_due_hints_are_found_and_the_oldest_first(kind: type[ScriptedStore]) -> None:
    store = kind(lambda: NOW_MS)
    for task, not_before in {"a": NOW_MS, "b": NOW_MS - 2_001, "c": NOW_MS + 1, "d": NOW_MS - 2_000}.items():
        await put_hint(state(store), task, not_before)
    assert (await read_due(store))[0] == ["b", "d", "a"]


async def test_an_object_among_the_hints_whose_digits_are_no_date_is_neither_a_hint_nor_a_task() -> None:
    clock = FakeRuntime()
    store = ScriptedStore(clock.now_ms)
    state = State(store, Paths("wh"), Caches.of(1 << 20), clock)
    key = f"{state.paths.open_tasks}20261399T000000000Z-x"
    await store.put(key, b"", ABSENT)

    assert state.paths.read_open_task(key) is None
    assert await list_tasks(state) == []


async def test_a_look_lists_no_further_than_to_the_first_hint_that_is_not_due() -> None:
    store = ScriptedStore(lambda: NOW_MS)
    await hinted(store, due=3, later=4_000)
    assert await read_due(store) == (["task-3", "task-2", "task-1"], 1, 3)


async def test_a_look_lists_a_page_for_each_page_of_hints_that_are_due() -> None:
    store = ScriptedStore(lambda: NOW_MS)
    await hinted(store, due=2_500, later=4_000)
    assert await read_due(store) == ([f"task{number}" for number in range(-2_500, 0)], 3, 1_000)


async def test_a_store_that_lists_in_no_order_is_listed_whole_and_what_is_held_is_bounded() -> None:
    store = ListsInNoOrder(lambda: NOW_MS)
    await hinted(store, due=2_500, later=500)
    found, listings, largest_page = await read_due(store)
    assert found == [f"task{number}" for number in range(-2_500, 0)]
    assert (listings, largest_page) == (1 + 3 * 3, 1_000)


@pytest.mark.parametrize(("age_ms", "held"), [(0, True), (999, True), (1_000, False), (-4_000, True), (-6_000, False)])
async def test_a_lease_runs_from_the_stores_time_of_its_version(age_ms: int, held: bool) -> None:
    times = [1_767_225_600_000]
    store = ScriptedStore(lambda: times[0])
    await append_task(state(store), leased(submitted()))
    times[0] += age_ms
    stored = await read_task(state(store), ID)
    assert stored is not None
    assert stored.is_held is held
