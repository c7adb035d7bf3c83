"""The time for which a worker may act on its lease of a task (docs/design/tasks.md#rule-4)."""

from typing import Self

from arco_catalog.state.runtime import Runtime
from storage_backends.lazy_dataclass import dataclass

MARGIN_MS = 20_000
"""The end of each lease that the worker does not use: one call's timeout, so that no call outlives the lease."""

ROUNDED_MS = 1_000
"""Stores round times to whole seconds."""


class LeaseLost(Exception):
    """No more work may be done under a worker's lease of a task: it has run out, or the machine's clock was set back
    since it began; another worker has the task; the task is over, was given back or deleted; or the guard of the lease
    forbids the work, as for the purge of a catalog that was dropped."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The time of a worker's lease of a task: `length_ms` milliseconds from the clock readings `wall_ms` and `boot_ms`,
    which were taken before the PUT of the task's version that begins or renews the lease, or, by a process that follows
    another's lease, before a read of the task. In the last `margin_ms` of it no work is done."""

    runtime: Runtime
    length_ms: int
    wall_ms: int
    boot_ms: int

    @classmethod
    def from_now(cls, runtime: Runtime, length_ms: int) -> Self:
        """Returns a lease of a task with this length that begins now. It must be made before the task's version that
        stores it is sent."""
        return cls(runtime, length_ms, *runtime.clocks())

    @property
    def margin_ms(self) -> int:
        """The milliseconds at the end of the lease in which no work is done: `MARGIN_MS`, or half of a short lease."""
        return min(MARGIN_MS, self.length_ms // 2)

    def left_ms(self) -> int:
        """Returns for how many milliseconds a worker may continue under this lease of a task; 0 or less when the lease
        is over. The lease is over if the wall clock was set back to before `wall_ms`: the error of the clock is
        unknown, and other workers may use that clock to decide that the lease is over."""
        wall = self.runtime.now_ms() - self.wall_ms
        if wall < 0:
            return 0
        return self.length_ms - self.margin_ms - max(wall, self.elapsed_ms())

    def elapsed_ms(self) -> int:
        """Returns the milliseconds since the lease of a task began, by the machine's clock that counts from its
        boot."""
        return self.runtime.boot_ms() - self.boot_ms

    def check(self) -> None:
        """Raises `LeaseLost` once the lease of the task is over, and returns before."""
        if self.left_ms() <= 0:
            raise LeaseLost("the lease of the task has run out, or the machine's clock was set back since it began")
