"""What a run may use: bytes that are rewritten, and time."""

from dataclasses import dataclass

from arco_catalog.state.runtime import Runtime


@dataclass(slots=True)
class Budget:
    """What is left. `max_bytes` and `end_ms`, by the clock that counts sleep, are None without a limit."""

    runtime: Runtime
    max_bytes: int | None = None
    end_ms: int | None = None

    @classmethod
    def of(cls, runtime: Runtime, max_bytes: int | None, minutes: float | None) -> "Budget":
        """From now on."""
        return cls(runtime, max_bytes, None if minutes is None else runtime.boot_ms() + round(minutes * 60_000))

    def spend(self, size: int) -> None:
        """Takes note of bytes that are rewritten."""
        if self.max_bytes is not None:
            self.max_bytes = max(0, self.max_bytes - size)

    def is_over(self) -> bool:
        """Whether the time is over: nothing more is begun, what is under way ends."""
        return self.end_ms is not None and self.runtime.boot_ms() >= self.end_ms
