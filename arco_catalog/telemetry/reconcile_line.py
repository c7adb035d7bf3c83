"""The log line of a run of the scheduled reconciler, with its counts and metrics for alarms."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.telemetry.emf import WALKS, MetricLine, worth_telling
from arco_catalog.telemetry.lines import utc_time


def reconcile_line(
    warehouse: str, stats: ReconcileStats, *, began_ms: int, ended_ms: int, namespace: str | None
) -> str:
    """Returns the log line, without a line break, of a run of the reconciler over one catalog from `began_ms` to
    `ended_ms`. It has metrics in this CloudWatch `namespace`, except metrics that are zero and no alarm needs; none if
    that is None. The level is `error` if some record could not be read; `ReconcileCompleted` is 0 if the time was over
    before the end. A run that raises an error writes no line: the alarm treats missing data as a breach."""
    facts: JsonObject = {
        "time": utc_time(ended_ms),
        "level": "error" if stats.unreadable else "info",
        "Warehouse": warehouse,
        "Operation": "reconcile",
        "Latency": ended_ms - began_ms,
        "ReconcileCompleted": int(not stats.stopped),
        "ReceiptsWritten": stats.written,
        "PointersWalked": stats.walked,
        "PointersUnreadable": stats.unreadable_count,
        "pointers": stats.pointers,
        "nameless": stats.orphaned,
        "unchanged": stats.unchanged,
        "incomplete": stats.incomplete,
        "files": stats.files,
    }
    return MetricLine(namespace, worth_telling(WALKS, facts)).encode(ended_ms, facts)
