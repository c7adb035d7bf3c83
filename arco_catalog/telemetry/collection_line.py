"""The log line of a collection of one catalog's state, with metrics for alarms."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.telemetry.emf import COLLECTIONS, MetricLine, worth_telling
from arco_catalog.telemetry.lines import utc_time


def collection_line(
    warehouse: str, *, completed: bool, listed: int, collected: int, at_ms: int, namespace: str | None
) -> str:
    """Returns the log line at `at_ms` of a collection of one catalog's state, without a line break. It has the number
    of objects after the collection, from the number that was `listed` and that of the `collected` ones, as metrics in
    this CloudWatch `namespace`, or without metrics if that is None. A collection that was stopped (not `completed`) has
    not listed all, so its line has no metrics: its alarm treats missing data as a breach."""
    facts: JsonObject = {
        "time": utc_time(at_ms),
        "level": "info",
        "Warehouse": warehouse,
        "Operation": "collect",
        "CollectionCompleted": int(completed),
        "ObjectsCollected": collected,
        "StateObjects": listed - collected,
    }
    return MetricLine(namespace if completed else None, worth_telling(COLLECTIONS, facts)).encode(at_ms, facts)
