"""Workers find what is due, one holds a task at a time, and what fails is tried again (docs/design/tasks.md#tasks)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import pytest

from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.tasks import retry_task
from arco_catalog.protocol.catalog import NotifyWorkers, Session
from arco_catalog.state.task import TABLE_MAINTENANCE, Status, Task
from arco_catalog.state.task_log import all_hints, append_task, put_hint, read_task
from arco_catalog.tasks.execution import Execution, NotYet, TaskFailed, TaskResult
from arco_catalog.tasks.lease import LeaseLost
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.worker import TASKS_AT_ONCE, Worker
from storage_backends import StoreUnavailable
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, put
from tools.support.catalog_fixture import CatalogFixture

KIND = TABLE_MAINTENANCE
ID = "00000000-0000-4000-8000-000000000001"
OTHER = "00000000-0000-4000-8000-000000000002"
MINUTE = 60_000
POLICIES = TaskPolicies.parse({"delegation.retry.default.max-attempts": "3"})


@dataclass
class ScriptedExecutor:
    """Executes a task by a function of the test."""

    steps: list[Callable[[Execution], Awaitable[None]]] = field(default_factory=list)
    executed: list[int] = field(default_factory=list)
    abandoned: list[str] = field(default_factory=list)
    can: bool = True

    def takes(self, task: Task) -> bool:
        return self.can

    async def execute(self, execution: Execution) -> TaskResult:
        self.executed.append(execution.number)
        await execution.start()
        if self.steps:
            await self.steps.pop(0)(execution)
        return TaskResult("done", {"files": 3})

    async def abandon(self, execution: Execution, reason: str) -> None:
        self.abandoned.append(reason)


def fails(error: Exception) -> Callable[[Execution], Awaitable[None]]:
    async def step(execution: Execution) -> None:
        raise error

    return step


class Tasks:
    """A catalog, and a task that its registry may name."""

    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.store = ScriptedStore(self.runtime.now_ms)
        self.fixture = CatalogFixture(self.store, self.runtime)
        self.executor = ScriptedExecutor()
        self.named = True
        self.calls = 0
        self.then: Callable[[], None] = lambda: None
        self.notify: NotifyWorkers | None = None

    async def submission(self, session: Session, task: str) -> Task | None:
        self.calls += 1
        self.then()
        if not self.named:
            return None
        now_ms = self.runtime.ms
        return Task.submitted(record="r", task=task, kind=KIND, payload={}, at_ms=now_ms, not_before_ms=now_ms)

    def worker(self) -> Worker:
        catalog = replace(self.fixture.another().catalog, notify_workers=self.notify)
        return Worker(catalog, {KIND: self.executor}, self.submission, POLICIES)

    async def run(self) -> int:
        return await self.worker().run_due(lambda: False)

    async def until_done(self) -> None:
        """Has workers look whenever the task is due."""
        while (await self.run()) and (task := await self.task()).status is Status.RETRY_SCHEDULED:
            self.runtime.ms = max(self.runtime.ms, task.next_run_ms)
        assert (await self.task()).status is Status.SUCCESS

    async def hint(self, task: str = ID, in_ms: int = 0) -> None:
        await put_hint(self.fixture.session().state, task, self.runtime.ms + in_ms)

    async def hints(self) -> list[int]:
        return [hint.not_before_ms - self.runtime.ms async for hint in all_hints(self.fixture.session().state)]

    async def task(self, task: str = ID) -> Task:
        stored = await read_task(self.fixture.session().state, task)
        assert stored is not None
        return stored.task


@pytest.fixture
def tasks() -> Tasks:
    return Tasks()


async def test_a_task_that_the_registry_names_is_done_and_its_hint_goes(tasks: Tasks) -> None:
    await tasks.hint()
    assert await tasks.run() == 1
    task = await tasks.task()
    assert (task.status, task.summary, task.document["result_extended"]) == (Status.SUCCESS, "done", '{"files":3}')
    assert await tasks.hints() == []
    assert await tasks.run() == 0


async def test_a_task_is_not_read_before_its_time(tasks: Tasks) -> None:
    await tasks.hint(in_ms=1)
    assert await tasks.run() == 0
    tasks.runtime.ms += 1
    assert await tasks.run() == 1


async def never(seconds: float) -> None:
    """A sleep in place of the runtime's, which moves the time: no lease is renewed."""
    await asyncio.Event().wait()


