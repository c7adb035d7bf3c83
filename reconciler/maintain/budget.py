"""The limits of a run: how many bytes it may rewrite, and how long it may start work."""

from dataclasses import dataclass

from arco_catalog.state.runtime import Runtime


@dataclass(slots=True)
class Budget:
    """The part of the limits that is left: `max_bytes` to rewrite, and `end_ms`, the time of the boot clock (which
    counts sleep) from which no step is started. None means no limit."""

    runtime: Runtime
    max_bytes: int | None = None
    end_ms: int | None = None

    @classmethod
    def of(cls, runtime: Runtime, max_bytes: int | None, minutes: float | None) -> "Budget":
        """Returns a budget of which the `minutes` start now; None means no limit."""
        return cls(runtime, max_bytes, None if minutes is None else runtime.boot_ms() + round(minutes * 60_000))

    def spend(self, size: int) -> None:
        """Subtracts `size` bytes that are rewritten; the rest never falls below zero."""
        if self.max_bytes is not None:
            self.max_bytes = max(0, self.max_bytes - size)

    def is_over(self) -> bool:
        """Whether the time is over. The caller starts no further step then, and lets a running one finish."""
        return self.end_ms is not None and self.runtime.boot_ms() >= self.end_ms
