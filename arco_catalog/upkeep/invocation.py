"""One invocation of a cloud function that runs a program: the time limit, and the operation request that it makes."""

from dataclasses import dataclass
from typing import Protocol, Self

from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.runtime import Runtime

MARGIN_MS = 10_000
"""The part of the time limit that is left to finish steps under way, and to write the log of the run."""


class Context(Protocol):
    """The part of the context object of an AWS Lambda function that a program uses."""

    def get_remaining_time_in_millis(self) -> int:
        """Returns the milliseconds until Lambda ends the invocation."""
        ...


@dataclass(frozen=True, slots=True)
class Until:
    """A context with a fixed end of the invocation, for a platform that does not report the time that is left."""

    end_ms: int
    runtime: Runtime

    def get_remaining_time_in_millis(self) -> int:
        """Returns the milliseconds until `end_ms`; below 0 after it."""
        return self.end_ms - self.runtime.now_ms()


@dataclass(frozen=True, slots=True)
class Invocation:
    """An invocation of a cloud function, with the platform's context. `margin_ms` is the last part of its time, in
    which no new step begins."""

    context: Context
    margin_ms: int = MARGIN_MS

    @classmethod
    def start(cls, context: Context) -> Self:
        """Starts an invocation with the context of the platform. The margin, in which no new step begins, is at most
        half of the time that is left."""
        return cls(context, min(MARGIN_MS, context.get_remaining_time_in_millis() // 2))

    def request(self, method: str, path: str, runtime: Runtime) -> OperationRequest:
        """Makes an operation request by the principal `reconciler`, whose deadline is the end of the invocation."""
        deadline_ms = runtime.now_ms() + self.context.get_remaining_time_in_millis()
        return OperationRequest(method, path, "", None, "reconciler", {"kind": "Reconciler"}, deadline_ms)

    def should_stop(self) -> bool:
        """Whether the time that is left to the invocation is less than the margin, so that no new step should begin."""
        return self.context.get_remaining_time_in_millis() < self.margin_ms
