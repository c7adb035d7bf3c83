"""Finds due tasks of a catalog and executes them, by the executors of their types (docs/design/tasks.md#tasks)."""

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import dumps
from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.evidence import fence_registry
from arco_catalog.state.task import ENDED, LEASED, Status, Task, name_in_log
from arco_catalog.state.task_log import (
    Hint,
    StoredTask,
    append_task,
    due_hints,
    put_hint,
    read_task,
    remove_hint,
)
from arco_catalog.tasks.execution import (
    EarlierLeases,
    Execution,
    Executor,
    NoProgress,
    NotYet,
    TaskFailed,
    TaskResult,
    task_session,
)
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.tasks.lease import MARGIN_MS, ROUNDED_MS, Lease, LeaseLost
from arco_catalog.tasks.left_to_others import LeftToOthers
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.work_stats import WorkStats
from storage_backends import StoreError

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

CALLS_MS = 60_000
"""The timeout of the calls before and after an execution."""
SHORT_WAIT_MS = 60_000
"""The maximum wait of `run_task` for earlier leases."""
TASKS_AT_ONCE = 2
"""Maximum number of tasks that are executed concurrently: one may take hours, while the others follow one another."""
GIVE_BACK_SECONDS = 5.0
"""The time in which a cancelled worker may give the task back."""

Submission = Callable[[Session, str], Awaitable[Task | None]]
"""Returns the first version of a task that the registry names; None if the registry does not name the task."""
Preparation = Callable[[Session], Awaitable[None]]
"""Makes the tasks that a worker makes by itself, such as one a day. Raises `StoreError`, and `CatalogError`."""
Feeding = Callable[[FeedStats], Awaitable[int]]
"""Enters changes into the event feed, counts them, and returns the number of tasks that it created. Raises nothing
because of the store or its records."""


