"""What a delegation service reports of the tasks that it executes."""

from typing import Literal, Protocol

TaskEnd = Literal["succeeded", "failed", "stopped"]
"""How the execution of a task in a process ended; `stopped` if the process was stopped before the end of the task."""


class TaskObserver(Protocol):
    """Gets the beginning and the end of each execution of a task, and the number of lost tasks."""

    def started(self) -> None:
        """Is called when a process begins to execute a task."""

    def ended(self, end: TaskEnd, seconds: float) -> None:
        """Is called when the execution ends, with its duration."""

    def lost(self, count: int) -> None:
        """Is called with the number of tasks that failed because the process that executed them is gone; also with
        0."""


class NoObserver:
    """A `TaskObserver` of a delegation service that does nothing."""

    def started(self) -> None:
        """Does nothing."""

    def ended(self, end: TaskEnd, seconds: float) -> None:
        """Does nothing."""

    def lost(self, count: int) -> None:
        """Does nothing."""
