"""Makes the collectors of Prometheus's client library from the table of metrics, and the page that a scrape gets. This
module is imported only by a server with a port for metrics."""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    values,
)
from prometheus_client import generate_latest as plain_text
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPEN_METRICS
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics
from prometheus_client.values import MultiProcessValue, MutexValue

from arco_catalog.telemetry.metrics import Metric, Series

DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The variable of the client library with the directory in which a worker counts."""
ACCEPTS_OPEN_METRICS = "application/openmetrics-text"

_ACROSS: Mapping[str, Literal["livesum", "livemostrecent"]] = {"sum": "livesum", "latest": "livemostrecent"}

disable_created_metrics()  # the files of workers do not hold them: all pages have the same metrics

Collector = Counter | Gauge | Histogram


class Collectors:
    """Makes the collectors of these metrics in a registry of Prometheus's library, except of metrics without a series,
    and returns them by name. Counters without labels are 0 from the start."""

    def __init__(self, metrics: Iterable[Metric], registry: CollectorRegistry) -> None:
        self._by_name: Mapping[str, Collector] = {
            metric.series.name: _collector(metric.help, metric.series, registry)
            for metric in metrics
            if metric.series is not None
        }

    def counter(self, name: str) -> Counter:
        """Returns the Prometheus counter with this name, which the constructor has made. Raises `KeyError` for an
        unknown name, and `AssertionError` for that of a gauge or histogram."""
        found = self._by_name[name]
        assert isinstance(found, Counter)
        return found

    def gauge(self, name: str) -> Gauge:
        """Returns the Prometheus gauge with this name, which the constructor has made. Raises `KeyError` for an unknown
        name, and `AssertionError` for that of a counter or histogram."""
        found = self._by_name[name]
        assert isinstance(found, Gauge)
        return found

    def histogram(self, name: str) -> Histogram:
        """Returns the Prometheus histogram with this name, which the constructor has made. Raises `KeyError` for an
        unknown name, and `AssertionError` for that of a counter or gauge."""
        found = self._by_name[name]
        assert isinstance(found, Histogram)
        return found


def _collector(help_: str, series: Series, registry: CollectorRegistry) -> Collector:
    """Makes the collector of Prometheus's library for a series, in this registry, and returns it."""
    if series.kind == "counter":
        return Counter(series.name, help_, series.labels, registry=registry)
    if series.kind == "histogram":
        return Histogram(series.name, help_, series.labels, buckets=series.buckets, registry=registry)
    return Gauge(series.name, help_, series.labels, registry=registry, multiprocess_mode=_ACROSS[series.across])


def count_in_files(place: int) -> None:
    """Lets all later collectors of this process count in the files of this worker's place, in the directory that the
    environment names. A worker that takes the place of a dead one goes on counting where that stopped."""
    values.ValueClass = MultiProcessValue(process_identifier=place.__int__)


def count_in_memory() -> None:
    """Lets all later collectors of this process count in its memory, whatever the environment names."""
    values.ValueClass = MutexValue


Page = Callable[[str], tuple[bytes, str]]
"""Returns the page of all metrics and its content type, for the `Accept` of a scrape."""


def page_of(registry: CollectorRegistry) -> Page:
    """Returns the function that makes the page with all metrics of a Prometheus registry for a scrape: in the format of
    OpenMetrics if the scrape accepts it, otherwise as plain text of Prometheus."""

    def page(accept: str) -> tuple[bytes, str]:
        if ACCEPTS_OPEN_METRICS in accept:
            return open_metrics(registry), OPEN_METRICS
        return plain_text(registry), CONTENT_TYPE_PLAIN_0_0_4

    return page