class Worker:
    """Executes the due tasks of one catalog, by `executors` for their types. Where it is to execute all of them, it
    makes a `preparation` before, and fills the event feed at the same time, if it has `feeding`. A worker that is
    cancelled gives its present tasks back to other workers (docs/design/tasks.md#rule-8)."""

    def __init__(
        self,
        catalog: Catalog,
        executors: Mapping[str, Executor],
        submission: Submission,
        policies: TaskPolicies,
        preparation: Preparation | None = None,
        feeding: Feeding | None = None,
    ) -> None:
        self._catalog = catalog
        self._runtime = catalog.runtime
        self._executors = executors
        self._submission = submission
        self._preparation = preparation
        self._feeding = feeding
        self._policies = policies
        self._left = LeftToOthers(catalog.runtime)
        self._slots = asyncio.Semaphore(TASKS_AT_ONCE)
        self._read: dict[str, Task] = {}
        """Tasks of hints that are being followed, by id. The log names them if a later step fails."""
        self._waits_until_ms: dict[str, int] = {}
        """The times until which tasks wait for earlier leases, by id, if that is soon."""
        self.stats = WorkStats()

    @property
    def warehouse(self) -> str:
        """The name of the worker's catalog."""
        return self._catalog.settings.warehouse

    def take_stats(self) -> WorkStats:
        """Returns the statistics of this worker since the last call, and begins new ones."""
        stats, self.stats = self.stats, WorkStats()
        return stats

    async def run_until_idle(self) -> int:
        """Makes the tasks that this worker makes by itself, and then fills the event feed, if it is to, and
        concurrently executes due tasks, until it has gone through all due hints without executing any: tasks may be
        left that it can't execute, or that met errors. Returns how many executions it made. Raises `StoreError` if the
        hints can't be listed; errors of the store or catalog in one task are only logged."""
        await self._prepare()
        executed, created = await gather(self._run_all_due(), self.feed())  # to fill a feed may take minutes
        return executed + (await self._run_all_due() if created else 0)

    async def _run_all_due(self) -> int:
        """Executes due tasks until none is executed any more. Returns and raises as `run_until_idle` does."""
        executed = 0
        while (now := await self.run_due(lambda: False)) > 0:
            executed += now
        return executed

    async def feed(self) -> int:
        """Enters changes into the catalog's event feed, if this worker is to, at best effort, and counts them in the
        statistics. Returns the number of tasks that were created, or found, to deliver events."""
        return 0 if self._feeding is None else await self._feeding(self.stats.feed)

    async def _prepare(self) -> None:
        """Makes the tasks that this worker makes by itself, such as one a day, if it has a `preparation`. A
        `StoreError` or `CatalogError` is only logged."""
        if self._preparation is None:
            return
        try:
            await self._preparation(self._session("preparation"))
        except (StoreError, CatalogError) as error:
            _LOG.warning(
                "the daily tasks of catalog %s can't be made, and a later poll tries again: %s", self.warehouse, error
            )

    async def run_due(self, should_stop: Callable[[], bool]) -> int:
        """Executes the due tasks, the oldest first, `TASKS_AT_ONCE` of them concurrently, so that a long task delays no
        other. It begins no task once `should_stop` returns true. Returns how many executions it made. Raises
        `StoreError` if the hints can't be listed; errors of the store or catalog in one task are only logged."""
        executed = 0
        hints, listing = self._due_hints(), asyncio.Lock()

        async def follow() -> None:
            nonlocal executed
            while not should_stop():
                async with listing:
                    hint = await anext(hints, None)
                if hint is None:
                    break
                if await self._follow(hint):
                    executed += 1

        async with aclosing(hints):
            await gather(*(follow() for _ in range(TASKS_AT_ONCE)))
        return executed

    async def _due_hints(self) -> AsyncGenerator[Hint, None]:
        """Yields all due hints, the oldest first, and records at the end in the statistics how many tasks are due and
        scheduled. A page is listed only after the hints of the one before. Raises `StoreError`."""
        due = await due_hints(self._session("open").state)
        count = 0
        while True:
            count += len(due.hints)
            for hint in due.hints:
                yield hint
            if due.after is None:
                self.stats.due, self.stats.scheduled = count, due.scheduled
                break
            due = await due_hints(self._session("open").state, due.after)

    async def _follow(self, hint: Hint) -> bool:
        """Executes the task of a hint if it is due, unless the task was left to other workers recently. Returns whether
        the task was executed. Logs errors of the store or catalog, and returns false for them. Records in the
        statistics for how long a task that was left or failed so has been due."""
        if hint in self._left:
            self.stats.waits(hint.now_ms - hint.not_before_ms)
            return False
        try:
            async with self._slots:
                return await self.meet(hint)
        except (StoreError, CatalogError) as error:
            self.stats.waits(hint.now_ms - hint.not_before_ms)
            read = self._read.get(hint.task)
            _LOG.warning(
                "%s could not be read, executed or written, or a hint of it not changed, because of an error, and a "
                "later poll tries it again: %s",
                f"task {hint.task}" if read is None else name_in_log(read),
                error,
            )
            return False
        finally:
            self._read.pop(hint.task, None)

    async def run_task(self, task: str) -> bool:
        """Executes one task now, if it is due and has no worker. If the rest of it must wait for earlier leases for at
        most `SHORT_WAIT_MS`, this waits without a lease and continues. Returns whether the task was executed; false
        also if it does not exist. Raises `StoreError`, and `CatalogError`."""
        executed = False
        while True:
            stored = await self._submitted(self._session(task), task)
            if stored is None or stored.task.status in ENDED or not await self._take(stored):
                return executed
            executed = True
            if (until_ms := self._waits_until_ms.pop(task, None)) is None:
                return executed
            await self._runtime.sleep(max(0, until_ms - self._session(task).now_ms()) / 1000)

    async def meet(self, hint: Hint) -> bool:
        """Executes the task of a hint if it is due and has no worker. Returns whether the task was executed. A hint of
        an ended task is removed unless it may announce a new version, and one whose task was scheduled for later is
        replaced. An old hint of a task that does not exist is removed after a fence of the registry. Raises
        `StoreError`, and `CatalogError`."""
        session = self._session(hint.task)
        stored = await self._submitted(session, hint.task)
        if stored is None:
            if not hint.is_old:
                return False
            # A commit that names the task may still be running. After this fence it can't apply any more.
            await fence_registry(session)
            stored = await self._submitted(session, hint.task)
            if stored is None:
                await remove_hint(session.state, hint.key)
                return False
        self._read[hint.task] = stored.task
        if stored.task.status in ENDED:
            if hint.is_of_the_past(stored.task):
                await remove_hint(session.state, hint.key)
            return False
        if stored.task.next_run_ms > hint.not_before_ms:  # the task was scheduled for later: replace the hint
            await put_hint(session.state, hint.task, stored.task.next_run_ms)
            await remove_hint(session.state, hint.key)
        return await self._take(stored)

    async def _submitted(self, session: Session, task: str) -> StoredTask | None:
        """Reads a task and returns the last version. If it has none yet, but the registry names it, it first stores the
        first version. Returns None if there is no such task in either."""
        stored = await read_task(session.state, task)
        if stored is not None:
            return stored
        first = await self._submission(session, task)
        if first is None:
            return None
        await append_task(session.state, first)
        return await read_task(session.state, task)

    async def _take(self, stored: StoredTask) -> bool:
        """Leases and executes a task if it is due, has no worker, and this worker can execute it; lets it fail if it
        has no attempts left. Returns whether it leased the task: False also if another worker was faster. Counts in the
        statistics. A task that the executor does not take is left to other workers for a time. A worker that is
        cancelled during that gives the task back, and one that loses the lease only logs that."""
        task = stored.task
        if stored.is_held or task.next_run_ms > stored.now_ms:
            return False
        self.stats.waits(stored.now_ms - task.next_run_ms)
        executor = self._executors.get(task.kind)
        if executor is None:
            _LOG.error(
                "%s waits: this version of the program can't execute tasks of the type %s", name_in_log(task), task.kind
            )
            return False
        if not executor.takes(task):
            self._left.add(task)
            return False
        lease_ms, policy = self._policies.lease_ms, self._policies.of(task.kind)
        lease = Lease.from_now(self._runtime, lease_ms)
        quiet_ms = _quiet_ms(stored)
        taken = task.leased(record=self._runtime.ulid(), at_ms=self._runtime.now_ms(), lease_ms=lease_ms).quiet(
            quiet_ms
        )
        taken_ms = await append_task(self._session(task.id).state, taken)
        if taken_ms is None:
            return False
        self.stats.executed += 1
        self._waits_until_ms.pop(task.id, None)
        if taken.status is task.status:
            self.stats.leases_lost += 1
            _LOG.warning(
                "%s is taken over, and continues if it has attempts left: its last worker let the lease run out",
                name_in_log(task),
            )
        execution = Execution(self._catalog, taken, lease, taken_ms, quiet_ms, lambda: self.stats)
        try:
            if taken.attempts >= policy.max_attempts:
                await self._fail(execution, executor, f"{taken.attempts} attempts failed or were lost", None)
            else:
                await self._execute(execution, executor)
        except LeaseLost as lost:
            _LOG.warning(
                "this worker lost the lease of %s, which other workers continue unless it is over: %s",
                name_in_log(task),
                lost,
            )
        except asyncio.CancelledError:
            giving_back = asyncio.create_task(self._give_back(execution))
            await asyncio.wait([giving_back], timeout=GIVE_BACK_SECONDS)
            giving_back.cancel()
            raise
        return True

    async def _give_back(self, execution: Execution) -> None:
        """Saves the checkpoint and schedules the task for now, so that another worker can continue it at once. Does
        nothing if the task is over or scheduled. If it fails, it logs that, and other workers wait for the end of the
        lease. An attempt without a new checkpoint counts as failed. This never ends the task: the next worker does, if
        no attempts are left, so that a task with a step for which no worker has enough time ends as failed."""
        if execution.task.status not in LEASED:
            return
        try:
            await execution.save(execution.checkpoint)
            now_ms = execution.session().now_ms()
            await self._schedule(execution, now_ms, execution.task.failed_attempts(), "Its worker was stopped", None)
            self.stats.given_back += 1
        except (LeaseLost, StoreError, CatalogError) as error:
            name = name_in_log(execution.task)
            _LOG.warning(
                "the lease of %s was not given back, so other workers wait until it ends, unless it is over: %s",
                name,
                error,
            )

    async def _execute(self, execution: Execution, executor: Executor) -> None:
        """Executes a task within its lease, and stores the result: success, failure, or when it runs again, of which it
        notifies other workers. Raises `LeaseLost`, and saves no result, if the lease is lost; also raises as
        `_schedule`, `_end` and `_fail` do."""
        try:
            finished = await _while_leased(execution, executor.execute(execution))
        except LeaseLost:
            raise
        except NotYet as early:
            await self._schedule(execution, early.when_ms, execution.task.attempts, str(early), None)
            in_ms = early.when_ms - self._session(execution.task.id).now_ms()
            if isinstance(early, EarlierLeases) and in_ms <= SHORT_WAIT_MS:
                self._waits_until_ms[execution.task.id] = early.when_ms
            await self._notify(in_ms)
        except TaskFailed as failed:
            await self._fail(execution, executor, str(failed), None)
        except Exception as error:
            await self._retry(execution, executor, error)
        else:
            if execution.task.status is not Status.RUNNING:
                await execution.start()
            await self._end(execution, Status.SUCCESS, finished)

    async def _retry(self, execution: Execution, executor: Executor, error: Exception) -> None:
        """Schedules the next attempt at a task after a failed one, and notifies other workers, or ends the task as
        failed if it has no attempts left. If the attempt has saved a new checkpoint, the count of failed attempts
        starts at 0, unless the error is a `NoProgress`. Logs an error that is none of the store or catalog."""
        policy = self._policies.of(execution.task.kind)
        counts = isinstance(error, NoProgress)
        failed = execution.task.attempts + 1 if counts else execution.task.failed_attempts()
        summary = f"{type(error).__name__}: {error}"
        extended = "".join(traceback.format_exception(error))
        if not isinstance(error, StoreError | CatalogError):
            _LOG.error(
                "an attempt at %s failed unexpectedly, and another follows if attempts are left",
                name_in_log(execution.task),
                exc_info=error,
            )
        if failed >= policy.max_attempts:
            await self._fail(execution, executor, summary, extended)
        else:
            self.stats.retried += 1
            pause_ms = policy.backoff_ms(failed)
            await self._schedule(execution, execution.session().now_ms() + pause_ms, failed, summary, extended)
            await self._notify(pause_ms)

    async def _notify(self, in_ms: int) -> None:
        """Notifies other workers of this catalog that a task is due `in_ms` from now, because this process may end
        before. Does nothing if workers find tasks only by polling."""
        if (notify := self._catalog.notify_workers) is not None:
            await notify(self._catalog.paths.root, max(0, in_ms))

    async def _schedule(
        self, execution: Execution, when_ms: int, attempts: int, summary: str, extended: str | None
    ) -> None:
        """Stores the hint for another run of the task at `when_ms`, then the version `RETRY_SCHEDULED`, which gives up
        the lease, with the count of failed `attempts` and the reason, and then removes the hint of the run before.
        Raises as `Execution.advance` does."""
        task, state = execution.task, execution.session().state
        await put_hint(state, task.id, when_ms)
        await execution.advance(
            lambda task: task.scheduled(
                record=self._runtime.ulid(),
                at_ms=self._runtime.now_ms(),
                next_run_ms=when_ms,
                attempts=attempts,
                summary=summary,
                extended=extended,
            )
        )
        if task.next_run_ms != when_ms:
            await self._remove_hint(task)

    async def _fail(self, execution: Execution, executor: Executor, reason: str, extended: str | None) -> None:
        """Logs that the task has failed, has the executor abandon it, within the lease, and stores the version with
        which it has failed for good, with the `reason` and the details `extended`. Raises `LeaseLost`, and as `abandon`
        does: then the task has not ended. Also raises as `_end` does: after a `StoreError` of that it may be over."""
        _LOG.error(
            "%s has failed, and no worker retries it once the failure is saved: %s",
            name_in_log(execution.task),
            reason,
        )
        await _while_leased(execution, executor.abandon(execution, reason))
        await self._end(execution, Status.FAILURE, TaskResult(reason, {}), extended)

    async def _end(
        self, execution: Execution, status: Status, finished: TaskResult, extended: str | None = None
    ) -> None:
        """Stores the last version of the task, with the status and result, counts it, and then removes the hint. Raises
        as `Execution.advance` does."""
        details = dumps(finished.details).decode() if finished.details else extended
        await execution.advance(
            lambda task: task.ended(
                record=self._runtime.ulid(),
                at_ms=self._runtime.now_ms(),
                status=status,
                summary=finished.summary,
                extended=details,
            )
        )
        self.stats.completed += status is Status.SUCCESS
        self.stats.failed += status is Status.FAILURE
        await self._remove_hint(execution.task)

    async def _remove_hint(self, task: Task) -> None:
        """Removes the hint of a task's last scheduled run, at best effort: a worker that reads it later removes it."""
        state = self._session(task.id).state
        with suppress(StoreError):
            await remove_hint(state, state.paths.open_task(task.id, task.next_run_ms))

    def _session(self, task: str) -> Session:
        """Returns a session for one task, or for the work that `task` names, which ends `CALLS_MS` from now."""
        return task_session(self._catalog, task, self._runtime.now_ms() + CALLS_MS)


