"""Log lines about the tasks of a catalog, with metrics for alarms."""

from collections.abc import Callable

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.tasks.work_stats import WorkStats
from arco_catalog.telemetry.emf import TASKS, MetricLine, worth_telling
from arco_catalog.telemetry.lines import Write, utc_time

QUIET_MS = 300_000
"""The maximum time without a line for a catalog without due tasks."""


def tasks_line(warehouse: str, stats: WorkStats, *, at_ms: int, namespace: str | None) -> str:
    """Returns the log line at `at_ms`, without a line break, about the tasks of a catalog that a worker executed, with
    metrics in this CloudWatch `namespace`, except metrics that are zero and no alarm needs, or without metrics if that
    is None. If `stats` has an error, because they could not be executed, the line has neither counts nor metrics: the
    alarm on the age of tasks treats missing data as a breach."""
    facts: JsonObject = {
        "time": utc_time(at_ms),
        "level": "error" if stats.error or stats.failed else "info",
        "Warehouse": warehouse,
        "Operation": "tasks",
    }
    if stats.error is not None:
        return MetricLine(None, TASKS).encode(at_ms, {**facts, "error": "the tasks could not be executed"})
    facts |= {
        "TasksExecuted": stats.executed,
        "TasksCompleted": stats.completed,
        "TasksFailed": stats.failed,
        "TasksRetried": stats.retried,
        "LeasesLost": stats.leases_lost,
        "TasksDueAge": stats.oldest_due_ms // 1000,
        "SnapshotsExpired": stats.expiries.snapshots,
        "SnapshotsCleaned": stats.expiries.cleaned,
        "ExpiredFiles": stats.expiries.files,
        "ExpiriesHeldBack": stats.expiries.held_back,
        "ExpiriesFailed": stats.expiries.failed,
        "EventsNumbered": stats.feed.records,
        "EventGaps": stats.feed.gaps,
        "EventsFailed": stats.feed.all_failed,
        "EventsDelivered": stats.deliveries.accepted,
        "EventsSetAside": stats.deliveries.set_aside,
        "DeliveriesFailed": stats.deliveries.failed,
        "EventsLag": stats.feed.lag_ms // 1000,
        "given_back": stats.given_back,
        "stopped": stats.stopped,
    }
    return MetricLine(namespace, worth_telling(TASKS, facts)).encode(at_ms, facts)


class TaskLines:
    """Writes the log lines of a server that polls for tasks. A catalog has a line after each poll in which a task was
    executed or events were numbered, and otherwise one for all polls within `QUIET_MS`. Without `write` no line is
    written."""

    def __init__(self, write: Write | None, namespace: str | None, now_ms: Callable[[], int]) -> None:
        self._write = write
        self._namespace = namespace
        self._now_ms = now_ms
        self._since: dict[str, tuple[int, WorkStats]] = {}

    def tell(self, warehouse: str, stats: WorkStats) -> None:
        """Adds the statistics of one poll for the tasks of a catalog to the sums since the last line of that catalog.
        Writes a line with the sums, and starts new ones, if a task was executed, events were numbered, or `QUIET_MS`
        have passed since that line. Writes nothing without `write`."""
        now_ms = self._now_ms()
        written_ms, total = self._since.setdefault(warehouse, (now_ms, WorkStats()))
        total.add(stats)
        if self._write is None or not (total.executed or total.feed.records or now_ms - written_ms >= QUIET_MS):
            return
        self._since[warehouse] = now_ms, WorkStats()
        self._write(tasks_line(warehouse, total, at_ms=now_ms, namespace=self._namespace))
