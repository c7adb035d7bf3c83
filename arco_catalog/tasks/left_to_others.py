"""Remembers the due tasks that a worker can't execute, so that it does not read them in each run: that could cost more
than all tasks that it can execute."""

from arco_catalog.state.runtime import Runtime
from arco_catalog.state.task import Task
from arco_catalog.state.task_log import Hint

AGAIN_MS = 600_000
"""After this time such a task is read again, because its last worker may have made it executable for all others."""
MAX_TASKS = 10_000
"""The limit of tasks in memory. Further ones are read in each run."""


class LeftToOthers:
    """The tasks that a worker has left to other workers in the last `AGAIN_MS` milliseconds, because it can't execute
    them, at most `MAX_TASKS`: each by its id and scheduled time. A task that is submitted again or scheduled for
    another time counts as another, so it is read at once."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._again_ms: dict[tuple[str, int], int] = {}

    def add(self, task: Task) -> None:
        """Records that a task, which this worker can't execute, is left to other workers for `AGAIN_MS` from now. Does
        nothing if `MAX_TASKS` tasks are left to others at present; those past their time are removed first."""
        now_ms = self._runtime.boot_ms()
        if len(self._again_ms) >= MAX_TASKS:
            self._again_ms = {hint: again_ms for hint, again_ms in self._again_ms.items() if again_ms > now_ms}
        if len(self._again_ms) < MAX_TASKS:
            self._again_ms[task.id, task.next_run_ms] = now_ms + AGAIN_MS

    def __contains__(self, hint: Hint) -> bool:
        again_ms = self._again_ms.get((hint.task, hint.not_before_ms))
        return again_ms is not None and again_ms > self._runtime.boot_ms()