async def test_a_long_task_delays_no_other_task_of_its_catalog(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.runtime, "sleep", never)
    others_done = asyncio.Event()

    async def waits(execution: Execution) -> None:
        await others_done.wait()

    async def ends(execution: Execution) -> None:
        if len(tasks.executor.executed) == 5:
            others_done.set()

    tasks.executor.steps = [waits, *[ends] * 4]
    for number in range(5):
        await tasks.hint(f"{ID[:-1]}{number}")
    async with asyncio.timeout(10):
        assert await tasks.run() == 5


async def test_so_many_tasks_of_a_catalog_are_executed_concurrently(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks.runtime, "sleep", never)
    under_way, maximum = 0, 0

    async def counted(execution: Execution) -> None:
        nonlocal under_way, maximum
        under_way += 1
        maximum = max(maximum, under_way)
        for _ in range(50):
            await asyncio.sleep(0)
        under_way -= 1

    tasks.executor.steps = [counted] * 6
    for number in range(6):
        await tasks.hint(f"{ID[:-1]}{number}")
    worker = tasks.worker()
    await asyncio.gather(*(worker.run_due(lambda: False) for _ in range(3)))
    assert len(tasks.executor.executed) == 6
    assert maximum == TASKS_AT_ONCE


async def test_two_workers_that_meet_a_task_do_it_once(tasks: Tasks) -> None:
    await tasks.hint()
    assert sorted(await asyncio.gather(*(tasks.run() for _ in range(4)))) == [0, 0, 0, 1]
    assert len(tasks.executor.executed) == 1


async def test_a_lost_lease_is_taken_over_when_it_has_run_out(tasks: Tasks) -> None:
    await tasks.hint()
    first = await tasks.submission(tasks.fixture.session(), ID)
    assert first is not None
    held = first.leased(record="dead", at_ms=tasks.runtime.ms, lease_ms=5 * MINUTE)
    for version in (first, held):
        await append_task(tasks.fixture.session().state, version)
    tasks.runtime.ms += 5 * MINUTE - 1
    assert await tasks.run() == 0
    tasks.runtime.ms += 1
    assert await tasks.run() == 1
    assert tasks.executor.executed == [3]
    assert (await tasks.task()).attempts == 1


async def test_a_failed_attempt_is_made_again_after_a_pause_that_grows_and_then_no_more(tasks: Tasks) -> None:
    await tasks.hint()
    tasks.executor.steps = [fails(Unavailable("the store is down"))] * 3
    assert await tasks.run() == 1
    assert (await tasks.task()).status is Status.RETRY_SCHEDULED
    assert await tasks.hints() == [30_000]
    tasks.runtime.ms += 30_000
    assert await tasks.run() == 1
    assert await tasks.hints() == [60_000]
    tasks.runtime.ms += 60_000
    assert await tasks.run() == 1
    task = await tasks.task()
    assert (task.status, task.summary) == (Status.FAILURE, "Unavailable: the store is down")
    assert "Traceback" in str(task.document["result_extended"])
    assert tasks.executor.abandoned == ["Unavailable: the store is down"]
    assert await tasks.hints() == []


async def test_an_attempt_that_got_further_does_not_count(tasks: Tasks) -> None:
    async def gets_on(execution: Execution) -> None:
        await execution.save({"done": len(tasks.executor.executed)})
        raise Unavailable("and then no more")

    await tasks.hint()
    tasks.executor.steps = [gets_on] * 8
    for _ in range(8):
        assert await tasks.run() == 1
        tasks.runtime.ms += 60 * MINUTE
    assert await tasks.run() == 1
    assert ((await tasks.task()).status, (await tasks.task()).attempts) == (Status.SUCCESS, 0)


@pytest.mark.parametrize("payload", ["{", "[]", 7])
@pytest.mark.parametrize("kind", [KIND, "OF_A_LATER_VERSION"])
async def test_a_task_with_an_invalid_payload_stops_no_other(tasks: Tasks, kind: str, payload: JsonValue) -> None:
    async def read_payload(execution: Execution) -> None:
        _ = execution.task.payload

    damaged: JsonObject = {"task_payload": payload, "task_type": kind}
    healthy: JsonObject = {}
    for name, fields in ((ID, damaged), (OTHER, healthy)):
        submitted = await tasks.submission(tasks.fixture.session(), name)
        assert submitted is not None
        await append_task(tasks.fixture.session().state, Task({**submitted.document, **fields}))
        await tasks.hint(name)
    tasks.executor.steps = [read_payload] * 4
    for _ in range(3):
        await tasks.run()
        tasks.runtime.ms += 60 * MINUTE
    assert (await tasks.task(OTHER)).status is Status.SUCCESS
    task = await tasks.task()
    assert task.status is (Status.FAILURE if kind == KIND else Status.SUBMITTED)
    assert (task.summary or "").startswith("InternalError: " if kind == KIND else "")


