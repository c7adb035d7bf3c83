"""The metrics for Prometheus of one process that serves: of a worker, which counts in files that its supervisor reads,
or of a server without workers, which answers scrapes itself."""

from collections.abc import Callable
from typing import get_args

from prometheus_client import CollectorRegistry

from arco_catalog.cli.crowd import Crowd, RefusalReason
from arco_catalog.telemetry.collectors import Collectors, Page, count_in_files, count_in_memory, page_of
from arco_catalog.telemetry.metrics import OF_PROCESSES
from arco_catalog.telemetry.purge_counts import PurgeCounts
from arco_catalog.telemetry.request_counts import RequestCounts
from arco_catalog.telemetry.server_info import ServerInfo
from arco_catalog.telemetry.task_counts import TaskCounts


class ServerMetrics:
    """The metrics of one process: its requests and connections, and its tasks if it works on any. `place` is that of a
    worker among the workers of its supervisor; None for a server without workers, whose metrics include those of the
    server as a whole."""

    def __init__(self, place: int | None, now_ms: Callable[[], int]) -> None:
        registry = CollectorRegistry()
        if place is None:
            count_in_memory()
            ServerInfo(registry).workers.set(1)
        else:
            count_in_files(place)
        self.requests = RequestCounts(registry)
        self.page: Page = page_of(registry)
        self._registry = registry
        self._now_ms = now_ms
        collectors = Collectors(OF_PROCESSES, registry)
        self._connections = collectors.gauge("arco_connections")
        self._limit = collectors.gauge("arco_connections_limit")
        refused = collectors.counter("arco_refused_requests_total")
        self._refused = {reason: refused.labels(reason) for reason in get_args(RefusalReason)}

    def task_counts(self) -> TaskCounts:
        """Adds the metrics of tasks to the registry of this process, which may be done once, and returns their counts.
        A process that does not work on tasks has none of these metrics."""
        return TaskCounts(self._registry, self._now_ms)

    def purge_counts(self) -> PurgeCounts:
        """Adds the metrics of the tasks of a delegation service to the registry of this process, which may be done
        once, and returns their counts. A catalog's server has none of these metrics."""
        return PurgeCounts(self._registry)

    def watch(self, crowd: Crowd) -> None:
        """Sets the limit of connections in the metrics, and lets `crowd` report to them every change of the number of
        connections, every request that a connection rejects, and every connection that is cut since too many bytes are
        buffered, in place of former receivers. A connection that is cut for another is not reported."""
        self._limit.set(crowd.limit)
        crowd.when_size_changes = self._connections.set
        crowd.when_one_is_refused = lambda reason: self._refused[reason].inc()
