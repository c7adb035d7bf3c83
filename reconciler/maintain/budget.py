"""The limits of a maintenance run: how many bytes it may rewrite, and how long it may start work."""

from dataclasses import dataclass

from arco_catalog.state.runtime import Runtime


@dataclass(slots=True)
class Budget:
    """What is left of the limits of a maintenance run: `max_bytes` to rewrite, and `end_ms`, the time of the boot clock
    (which counts sleep) from which no step is started but one that a former worker has begun. None means no limit."""

    runtime: Runtime
    max_bytes: int | None = None
    end_ms: int | None = None

    @classmethod
    def of(cls, runtime: Runtime, max_bytes: int | None, minutes: float | None) -> "Budget":
        """Returns a budget of so many bytes to rewrite, and of so many minutes from now on; None means no limit."""
        return cls(runtime, max_bytes, None if minutes is None else runtime.boot_ms() + round(minutes * 60_000))

    def spend(self, size: int) -> None:
        """Subtracts the size in bytes of files that are rewritten from the budget, which never falls below zero."""
        if self.max_bytes is not None:
            self.max_bytes = max(0, self.max_bytes - size)

    def is_over(self) -> bool:
        """Whether the time of the budget is over. The caller starts no further step then, but finishes a running one,
        and one that a former worker has begun."""
        return self.end_ms is not None and self.runtime.boot_ms() >= self.end_ms
