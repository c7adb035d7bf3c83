"""Makes the row of the system table `reports` for a stored report of a scan or a commit."""

from typing import Final

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.iceberg.metrics_report import is_of_commit
from arco_catalog.state.fields import mapping
from reconciler.compact.source import source_columns
from reconciler.compact.values import int_of, long_of, namespace_of, object_of, required_time, text_of, texts_of
from reconciler.system.definition import Row

_NANOSECONDS: Final = {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}
_SCAN: Final = {
    "data_files": "result-data-files",
    "delete_files": "result-delete-files",
    "bytes": "total-file-size-in-bytes",
}
_COMMIT: Final = {
    "data_files": "added-data-files",
    "delete_files": "added-delete-files",
    "records": "added-records",
    "bytes": "added-files-size-bytes",
}


def report_row(stored: JsonObject, name: str, batch: int) -> Row:
    """Returns the row of `reports` for a stored report, from the object called `name`. Metrics are found by the names
    that Iceberg's Java client gives them. Raises `InternalError` if the report has no time, or one outside of the years
    1 to 9999."""
    report, by = mapping(stored, "report"), object_of(stored.get("by"))
    commit = is_of_commit(report)
    metrics = {metric: object_of(value) for metric, value in object_of(report.get("metrics")).items()}
    timer = metrics.get("total-duration" if commit else "total-planning-duration", {})
    columns = _COMMIT if commit else _SCAN
    return {
        "report_id": name,
        "received_at": required_time(stored, "ms"),
        "report_type": "commit" if commit else "scan",
        "entity": text_of(stored.get("entity")),
        "namespace": namespace_of(stored.get("namespace")),
        "name": text_of(stored.get("table")),
        **source_columns(by),
        "snapshot_id": long_of(report.get("snapshot-id")),
        "sequence_number": long_of(report.get("sequence-number")),
        "operation": text_of(report.get("operation")),
        "schema_id": int_of(report.get("schema-id")),
        "filter": dumps(report["filter"], sort_keys=True).decode() if "filter" in report else None,
        "projected": None if commit else texts_of(report.get("projected-field-names")),
        "duration_ms": _milliseconds(timer),
        **{column: long_of(metrics.get(metric, {}).get("value")) for column, metric in columns.items()},
        "metrics": {metric: _metric_text(value) for metric, value in metrics.items()},
        "batch": batch,
    }


def _milliseconds(timer: JsonObject) -> int | None:
    """Returns the duration of a timer in whole milliseconds; None for an unknown unit, and without a duration."""
    unit, total = text_of(timer.get("time-unit")), long_of(timer.get("total-duration"))
    return None if unit not in _NANOSECONDS or total is None else long_of(total * _NANOSECONDS[unit] // 1_000_000)


def _metric_text(metric: JsonObject) -> str:
    """Returns the value of a counter, or the total of a timer with its unit, as text."""
    if "time-unit" in metric:
        return f"{metric.get('total-duration')} {metric['time-unit']}"
    return str(metric.get("value"))
