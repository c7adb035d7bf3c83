"""Log lines in CloudWatch's Embedded Metric Format: CloudWatch reads metrics out of such a line of JSON, without an
agent. The table of metrics defines which ones: those of requests, reconciler runs, tasks and collections.

Alarms and dashboards (infra/) depend on the namespaces, names, dimensions and units."""

import re
from collections.abc import Mapping, Sequence

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.telemetry.metrics import (
    OF_COLLECTIONS,
    OF_DELIVERIES,
    OF_EXPIRIES,
    OF_FEED,
    OF_REQUESTS,
    OF_TASKS,
    OF_WALKS,
    Metric,
)

_NAMESPACE = re.compile(r"(?!AWS/)[A-Za-z0-9_./#-][A-Za-z0-9_./#: -]{0,254}")

Metrics = Mapping[str, str]
"""The units of metrics, by their names."""
Directives = Sequence[tuple[Sequence[str], Metrics]]
"""Pairs of dimensions and metrics. CloudWatch has, and bills, every metric once for each combination of values of the
dimensions."""


def _directives(metrics: Sequence[Metric]) -> Directives:
    """Returns the directives that send these metrics to CloudWatch: for each combination of dimensions, in the order in
    which the metrics name them, the units of those that have it. Metrics without a field or without CloudWatch are left
    out."""
    sent: dict[Sequence[str], dict[str, str]] = {}
    for metric in metrics:
        if metric.field is not None and metric.cloudwatch is not None:
            for dimensions in metric.cloudwatch.dimensions:
                sent.setdefault(dimensions, {})[metric.field] = metric.cloudwatch.unit
    return tuple(sent.items())


REQUESTS = _directives(OF_REQUESTS)
"""The metrics of a request. The log lines have more fields for queries."""
WALKS = _directives(OF_WALKS)
"""The metrics of a reconciler run. `ReconcileCompleted` is 1 for a run that reached the end."""
TASKS = _directives((*OF_TASKS, *OF_EXPIRIES, *OF_FEED, *OF_DELIVERIES))
"""The metrics of a worker over a period. `TasksDueAge` is the longest time for which a task had been due."""
COLLECTIONS = _directives(OF_COLLECTIONS)
"""The metrics of a collection. `StateObjects` is the number of objects of the catalog's state after it."""
WATCHED = frozenset({"ReconcileCompleted", "TasksDueAge", "CollectionCompleted", "StateObjects"})
"""The metrics that are always written, because alarms depend on their values or their absence."""


def worth_telling(directives: Directives, facts: JsonObject) -> Directives:
    """Returns the `directives` (dimensions and metrics) without the metrics that are zero in `facts`, except the ones
    in `WATCHED`, which are always written. CloudWatch bills a metric for every hour in which it is written, so a
    catalog where nothing happens costs only the watched ones."""
    return [
        (dimensions, {name: unit for name, unit in metrics.items() if name in WATCHED or facts[name]})
        for dimensions, metrics in directives
    ]


class MetricLine:
    """Encodes log lines as JSON. With a CloudWatch `namespace`, every line also declares the metrics of `directives`,
    with the facts of the line as values; without one, no line has metrics. Raises `ValueError` for an invalid
    namespace."""

    def __init__(self, namespace: str | None, directives: Directives) -> None:
        self._directives: bytes | None = None
        if namespace is None:
            return
        if not _NAMESPACE.fullmatch(namespace):
            raise ValueError(
                f"invalid CloudWatch metrics namespace {namespace!r}: expected 1 to 255 letters, digits, spaces or any "
                "of _ . / # : -, not beginning with AWS/, a space or a colon"
            )
        self._directives = dumps([_directive(namespace, *each) for each in directives])

    def encode(self, ms: int, facts: JsonObject) -> str:
        """Returns the facts as one line of JSON. In strings of it, line feeds and other characters below the space are
        escaped, but not DEL, U+0080 to U+009F, U+2028 and U+2029. If there is a namespace, the line declares the
        metrics for CloudWatch, at the time `ms`, in milliseconds since 1970."""
        body = dumps(facts)
        if self._directives is None:
            return body.decode()
        return (b'{"_aws":{"Timestamp":%d,"CloudWatchMetrics":%b},%b' % (ms, self._directives, body[1:])).decode()


def _directive(namespace: str, dimensions: Sequence[str], metrics: Metrics) -> JsonObject:
    """Returns the directive by which CloudWatch makes metrics of a log line."""
    named: list[JsonValue] = [{"Name": name, "Unit": unit} for name, unit in metrics.items()]
    return {"Namespace": namespace, "Dimensions": [[*dimensions]], "Metrics": named}
