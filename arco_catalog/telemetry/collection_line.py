"""A line for a collection of one catalog's state, with metrics that alarms are made of."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.telemetry.emf import COLLECTIONS, MetricLine, worth_telling
from arco_catalog.telemetry.lines import utc_time


def collection_line(
    warehouse: str, *, completed: bool, listed: int, collected: int, at_ms: int, namespace: str | None
) -> str:
    """The line, without its end: how many objects of the state were `listed`, and how many of these were `collected`.
    One that was stopped has not listed all, and has no metrics: it can't tell how large the state is, and missing data
    is what its alarm treats as a breach."""
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