async def test_what_cannot_be_done_is_not_tried_again(tasks: Tasks) -> None:
    await tasks.hint()
    tasks.executor.steps = [fails(TaskFailed("no such thing"))]
    assert await tasks.run() == 1
    assert (await tasks.task()).status is Status.FAILURE
    assert tasks.executor.abandoned == ["no such thing"]


@pytest.mark.parametrize("clock_ms", [0, -10 * MINUTE])
async def test_a_worker_that_looks_while_a_task_is_submitted_again_leaves_its_hint(tasks: Tasks, clock_ms: int) -> None:
    """The hint is put first: until the new version is there the task is a failed one (docs/design/tasks.md#rule-2)."""
    await tasks.hint()
    tasks.executor.steps = [fails(TaskFailed("no such thing"))]
    await tasks.run()

    async def looks() -> None:
        tasks.runtime.ms -= clock_ms
        await tasks.run()

    tasks.runtime.ms += clock_ms  # the operator's clock is not the workers'
    tasks.store.rules = [Rule(put("/tasks/", b'"SUBMITTED"'), first=looks, times=1)]
    await retry_task(tasks.fixture.session(), ID, tasks.runtime)
    assert len(await tasks.hints()) == 1
    tasks.runtime.ms += 1
    assert await tasks.run() == 1
    assert ((await tasks.task()).status, await tasks.hints()) == (Status.SUCCESS, [])


async def test_a_hint_of_a_version_that_never_came_goes_when_it_is_old(tasks: Tasks) -> None:
    await tasks.hint()
    tasks.executor.steps = [fails(TaskFailed("no such thing"))]
    await tasks.run()
    tasks.runtime.ms += 1
    await tasks.hint()
    tasks.runtime.ms += 60 * MINUTE - 1
    await tasks.run()
    assert len(await tasks.hints()) == 1
    tasks.runtime.ms += 1
    await tasks.run()
    assert await tasks.hints() == []


async def test_any_hint_of_a_task_that_succeeded_goes_at_once(tasks: Tasks) -> None:
    """The hint of a done task: a worker that was rescheduling it has died, and another has executed it."""
    await tasks.hint()
    await tasks.run()
    tasks.runtime.ms += 1
    await tasks.hint()
    await tasks.run()
    assert await tasks.hints() == []


async def test_a_task_that_is_too_early_is_no_failure(tasks: Tasks) -> None:
    await tasks.hint()
    when = tasks.runtime.ms + 60 * MINUTE
    tasks.executor.steps = [fails(NotYet(when, "a transaction is in the way"))]
    assert await tasks.run() == 1
    assert ((await tasks.task()).attempts, await tasks.hints()) == (0, [when - tasks.runtime.ms])


async def test_a_hint_without_a_task_is_left_until_it_is_old(tasks: Tasks) -> None:
    tasks.named = False
    await tasks.hint()
    assert await tasks.run() == 0
    tasks.runtime.ms += 60 * MINUTE - 1
    await tasks.run()
    assert len(await tasks.hints()) == 1
    tasks.runtime.ms += 1
    await tasks.run()
    assert await tasks.hints() == []


async def test_before_a_hint_is_removed_the_registry_is_fenced_and_read_again(tasks: Tasks) -> None:
    """The drop that names the task may land at the last moment."""

    def lands() -> None:
        tasks.named = any(call.method == "put" and call.key.endswith("/manifest.json") for call in tasks.store.calls)

    tasks.then = lands
    await tasks.hint()
    tasks.runtime.ms += 60 * MINUTE
    assert await tasks.run() == 1
    assert (await tasks.task()).status is Status.SUCCESS