def _quiet_ms(stored: StoredTask) -> int:
    """Returns for how many milliseconds the worker of an earlier lease of a task may still act on that lease, or a call
    of it may still arrive; 0 if the task has had no lease. This follows from the last lease, and from the `quiet_ms`
    that its worker stored about the leases before."""
    task, age_ms = stored.task, stored.now_ms - stored.written_ms
    if task.lease is None:
        return 0
    passed_ms = max(0, age_ms - ROUNDED_MS)
    stored_ms = task.quiet_ms - passed_ms
    if task.status in LEASED:
        # The lease counts as expired. If the reason is a clock that was set back, it may still last its whole length.
        return max(0, stored_ms, task.lease_ms if age_ms < 0 else 0)
    return max(0, stored_ms, MARGIN_MS - passed_ms)


async def _while_leased(execution: Execution, work: Coroutine[Any, Any, T]) -> T:
    """Runs work, renews the lease concurrently, and returns the result of the work or raises the error of it. If the
    lease is lost, or the renewals end with another error, the work is cancelled and `LeaseLost` or that error is
    raised."""
    try:
        async with asyncio.TaskGroup() as group:
            heartbeat = group.create_task(execution.heartbeat())
            result = await work
            heartbeat.cancel()
    except BaseExceptionGroup as failures:
        lost = next((each for each in failures.exceptions if isinstance(each, LeaseLost)), None)
        raise lost or failures.exceptions[0] from None
    return result
