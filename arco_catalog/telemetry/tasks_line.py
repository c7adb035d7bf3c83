"""A line for what a worker did of a catalog's tasks, with metrics that alarms are made of."""

from collections.abc import Callable

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.tasks.work_stats import WorkStats
from arco_catalog.telemetry.emf import TASKS, MetricLine, worth_telling
from arco_catalog.telemetry.lines import Write, utc_time

QUIET_MS = 300_000
"""How long a server says nothing of a catalog in which there is nothing to do."""


def tasks_line(warehouse: str, stats: WorkStats, *, at_ms: int, namespace: str | None) -> str:
    """The line, without its end. Where the tasks could not be looked for it has no metrics: missing data is what the
    alarm on the age of tasks treats as a breach."""
    facts: JsonObject = {
        "time": utc_time(at_ms),
        "level": "error" if stats.error or stats.failed else "info",
        "Warehouse": warehouse,
        "Operation": "tasks",
    }
    if stats.error is not None:
        return MetricLine(None, TASKS).encode(at_ms, {**facts, "error": "the tasks could not be looked for"})
    facts |= {
        "TasksExecuted": stats.executed,
        "TasksCompleted": stats.completed,
        "TasksFailed": stats.failed,
        "TasksRetried": stats.retried,
        "LeasesLost": stats.leases_lost,
        "TasksDueAge": stats.oldest_due_ms // 1000,
        "given_back": stats.given_back,
        "stopped": stats.stopped,
    }
    return MetricLine(namespace, worth_telling(TASKS, facts)).encode(at_ms, facts)


class TaskLines:
    """The lines of a server that looks for tasks again and again: one after each look that did something, and else one
    for several. Without `write` there are none."""

    def __init__(self, write: Write | None, namespace: str | None, now_ms: Callable[[], int]) -> None:
        self._write = write
        self._namespace = namespace
        self._now_ms = now_ms
        self._since: dict[str, tuple[int, WorkStats]] = {}

    def tell(self, warehouse: str, stats: WorkStats) -> None:
        """Takes note of a look, and writes a line if it is time for one."""
        now_ms = self._now_ms()
        told_ms, total = self._since.setdefault(warehouse, (now_ms, WorkStats()))
        total.add(stats)
        if self._write is None or not (total.executed or now_ms - told_ms >= QUIET_MS):
            return
        self._since[warehouse] = now_ms, WorkStats()
        self._write(tasks_line(warehouse, total, at_ms=now_ms, namespace=self._namespace))