async def test_the_lease_is_renewed_while_the_work_goes_on(tasks: Tasks) -> None:
    async def long(execution: Execution) -> None:
        for _ in range(200):
            await tasks.runtime.sleep(15)
            execution.check()

    await tasks.hint()
    tasks.executor.steps = [long]
    assert await tasks.run() == 1
    assert (await tasks.task()).status is Status.SUCCESS
    assert (await tasks.task()).number > 50


async def test_progress_is_written_down_soon_where_there_is_any(tasks: Tasks) -> None:
    """A worker that is killed within seconds leaves it to the next one."""
    written: list[int] = []

    async def gets_on(execution: Execution) -> None:
        began = tasks.runtime.ms
        await execution.progress({"done": 2}, files=1)
        while execution.task.checkpoint != {"done": 2}:  # noqa: ASYNC110 - the heartbeat's time passes meanwhile
            await asyncio.sleep(0)
        written.append(tasks.runtime.ms - began)
        while tasks.runtime.ms - began < 300_000:  # noqa: ASYNC110
            await asyncio.sleep(0)

    await tasks.hint()
    tasks.executor.steps = [gets_on]
    assert await tasks.run() == 1
    assert written[0] <= 2_000
    assert (await tasks.task()).number < 20  # and no more often than every 30 seconds where there is none


async def test_a_worker_that_cannot_renew_its_lease_stops(tasks: Tasks) -> None:
    """An unknown renewal extends nothing (docs/design/tasks.md#rule-5)."""
    stopped: list[bool] = []

    async def endless(execution: Execution) -> None:
        tasks.store.rules = [Rule(put("/tasks/"), fails=DOWN)]
        try:
            for _ in range(1_000):
                await tasks.runtime.sleep(1)
        except asyncio.CancelledError:
            stopped.append(True)
            raise

    await tasks.hint()
    tasks.executor.steps = [endless]
    began = tasks.runtime.ms
    assert await tasks.run() == 1
    assert stopped == [True]
    assert tasks.runtime.ms - began <= 300_000
    assert (await tasks.task()).status is Status.RUNNING


async def test_a_worker_whose_guard_cannot_check_stops_when_its_lease_ends(tasks: Tasks) -> None:
    async def failing(_: Session) -> None:
        raise StoreUnavailable("HEAD can't be read")

    async def endless(execution: Execution) -> None:
        execution.guard = failing
        for _ in range(1_000):
            await tasks.runtime.sleep(1)

    await tasks.hint()
    tasks.executor.steps = [endless]
    began = tasks.runtime.ms
    assert await tasks.run() == 1
    assert tasks.runtime.ms - began <= 300_000
    assert (await tasks.task()).status is Status.RUNNING


async def test_a_version_of_ours_that_was_not_heard_of_is_gone_on_from(tasks: Tasks) -> None:
    async def unheard(execution: Execution) -> None:
        late = execution.task.renewed(record="late", checkpoint={})
        await append_task(tasks.fixture.session().state, late)
        await execution.save({"on": True})

    await tasks.hint()
    tasks.executor.steps = [unheard]
    assert await tasks.run() == 1
    assert (await tasks.task()).status is Status.SUCCESS


async def test_who_was_taken_over_does_nothing_more(tasks: Tasks) -> None:
    async def taken_over(execution: Execution) -> None:
        taken = execution.task.leased(record="another", at_ms=1, lease_ms=1)
        await append_task(tasks.fixture.session().state, taken)
        with pytest.raises(LeaseLost, match="taken the task over"):
            await execution.save({"on": True})
        raise LeaseLost("as a worker does")

    await tasks.hint()
    tasks.executor.steps = [taken_over]
    assert await tasks.run() == 1
    assert ((await tasks.task()).lease, (await tasks.task()).status) == ("another", Status.RUNNING)


async def test_after_a_clock_was_set_back_an_earlier_lease_is_waited_for(tasks: Tasks) -> None:
    """It looks expired, and its holder may count by another clock (docs/design/purge.md#rule-6)."""
    released: list[int] = []

    async def waits(execution: Execution) -> None:
        execution.require_earlier_leases_over()
        released.append(tasks.runtime.ms)

    first = Task.submitted(
        record="r", task=ID, kind=KIND, payload={}, at_ms=0, not_before_ms=tasks.runtime.ms - 60 * MINUTE
    )
    held = first.leased(record="other", at_ms=tasks.runtime.ms, lease_ms=5 * MINUTE)
    for version in (first, held):
        await append_task(tasks.fixture.session().state, version)
    tasks.runtime.ms -= 10 * MINUTE
    tasks.executor.steps = [waits, waits]
    began = tasks.runtime.ms
    await tasks.hint()
    await tasks.until_done()
    assert released[0] - began >= 5 * MINUTE


