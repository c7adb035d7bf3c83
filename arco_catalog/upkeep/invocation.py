"""One invocation of a function that works beside requests: for the reconciler, and within a time limit."""

from dataclasses import dataclass
from typing import Protocol, Self

from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.runtime import Runtime

MARGIN_MS = 10_000
"""Kept of the time limit, to finish what is under way and to write down what was done."""


class Context(Protocol):
    """What Lambda tells a function of its invocation."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda ends it."""
        ...


@dataclass(frozen=True, slots=True)
class Until:
    """A context of our own, where a platform says nothing of the time that is left."""

    end_ms: int
    runtime: Runtime

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until that end."""
        return self.end_ms - self.runtime.now_ms()


@dataclass(frozen=True, slots=True)
class Invocation:
    """An invocation, and how long it lasts. `margin_ms` is kept of its time at the end."""

    context: Context
    margin_ms: int = MARGIN_MS

    @classmethod
    def begun(cls, context: Context) -> Self:
        """An invocation that begins now; of one that is short the margin is half."""
        return cls(context, min(MARGIN_MS, context.get_remaining_time_in_millis() // 2))

    def request(self, method: str, path: str, runtime: Runtime) -> OperationRequest:
        """A request of the reconciler, whose deadline is the end of the invocation."""
        deadline_ms = runtime.now_ms() + self.context.get_remaining_time_in_millis()
        return OperationRequest(method, path, "", None, "reconciler", {"kind": "Reconciler"}, deadline_ms)

    def should_stop(self) -> bool:
        """Whether too little time is left to begin anything."""
        return self.context.get_remaining_time_in_millis() < self.margin_ms
