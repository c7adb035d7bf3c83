"""The execution of a task, which a worker and an executor share: the lease, sessions that end with it, and the next
versions of the task (docs/design/tasks.md#rule-7)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.task import LEASED, Task, name_in_log
from arco_catalog.state.task_log import append_task, read_task
from arco_catalog.tasks.lease import MARGIN_MS, Lease, LeaseLost
from arco_catalog.tasks.work_stats import WorkStats
from storage_backends import StoreError
from storage_backends.lazy_dataclass import dataclass

_LOG = logging.getLogger(__name__)

RENEW_AFTER_MS = 30_000
RENEW_AFTER_FILES = 10_000
FIRST_PROGRESS_MS = 1_000
"""The time after which a worker first stores a checkpoint. The next times are twice as long each."""
LATER_MS = 3_000
"""A task is scheduled for this time after the end of earlier leases: the version is written a moment after the time is
computed, and stores round times to whole seconds."""
PRINCIPAL = "tasks"

Guard = Callable[[Session], Awaitable[None]]
"""Checks with each renewal of a lease whether the work may continue. Raises `LeaseLost` if not."""


class TaskFailed(Exception):
    """A background task failed for a reason that another attempt would meet again, so it is not retried."""


class NoProgress(Exception):
    """An attempt at a background task failed, and counts as failed even if it has changed the checkpoint. Other
    failures after a new checkpoint reset the count of failed attempts."""


class NotYet(Exception):
    """It is too early for a background task. It is scheduled for `when_ms`, a time of the store's clock in
    milliseconds, and the attempt does not count as failed."""

    def __init__(self, when_ms: int, reason: str) -> None:
        super().__init__(reason)
        self.when_ms = when_ms


class EarlierLeases(NotYet):
    """The rest of a background task must wait until the earlier leases of the task are over."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of a background task that is over: a summary in one sentence, and details; of a failed one the reason,
    and no details."""

    summary: str
    details: JsonObject


class Sessions(Protocol):
    """The interface of what opens sessions for work on a background task, as long as a lease of the task allows it."""

    def session(self) -> Session:
        """Returns a session for work on a background task whose calls end before the lease of the task does. Raises
        `LeaseLost` if the lease is over."""
        ...


@dataclass(frozen=True, slots=True)
class OneSession:
    """The `Sessions` of work that is no task: always one session, with calls that end at the deadline of the session's
    request."""

    shared: Session

    def session(self) -> Session:
        """Returns the one session, without checking a lease or the deadline."""
        return self.shared


class Executor(Protocol):
    """The interface of what executes the background tasks of one type."""

    def takes(self, task: Task) -> bool:
        """Whether this executor can execute a background task. If not, the task is left to other workers."""
        ...

    async def execute(self, execution: "Execution") -> TaskResult:
        """Continues a background task from the last checkpoint, and returns the result when it is over. Raises
        `TaskFailed`, `NotYet` and `LeaseLost`; any other exception makes the attempt fail, and the task is retried
        until no attempt is left. If the attempt has saved a new checkpoint, the count of failed attempts starts at 0,
        unless the exception is a `NoProgress`."""
        ...

    async def abandon(self, execution: "Execution", reason: str) -> None:
        """Makes the changes that a background task which has failed for good requires before it ends; `reason` is why
        it failed. Raises `LeaseLost`; after this or any other exception the task has not ended, and under another lease
        it is executed again, or abandoned again if no attempt is left."""
        ...


class Execution:
    """The execution of a background task under one lease. `taken_ms` is a time of the store's clock at which the lease
    had begun. For `quiet_ms` from then on, the worker of an earlier lease may still act on that lease. `stats` returns
    the statistics that the worker reports next, in which an executor counts what it did."""

    def __init__(
        self,
        catalog: Catalog,
        task: Task,
        lease: Lease,
        taken_ms: int,
        quiet_ms: int,
        stats: Callable[[], WorkStats] = WorkStats,
    ) -> None:
        self.catalog = catalog
        self.runtime = catalog.runtime
        self.task = task
        self.taken_ms = taken_ms
        self.guard: Guard | None = None
        self.stats = stats
        self._lease = lease
        self._began = lease
        self._quiet_ms = quiet_ms
        self._checkpoint = task.checkpoint
        self._files = 0
        self._lock = asyncio.Lock()

    @property
    def number(self) -> int:
        """The number of the task's version with which this lease began. Fences of this lease contain it."""
        return self.task.lease_number

    @property
    def checkpoint(self) -> JsonObject:
        """The last checkpoint of the task's work, which may not be stored yet."""
        return self._checkpoint

    def check(self) -> None:
        """Raises `LeaseLost` once the lease of the task is over, by the clocks of this machine; reads nothing."""
        self._lease.check()

    def session(self) -> Session:
        """Returns a session for the task's work whose calls end with the lease of the task. Raises `LeaseLost` if the
        lease is over."""
        left_ms = self._lease.left_ms()
        if left_ms <= 0:
            raise LeaseLost("the lease of the task has run out, or the machine's clock was set back since it began")
        return task_session(self.catalog, self.task.id, self.runtime.now_ms() + left_ms)

    def require_earlier_leases_over(self) -> None:
        """Raises `EarlierLeases` while the worker of an earlier lease may still act, or a call of it may still arrive.
        The task is then scheduled for later, so that no worker must wait. At that time calls of the present lease have
        ended, too, so that the next worker need not wait for them. Raises `LeaseLost` instead if the present lease is
        over by then; without an earlier lease it returns without a look at the present one."""
        left_ms = self._quiet_left_ms()
        if left_ms > 0:
            when_ms = self.session().now_ms() + max(left_ms, MARGIN_MS) + LATER_MS
            raise EarlierLeases(when_ms, "the rest of the task waits for the end of the leases of earlier workers")

    def _quiet_left_ms(self) -> int:
        """Returns for how many milliseconds the worker of an earlier lease of the task may still act; 0 if it
        can't any more."""
        return max(0, self._quiet_ms - self._began.elapsed_ms())

    async def start(self) -> None:
        """Stores the task with the status `RUNNING` at the start of the work, and so renews the lease. Raises
        `LeaseLost`, and `StoreError`."""
        await self.advance(lambda task: task.running(record=self.runtime.ulid(), at_ms=self.runtime.now_ms()))

    async def save(self, checkpoint: JsonObject) -> None:
        """Sets the task's checkpoint, and stores it by a renewal of the lease; returns when it is durable. Raises
        `LeaseLost`, and `StoreError`."""
        self._checkpoint = checkpoint
        await self.renew()

    async def progress(self, checkpoint: JsonObject, files: int) -> None:
        """Sets a checkpoint, which the next renewal of the lease stores, and counts `files`. Once `RENEW_AFTER_FILES`
        files or more were counted since the last renewal, it renews the lease at once, and raises as `renew` does."""
        self._checkpoint = checkpoint
        self._files += files
        if self._files >= RENEW_AFTER_FILES:
            await self.renew()

    async def renew(self) -> None:
        """Calls the guard if there is one, and then renews the lease of the task by storing its next version with the
        last checkpoint. Raises `LeaseLost`, also from the guard, and `StoreError` if the store fails, also in the
        guard, or the outcome is unknown: the lease then keeps its old end (docs/design/tasks.md#rule-5)."""
        self._files = 0
        if self.guard is not None:
            await self.guard(self.session())  # first, so that no lease goes on whose guard can't check
        await self.advance(lambda task: task.renewed(record=self.runtime.ulid(), checkpoint=self._checkpoint))

    async def advance(self, make: Callable[[Task], Task]) -> None:
        """Stores the next version of the task, which `make` returns for the last one, and so renews the lease. Raises
        `LeaseLost` if the lease is over, another worker has the task, or the task is over, was scheduled or deleted,
        and `StoreError` if the store fails or the outcome is unknown."""
        async with self._lock:
            while True:
                session = self.session()
                lease = Lease.from_now(self.runtime, self._lease.length_ms)
                made = make(self.task).quiet(self._quiet_left_ms())
                if await append_task(session.state, made) is not None:
                    self.task, self._lease = made, lease
                    return
                stored = await read_task(session.state, self.task.id)
                if stored is None or stored.task.lease != self.task.lease:
                    raise LeaseLost("another worker has taken the task over, or the task was deleted")
                # The lease is ours, so this process has written the version, in a write whose outcome was unknown.
                if stored.task.status not in LEASED:
                    raise LeaseLost(
                        f"the worker has given up the lease of the task: the status of the task is {stored.task.status}"
                    )
                self.task = stored.task

    async def heartbeat(self) -> None:
        """Renews the lease in a loop that does not end, every `RENEW_AFTER_MS`, or every eighth of a short lease. Early
        in a lease it renews sooner if there is a new checkpoint to store, because a worker that is killed within
        seconds would leave none otherwise. Logs a `StoreError` of a renewal or of the guard, and retries. Raises
        `LeaseLost` when the lease is over or lost to another worker, or when the guard raises it. Any other error of
        the guard or a renewal is raised, too, such as `InternalError` for a corrupt version of the task."""
        every_ms = min(RENEW_AFTER_MS, self._lease.length_ms // 8)
        young_ms = FIRST_PROGRESS_MS
        while True:
            left_ms = every_ms - self._lease.elapsed_ms()
            pause_ms = min(young_ms, left_ms if left_ms > 0 else every_ms, self._lease.left_ms())
            await self.runtime.sleep(max(pause_ms, 0) / 1000)
            self.check()
            young_ms *= 2
            if self._lease.elapsed_ms() < every_ms and self._checkpoint == self.task.checkpoint:
                continue
            try:
                await self.renew()
            except StoreError as error:  # the lease has its old end, before which the loop tries again
                _LOG.warning(
                    "the store did not confirm the renewal of the lease of %s, or the check before it failed; the "
                    "worker tries both again before the lease ends: %s",
                    name_in_log(self.task),
                    error,
                )


def task_session(catalog: Catalog, task: str, deadline_ms: int) -> Session:
    """Returns a session of this catalog for work on a task, with a deadline by the machine's clock, as the principal
    `PRINCIPAL` and without checks of privileges."""
    source: JsonObject = {"kind": "Task", "task": task}
    request = OperationRequest("TASK", f"tasks/{task}", "", None, PRINCIPAL, source, deadline_ms)
    return catalog.session(request, ALLOW_ALL)