async def test_the_worker_after_a_stopped_one_waits_for_earlier_leases(tasks: Tasks) -> None:
    """The clock was set back, so the second worker waits for the first; the third knows of it by the record alone."""
    released: list[int] = []

    async def waits(execution: Execution) -> None:
        execution.require_earlier_leases_over()
        released.append(tasks.runtime.ms)

    async def a_minute(execution: Execution) -> None:
        await execution.save({"on": True})
        tasks.runtime.ms += MINUTE

    first = Task.submitted(
        record="r", task=ID, kind=KIND, payload={}, at_ms=0, not_before_ms=tasks.runtime.ms - 60 * MINUTE
    )
    held = first.leased(record="other", at_ms=tasks.runtime.ms, lease_ms=5 * MINUTE)
    for version in (first, held):
        await append_task(tasks.fixture.session().state, version)
    tasks.runtime.ms -= 10 * MINUTE
    began = tasks.runtime.ms
    await stopped_while(tasks, a_minute)
    assert (await tasks.task()).status is Status.RETRY_SCHEDULED
    tasks.runtime.ms += MINUTE
    tasks.executor.steps = [waits, waits]
    await tasks.until_done()
    assert 5 * MINUTE <= released[0] - began < 6 * MINUTE


async def stopped_while(tasks: Tasks, step: Callable[[Execution], Awaitable[None]]) -> None:
    """Runs a worker, and cancels it when the step has come to its `forever`."""
    reached = asyncio.Event()

    async def until_stopped(execution: Execution) -> None:
        await step(execution)
        reached.set()
        await asyncio.Event().wait()

    await tasks.hint()
    tasks.executor.steps = [until_stopped]
    running = asyncio.create_task(tasks.run())
    await reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def gets_further(execution: Execution) -> None:
    await execution.progress({"done": 7}, files=1)


async def gets_no_further(execution: Execution) -> None:
    execution.check()


async def test_a_worker_that_is_stopped_gives_the_task_back_and_the_next_goes_on_at_once(tasks: Tasks) -> None:
    await stopped_while(tasks, gets_further)
    task = await tasks.task()
    assert (task.status, task.attempts, task.checkpoint) == (Status.RETRY_SCHEDULED, 0, {"done": 7})
    assert await tasks.hints() == [0]
    assert await tasks.run() == 1
    assert (await tasks.task()).status is Status.SUCCESS
    assert await tasks.hints() == []


async def test_what_got_no_further_before_it_was_stopped_counts_as_lost(tasks: Tasks) -> None:
    for _ in range(3):
        await stopped_while(tasks, gets_no_further)
    assert ((await tasks.task()).attempts, tasks.executor.abandoned) == (3, [])
    assert await tasks.run() == 1
    assert ((await tasks.task()).status, len(tasks.executor.abandoned)) == (Status.FAILURE, 1)


async def test_a_task_that_cannot_be_given_back_is_taken_over_when_its_lease_has_run_out(tasks: Tasks) -> None:
    async def then_the_store_is_down(execution: Execution) -> None:
        tasks.store.rules = [Rule(put("/tasks/"), fails=DOWN)]

    await stopped_while(tasks, then_the_store_is_down)
    tasks.store.rules = []
    assert (await tasks.task()).status is Status.RUNNING
    assert await tasks.run() == 0
    tasks.runtime.ms += 5 * MINUTE
    assert await tasks.run() == 1
    assert (await tasks.task()).status is Status.SUCCESS


