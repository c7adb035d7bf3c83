"""Due tasks that a worker does not take: read again at each look they would cost more than all that it does take."""

from arco_catalog.state.runtime import Runtime
from arco_catalog.state.task import Task
from arco_catalog.state.task_log import Hint

AGAIN_MS = 600_000
"""After how long such a task is read again: others may have left the rest of it to anybody."""
MOST = 10_000
"""How many are remembered; the others are read at each look."""


class LeftToOthers:
    """The tasks that a worker has left to others a while ago, by their hints. One that is submitted again, or scheduled
    for another time, has another."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._again_ms: dict[tuple[str, int], int] = {}

    def add(self, task: Task) -> None:
        """A task was not taken."""
        now_ms = self._runtime.boot_ms()
        if len(self._again_ms) >= MOST:
            self._again_ms = {hint: again_ms for hint, again_ms in self._again_ms.items() if again_ms > now_ms}
        if len(self._again_ms) < MOST:
            self._again_ms[task.id, task.next_run_ms] = now_ms + AGAIN_MS

    def __contains__(self, hint: Hint) -> bool:
        again_ms = self._again_ms.get((hint.task, hint.not_before_ms))
        return again_ms is not None and again_ms > self._runtime.boot_ms()
