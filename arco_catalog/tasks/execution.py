"""What a worker and the executor of a task have in common: the lease, sessions that end with it, and the next versions
of the task (docs/design/tasks.md#rule-7)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.task import LEASED, Task, name_in_log
from arco_catalog.state.task_log import append_task, read_task
from arco_catalog.tasks.lease import MARGIN_MS, Lease, LeaseLost
from storage_backends import StoreError

_LOG = logging.getLogger(__name__)

RENEW_AFTER_MS = 30_000
RENEW_AFTER_FILES = 10_000
FIRST_PROGRESS_MS = 1_000
"""After how long a worker first writes down what it has done; then after twice as long, and so on."""
LATER_MS = 3_000
"""How much later than earlier leases end a task is looked at again: its version is written a moment after its time is
reckoned, and times of stores are whole seconds."""
PRINCIPAL = "tasks"

Guard = Callable[[Session], Awaitable[None]]
"""Whether the work may go on, asked with each renewal. Raises `LeaseLost`."""


class TaskFailed(Exception):
    """The task can't be done, and trying again would not help."""


class NoProgress(Exception):
    """A failure by which an attempt counts, whatever was written into the checkpoint meanwhile."""


class NotYet(Exception):
    """It is too early for the task: it is looked at again at `when_ms`, and no attempt has failed."""

    def __init__(self, when_ms: int, reason: str) -> None:
        super().__init__(reason)
        self.when_ms = when_ms


class EarlierLeases(NotYet):
    """All that is left to do has to wait until earlier leases have run out."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The task is done: in a sentence, and in detail."""

    summary: str
    details: JsonObject


class Sessions(Protocol):
    """Whoever reads or writes for a task, for as long as that is allowed."""

    def session(self) -> Session:
        """A way to the store whose calls end when that does. Raises `LeaseLost`."""
        ...


class Executor(Protocol):
    """Does the tasks of one type."""

    def takes(self, task: Task) -> bool:
        """Whether it can do this one. If not, it is left to others, untouched."""
        ...

    async def execute(self, execution: "Execution") -> Finished:
        """Goes on from the checkpoint until the task is done. Raises `TaskFailed`, `NotYet` and `LeaseLost`; anything
        else is a failed attempt, which is made again."""
        ...

    async def abandon(self, execution: "Execution", reason: str) -> None:
        """Leaves behind what a failed task is to leave. Raises as `execute` does, `TaskFailed` excepted."""
        ...


class Execution:
    """One lease of a task. `taken_ms` is a time by the store's clock at which the lease had begun; `quiet_ms` is how
    long, from then on, the holder of an earlier lease may still believe in it."""

    def __init__(self, catalog: Catalog, task: Task, lease: Lease, taken_ms: int, quiet_ms: int) -> None:
        self.catalog = catalog
        self.runtime = catalog.runtime
        self.task = task
        self.taken_ms = taken_ms
        self.guard: Guard | None = None
        self._lease = lease
        self._began = lease
        self._quiet_ms = quiet_ms
        self._checkpoint = task.checkpoint
        self._files = 0
        self._lock = asyncio.Lock()

    @property
    def number(self) -> int:
        """The version with which this lease began: what a fence of it is known by."""
        return self.task.lease_number

    @property
    def checkpoint(self) -> JsonObject:
        """How far the work is."""
        return self._checkpoint

    def check(self) -> None:
        """Raises `LeaseLost` once the lease is over."""
        self._lease.check()

    def session(self) -> Session:
        """A way to the store whose calls end with the lease. Raises `LeaseLost`."""
        left_ms = self._lease.left_ms()
        if left_ms <= 0:
            raise LeaseLost("the lease has run out")
        return task_session(self.catalog, self.task.id, self.runtime.now_ms() + left_ms)

    def require_earlier_leases_over(self) -> None:
        """Raises `EarlierLeases` while somebody may believe in an earlier lease, or a call of one be on its way: the
        task is given back until then, so that no worker has to live that long. By then the time of a call has passed
        since this lease, too, so that whoever comes next waits for none. Raises `LeaseLost`."""
        left_ms = self._quiet_left_ms()
        if left_ms > 0:
            when_ms = self.session().now_ms() + max(left_ms, MARGIN_MS) + LATER_MS
            raise EarlierLeases(when_ms, "what remains waits for earlier leases to run out")

    def _quiet_left_ms(self) -> int:
        return max(0, self._quiet_ms - self._began.elapsed_ms())

    async def start(self) -> None:
        """The work itself begins: the task is `RUNNING` from now on. Raises `LeaseLost`, and `StoreError`."""
        await self.advance(lambda task: task.running(record=self.runtime.ulid(), at_ms=self.runtime.now_ms()))

    async def save(self, checkpoint: JsonObject) -> None:
        """Writes a checkpoint, and returns when it is durable. Raises `LeaseLost`, and `StoreError`."""
        self._checkpoint = checkpoint
        await self.renew()

    async def progress(self, checkpoint: JsonObject, files: int) -> None:
        """Takes note of a checkpoint, which the next renewal writes; after so many files that is now."""
        self._checkpoint = checkpoint
        self._files += files
        if self._files >= RENEW_AFTER_FILES:
            await self.renew()

    async def renew(self) -> None:
        """Makes the lease last longer. Raises `LeaseLost`, and `StoreError` if that is not known to have been done: the
        lease then ends when it did (docs/design/tasks.md#rule-5)."""
        self._files = 0
        await self.advance(lambda task: task.renewed(record=self.runtime.ulid(), checkpoint=self._checkpoint))
        if self.guard is not None:
            await self.guard(self.session())

    async def advance(self, make: Callable[[Task], Task]) -> None:
        """Makes the next version of the task, and with it the lease longer. Raises as `renew` does."""
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
                    raise LeaseLost("somebody else has taken the task over")
                if stored.task.status not in LEASED:  # an end, or a schedule, of ours of which we did not hear
                    raise LeaseLost(f"the task is {stored.task.status}")
                self.task = stored.task  # a version of ours of which we did not hear

    async def heartbeat(self) -> None:
        """Renews the lease again and again, for ever. A young one is renewed sooner where there is progress to write
        down, or a worker that is killed within seconds would leave none. Raises `LeaseLost` when that came to nothing
        for too long."""
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
            except StoreError as error:  # the lease is what it was: there is time to try again
                _LOG.warning("the lease of %s was not renewed: %s", name_in_log(self.task), error)


def task_session(catalog: Catalog, task: str, deadline_ms: int) -> Session:
    """A session of the worker on a task."""
    source: JsonObject = {"kind": "Task", "task": task}
    request = OperationRequest("TASK", f"tasks/{task}", "", None, PRINCIPAL, source, deadline_ms)
    return catalog.session(request, ALLOW_ALL)
