"""The log line of a garbage collection of one catalog's state, with metrics for alarms."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.telemetry.emf import COLLECTIONS, MetricLine, worth_telling
from arco_catalog.telemetry.lines import utc_time


def collection_line(
    warehouse: str, *, completed: bool, listed: int, collected: int, at_ms: int, namespace: str | None
) -> str:
    """Returns the log line, without a line break, of a garbage collection of one catalog's state that was over at
    `at_ms`. It has `listed` objects of the state and deleted `collected`, which may include metadata files and records
    that are not in the listing: the metric `StateObjects`, the difference, may thus be too low. The metrics go to this
    CloudWatch `namespace`, except one that is zero and no alarm needs. The line has none if that is None, or if the run
    did not reach the end (not `completed`) and so did not count all objects: the alarm treats missing data as a
    breach."""
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
