"""A line for a run of the scheduled reconciler: its counts, and metrics that an alarm can wait for."""

from arco_catalog.http.telemetry.emf import WALKS, MetricLine
from arco_catalog.http.telemetry.lines import moment
from arco_catalog.operations.tally import Tally


def walk_line(warehouse: str, tally: Tally, *, began_ms: int, ended_ms: int, namespace: str | None) -> str:
    """The line, without its end. A run that fails has none: missing data is what its alarm treats as a breach."""
    line = MetricLine(namespace, WALKS)
    return line.encode(
        ended_ms,
        {
            "time": moment(ended_ms),
            "level": "error" if tally.unreadable else "info",
            "Warehouse": warehouse,
            "Operation": "reconcile",
            "Latency": ended_ms - began_ms,
            "ReconcileCompleted": int(not tally.stopped),
            "ReceiptsWritten": tally.written,
            "PointersWalked": tally.walked,
            "PointersUnreadable": tally.unreadable_count,
            "pointers": tally.pointers,
            "nameless": tally.nameless,
            "unchanged": tally.unchanged,
            "incomplete": tally.incomplete,
            "files": tally.files,
        },
    )
