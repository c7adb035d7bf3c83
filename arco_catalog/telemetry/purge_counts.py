"""Counts the tasks of a delegation service for Prometheus. This module is imported only by a service with a port for
metrics."""

from typing import Literal, get_args

from prometheus_client import CollectorRegistry

from arco_catalog.telemetry.collectors import Collectors
from arco_catalog.telemetry.metrics import OF_PURGES
from arco_catalog.upkeep.delegation_service.observer import TaskEnd

LOST: Literal["lost"] = "lost"
"""The result of a task that failed because the process that executed it is gone."""


class PurgeCounts:
    """The metrics of the tasks of one process of a delegation service in a Prometheus registry. Each result is 0 from
    the start."""

    def __init__(self, registry: CollectorRegistry) -> None:
        collectors = Collectors(OF_PURGES, registry)
        results = collectors.counter("arco_delegation_tasks_total")
        self._results = {result: results.labels(result) for result in (*get_args(TaskEnd), LOST)}
        self._durations = collectors.histogram("arco_delegation_task_duration_seconds")
        self._running = collectors.gauge("arco_delegation_tasks_running")

    def started(self) -> None:
        """Adds one to the number of purges that the delegation service is executing at present."""
        self._running.inc()

    def ended(self, end: TaskEnd, seconds: float) -> None:
        """Counts, by the result, that the delegation service no longer executes a purge in this process, also because
        the process stops, and how many seconds it took. Takes it off the number of purges that are being executed."""
        self._running.dec()
        self._results[end].inc()
        self._durations.observe(seconds)

    def lost(self, count: int) -> None:
        """Counts so many tasks of the delegation service as lost: they failed because the process that executed them is
        gone."""
        self._results[LOST].inc(count)
