"""Counts tasks for Prometheus. This module is imported only by a server with a port for metrics."""

from collections.abc import Callable
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from arco_catalog.tasks.work_stats import WorkStats
from arco_catalog.telemetry.collectors import Collectors
from arco_catalog.telemetry.metrics import OF_DELIVERIES, OF_EXPIRIES, OF_FEED, OF_TASKS

REMEMBERED_MS = 900_000
"""How long the last look in a catalog counts: the catalog may have been dropped since."""


class _Look(NamedTuple):
    """The numbers of due and scheduled tasks of a catalog, and the longest time for which one was due, at a look of
    this process at the time `at_ms`."""

    at_ms: int
    due: int
    scheduled: int
    oldest_due_ms: int


class TaskCounts:
    """The metrics of tasks in a Prometheus registry, from the looks of this process for due tasks. The gauges of tasks
    are of all catalogs together; that of the feed's lag is of the catalog of the last look. No catalog is named."""

    def __init__(self, registry: CollectorRegistry, now_ms: Callable[[], int]) -> None:
        collectors = Collectors((*OF_TASKS, *OF_EXPIRIES, *OF_FEED, *OF_DELIVERIES), registry)
        self._executed = collectors.counter("arco_tasks_executed_total")
        self._completed = collectors.counter("arco_tasks_completed_total")
        self._failed = collectors.counter("arco_tasks_failed_total")
        self._retried = collectors.counter("arco_tasks_retried_total")
        self._leases_lost = collectors.counter("arco_leases_lost_total")
        self._given_back = collectors.counter("arco_tasks_given_back_total")
        self._looks_failed = collectors.counter("arco_task_looks_failed_total")
        self._snapshots_expired = collectors.counter("arco_expired_snapshots_total")
        self._snapshots_cleaned = collectors.counter("arco_cleaned_snapshots_total")
        self._files_expired = collectors.counter("arco_expired_files_total")
        self._expiries_held_back = collectors.counter("arco_expiries_held_back_total")
        self._expiries_failed = collectors.counter("arco_expiries_failed_total")
        self._events = collectors.counter("arco_events_numbered_total")
        self._event_gaps = collectors.counter("arco_event_gaps_total")
        self._events_failed = collectors.counter("arco_events_failed_total")
        self._events_delivered = collectors.counter("arco_events_delivered_total")
        self._events_set_aside = collectors.counter("arco_events_set_aside_total")
        self._deliveries_failed = collectors.counter("arco_deliveries_failed_total")
        self._events_lag = collectors.gauge("arco_events_lag_seconds")
        self._due_age = collectors.gauge("arco_tasks_due_age_seconds")
        self._observed = collectors.gauge("arco_tasks_observed_timestamp_seconds")
        self._tasks = collectors.gauge("arco_tasks")
        self._now_ms = now_ms
        self._looks: dict[str, _Look] = {}
        """The last look in each catalog."""
        self._observed.set(now_ms() / 1000)  # the first look follows at once

    def count(self, warehouse: str, stats: WorkStats) -> None:
        """Counts in Prometheus metrics the results of a look for due tasks in a catalog: of the tasks that it executed,
        of expiries, and of the event feed and its deliveries. Also sets the gauges of due tasks, unless the look
        failed, and of the feed's lag, unless the sequencer failed or a delivery's task could not be made."""
        for counter, value in (
            (self._executed, stats.executed),
            (self._completed, stats.completed),
            (self._failed, stats.failed),
            (self._retried, stats.retried),
            (self._leases_lost, stats.leases_lost),
            (self._given_back, stats.given_back),
            (self._looks_failed, int(stats.error is not None)),
            (self._snapshots_expired, stats.expiries.snapshots),
            (self._snapshots_cleaned, stats.expiries.cleaned),
            (self._files_expired, stats.expiries.files),
            (self._expiries_held_back, stats.expiries.held_back),
            (self._expiries_failed, stats.expiries.failed),
            (self._events, stats.feed.records),
            (self._event_gaps, stats.feed.gaps),
            (self._events_failed, stats.feed.all_failed),
            (self._events_delivered, stats.deliveries.accepted),
            (self._events_set_aside, stats.deliveries.set_aside),
            (self._deliveries_failed, stats.deliveries.failed),
        ):
            if value:
                counter.inc(value)
        if not stats.feed.errors:
            self._events_lag.set(stats.feed.lag_ms / 1000)
        if stats.error is None:
            self._observe(warehouse, stats)

    def _observe(self, warehouse: str, stats: WorkStats) -> None:
        """Sets the gauges of due and scheduled tasks: sums, and the longest time due, over the last look in each
        catalog that is less than `REMEMBERED_MS` old, this one included. Also sets the gauge of the time of the last
        look to now."""
        now_ms = self._now_ms()
        look = _Look(now_ms, stats.due or 0, stats.scheduled or 0, stats.oldest_due_ms)
        looks = {**self._looks, warehouse: look}
        self._looks = {name: look for name, look in looks.items() if now_ms - look.at_ms < REMEMBERED_MS}
        self._due_age.set(max(look.oldest_due_ms for look in self._looks.values()) / 1000)
        self._tasks.labels("due").set(sum(look.due for look in self._looks.values()))
        self._tasks.labels("scheduled").set(sum(look.scheduled for look in self._looks.values()))
        self._observed.set(now_ms / 1000)
