"""The lease of another process on a task, followed by a process that does a part of the task's work for it
(docs/design/purge.md#rule-21)."""

from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.state.task_log import read_task
from arco_catalog.tasks.execution import task_session
from arco_catalog.tasks.lease import MARGIN_MS, ROUNDED_MS, Lease, LeaseLost
from storage_backends.lazy_dataclass import dataclass

TRUSTED_MS = MARGIN_MS // 2
"""The time for which one read of the task allows work. It is short, because another worker continues a task that was
given back after one call's timeout."""
READ_MS = 10_000
"""The timeout of a read of the task."""


@dataclass(frozen=True, slots=True)
class _Observation:
    """One read of a task that another process has leased: the age of that lease at the read in milliseconds, and a
    `lease` with its length that counts from the read."""

    lease: Lease
    age_ms: int

    def left_ms(self) -> int:
        """Returns for how many milliseconds this read of a task still allows work under another process's lease: until
        `margin_ms` before the end of the lease, and at most `TRUSTED_MS` after the read. 0 or less if it allows none
        any more."""
        return min(self.lease.left_ms() - self.age_ms, TRUSTED_MS - self.lease.elapsed_ms())


class FollowedLease:
    """Allows work under another process's lease of a task, after each read that confirms the lease for at most
    `TRUSTED_MS` milliseconds, and never beyond the lease."""

    def __init__(self, catalog: Catalog, task: str, lease: str) -> None:
        self._catalog = catalog
        self._task = task
        self._lease = lease
        self._observation: _Observation | None = None

    async def keep_up(self) -> None:
        """Reads the task, unless the last read allows work for at least half of `TRUSTED_MS` longer. Raises `LeaseLost`
        if the lease is over, or another worker has taken the task, or it was given back or deleted, or is over, and
        the errors of `read_task`."""
        if self._left_ms() < TRUSTED_MS // 2:
            await self._read()
            self._require()

    def session(self) -> Session:
        """Returns a session for work under another process's lease of a task, whose calls end before the lease does.
        Raises `LeaseLost` if the lease is over, or the task was not read yet or last read too long ago."""
        return task_session(self._catalog, self._task, self._catalog.runtime.now_ms() + self._require())

    def _require(self) -> int:
        """Returns the milliseconds for which the last read allows work. Raises `LeaseLost` if there are none, or the
        task was not read yet. Reads nothing."""
        left_ms = self._left_ms()
        if left_ms <= 0:
            raise LeaseLost(
                "the lease of the task has run out, or was not confirmed in time by a read of the task, or the "
                "machine's clock was set back"
            )
        return left_ms

    def _left_ms(self) -> int:
        """Returns for how many milliseconds the last read of the task allows work; 0 if the task was not read yet, and
        0 or less if it allows none any more."""
        return 0 if self._observation is None else self._observation.left_ms()

    async def _read(self) -> None:
        """Reads the task to confirm that the process which is followed still has the lease, and records when it did.
        Raises `LeaseLost` if it has not, and `StoreError`."""
        runtime = self._catalog.runtime
        before = Lease.from_now(runtime, 0)
        stored = await read_task(task_session(self._catalog, self._task, runtime.now_ms() + READ_MS).state, self._task)
        if stored is None or not stored.is_held or stored.task.lease != self._lease:
            raise LeaseLost(
                "by a read of the task, it has ended, was given back or deleted, the lease of the worker for which "
                "this process works has run out, or another worker has the task"
            )
        lease = Lease(runtime, stored.task.lease_ms, before.wall_ms, before.boot_ms)
        self._observation = _Observation(lease, max(0, stored.now_ms - stored.written_ms) + ROUNDED_MS)
