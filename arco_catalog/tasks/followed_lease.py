"""A lease that another process holds, as one sees it that works for its holder (docs/design/purge.md#rule-21)."""

from dataclasses import dataclass

from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.state.task_log import read_task
from arco_catalog.tasks.execution import task_session
from arco_catalog.tasks.lease import MARGIN_MS, Lease, LeaseLost

TRUSTED_MS = MARGIN_MS // 2
"""How long what was seen is believed: a task that its holder gives back is gone on with after one call's time-out."""
ROUNDED_MS = 1_000
"""Times of stores are whole seconds."""
LOOK_MS = 10_000
"""What a look may take."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """How old a lease was, and the time since just before that was asked."""

    lease: Lease
    age_ms: int

    def left_ms(self) -> int:
        return min(self.lease.left_ms() - self.age_ms, TRUSTED_MS - self.lease.elapsed_ms())


class FollowedLease:
    """Believes in a lease of a task for a short while after each look at the task."""

    def __init__(self, catalog: Catalog, task: str, lease: str) -> None:
        self._catalog = catalog
        self._task = task
        self._lease = lease
        self._seen: _Seen | None = None

    async def keep_up(self) -> None:
        """Looks again where the last look is half as old as it may be. Raises `LeaseLost`, and `StoreError`."""
        if self._left_ms() < TRUSTED_MS // 2:
            await self._look()
            self._require()

    def session(self) -> Session:
        """A way to the store whose calls end before that lease does. Raises `LeaseLost`."""
        return task_session(self._catalog, self._task, self._catalog.runtime.now_ms() + self._require())

    def _require(self) -> int:
        left_ms = self._left_ms()
        if left_ms <= 0:
            raise LeaseLost("the lease has run out, or was not looked at for too long")
        return left_ms

    def _left_ms(self) -> int:
        return 0 if self._seen is None else self._seen.left_ms()

    async def _look(self) -> None:
        runtime = self._catalog.runtime
        before = Lease.from_now(runtime, 0)
        stored = await read_task(task_session(self._catalog, self._task, runtime.now_ms() + LOOK_MS).state, self._task)
        if stored is None or not stored.is_held or stored.task.lease != self._lease:
            raise LeaseLost("the task was given back, or somebody else has taken it over")
        lease = Lease(runtime, stored.task.lease_ms, before.wall_ms, before.boot_ms)
        self._seen = _Seen(lease, max(0, stored.now_ms - stored.written_ms) + ROUNDED_MS)