async def test_calls_of_a_worker_that_was_stopped_are_waited_for_before_anything_is_released(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were cancelled on their way, and may land for as long as a call may take."""
    monkeypatch.setattr("arco_catalog.tasks.worker.MARGIN_MS", 10 * MINUTE)
    released: list[int] = []

    async def waits(execution: Execution) -> None:
        execution.require_earlier_leases_over()
        released.append(tasks.runtime.ms)

    await stopped_while(tasks, gets_further)
    tasks.executor.steps = [waits, waits]
    stopped = tasks.runtime.ms
    await tasks.until_done()
    assert released[0] - stopped >= 10 * MINUTE


async def test_a_worker_that_waits_for_earlier_leases_makes_no_other_wait_for_its_own(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a purge would never end whose workers live a few seconds (docs/design/tasks.md#rule-8)."""
    monkeypatch.setattr("arco_catalog.tasks.worker.MARGIN_MS", 10 * MINUTE)
    released: list[int] = []

    async def waits(execution: Execution) -> None:
        execution.require_earlier_leases_over()
        released.append(tasks.runtime.ms)

    await stopped_while(tasks, gets_further)
    stopped = tasks.runtime.ms
    tasks.executor.steps = [waits, waits]
    assert await tasks.run() == 1
    task = await tasks.task()
    assert (task.status, task.attempts) == (Status.RETRY_SCHEDULED, 0)
    assert 10 * MINUTE <= task.next_run_ms - stopped < 11 * MINUTE
    tasks.runtime.ms = task.next_run_ms
    assert await tasks.run() == 1
    assert ((await tasks.task()).status, len(released)) == (Status.SUCCESS, 1)


async def test_who_is_to_do_one_task_waits_for_earlier_leases_and_holds_nothing_meanwhile(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses: list[Status] = []
    sleep = tasks.runtime.sleep

    async def looks(seconds: float) -> None:
        statuses.append((await tasks.task()).status)
        await sleep(seconds)

    async def waits(execution: Execution) -> None:
        execution.require_earlier_leases_over()

    monkeypatch.setattr("arco_catalog.tasks.worker.MARGIN_MS", 50_000)
    await stopped_while(tasks, gets_further)
    tasks.executor.steps = [waits, waits]
    monkeypatch.setattr(tasks.runtime, "sleep", looks)
    assert await tasks.worker().run_task(ID)
    assert (await tasks.task()).status is Status.SUCCESS
    assert Status.RETRY_SCHEDULED in statuses


async def test_other_workers_are_notified_when_a_task_is_due_again(tasks: Tasks) -> None:
    heard: list[tuple[str, int]] = []

    async def notify(root: str, in_ms: int) -> None:
        heard.append((root, in_ms))

    await tasks.hint()
    tasks.notify = notify
    early = NotYet(tasks.runtime.ms + 60 * MINUTE, "too early")
    tasks.executor.steps = [fails(early), fails(Unavailable("the store is down"))]
    await tasks.run()
    assert heard == [("wh", early.when_ms - tasks.runtime.ms)]
    tasks.runtime.ms += 60 * MINUTE
    await tasks.run()
    assert heard[1:] == [("wh", 30_000)]


async def test_a_worker_counts_what_it_met_and_did(tasks: Tasks) -> None:
    await tasks.hint()
    first = await tasks.submission(tasks.fixture.session(), ID)
    assert first is not None
    await append_task(tasks.fixture.session().state, first)
    tasks.runtime.ms += 7 * MINUTE
    tasks.executor.steps = [fails(Unavailable("the store is down"))]
    worker = tasks.worker()
    assert await worker.run_until_idle() == 1
    assert worker.stats.to_json() == {
        "executed": 1,
        "completed": 0,
        "failed": 0,
        "retried": 1,
        "given_back": 0,
        "leases_lost": 0,
        "oldest_due_ms": 7 * MINUTE,
        "stopped": False,
    }
    tasks.runtime.ms += 60 * MINUTE
    assert await worker.run_until_idle() == 1
    assert (worker.stats.completed, worker.stats.oldest_due_ms) == (1, 60 * MINUTE - 30_000)


async def test_a_task_with_a_worker_does_not_count_as_waiting_and_a_lost_one_does(tasks: Tasks) -> None:
    await tasks.hint()
    first = await tasks.submission(tasks.fixture.session(), ID)
    assert first is not None
    for version in (first, first.leased(record="dead", at_ms=tasks.runtime.ms, lease_ms=5 * MINUTE)):
        await append_task(tasks.fixture.session().state, version)
    worker = tasks.worker()
    tasks.runtime.ms += 4 * MINUTE
    await worker.run_due(lambda: False)
    assert worker.stats.oldest_due_ms == 0
    tasks.runtime.ms += MINUTE
    await worker.run_due(lambda: False)
    assert (worker.stats.leases_lost, worker.stats.oldest_due_ms) == (1, 5 * MINUTE)
