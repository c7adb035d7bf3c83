"""The log line of a garbage collection of one catalog's state, with metrics for alarms."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.telemetry.emf import COLLECTIONS, MetricLine, worth_telling
from arco_catalog.telemetry.lines import utc_time


def collection_line(
    warehouse: str, *, completed: bool, collected: int, left: int, at_ms: int, namespace: str | None
) -> str:
    """Returns the log line, without a line break, of a garbage collection of one catalog's state that was over at
    `at_ms`. It deleted `collected` objects, which include metadata files, and left `left` objects of the state
    (`StateObjects`). The metrics go to this CloudWatch `namespace`, except one that is zero and no alarm needs. The
    line has none if that is None, or if the run did not reach the end (not `completed`) and so did not count all
    objects: the alarm treats missing data as a breach."""
    facts: JsonObject = {
        "time": utc_time(at_ms),
        "level": "info",
        "Warehouse": warehouse,
        "Operation": "collect",
        "CollectionCompleted": int(completed),
        "ObjectsCollected": collected,
        "StateObjects": left,
    }
    return MetricLine(namespace if completed else None, worth_telling(COLLECTIONS, facts)).encode(at_ms, facts)
