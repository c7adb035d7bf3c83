"""How long the holder of a lease may believe in it (docs/design/tasks.md#rule-4)."""

from dataclasses import dataclass
from typing import Self

from arco_catalog.state.runtime import Runtime

MARGIN_MS = 20_000
"""Kept of each lease: one call's time-out, so that none outlives it."""


class LeaseLost(Exception):
    """The lease has run out, or somebody else has the task: nothing more may be done for it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The time of one lease, counted from before the PUT of its version was sent."""

    runtime: Runtime
    length_ms: int
    wall_ms: int
    boot_ms: int

    @classmethod
    def from_now(cls, runtime: Runtime, length_ms: int) -> Self:
        """A lease of this length whose version is about to be sent."""
        return cls(runtime, length_ms, runtime.now_ms(), runtime.boot_ms())

    @property
    def margin_ms(self) -> int:
        """What is kept of it; of a short one half."""
        return min(MARGIN_MS, self.length_ms // 2)

    def left_ms(self) -> int:
        """How long its holder may go on; not positive when it is over. A wall clock that went backwards ends it: by how
        much it is wrong is unknown, and others may judge the lease by that very clock."""
        wall = self.runtime.now_ms() - self.wall_ms
        if wall < 0:
            return 0
        return self.length_ms - self.margin_ms - max(wall, self.elapsed_ms())

    def elapsed_ms(self) -> int:
        """How long ago it began, by the boot-time clock."""
        return self.runtime.boot_ms() - self.boot_ms

    def check(self) -> None:
        """Raises `LeaseLost` once it is over."""
        if self.left_ms() <= 0:
            raise LeaseLost("the lease has run out")
