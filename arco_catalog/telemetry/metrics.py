"""The table of metrics: what each counts, and its name in log lines and CloudWatch, for Prometheus, and in spans.
docs/observability.md has the table for readers; tests compare that page, dashboards and alarms with it."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

Dimensions = tuple[str, ...]

WAREHOUSE: Dimensions = ("Warehouse",)
OPERATION: Dimensions = ("Warehouse", "Operation")
ANY_CATALOG: Dimensions = ()

CALLS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 25.0, 50.0, 100.0)
"""Upper bounds of buckets for numbers of store calls."""
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of buckets for durations."""


LONG_SECONDS = (0.1, 1.0, 5.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 10_800.0)
"""Upper bounds of buckets for durations of work that may take hours."""


class CloudWatch(NamedTuple):
    """The unit of a metric in CloudWatch, and its combinations of dimensions there. CloudWatch bills each combination
    of values as a metric of its own."""

    unit: Literal["Count", "Milliseconds", "Seconds", "Bytes"]
    dimensions: Sequence[Dimensions] = (WAREHOUSE,)


class Series(NamedTuple):
    """The name, type and labels of a metric for Prometheus, and the upper bounds of a histogram's buckets. `across` is
    how the values of a gauge of several processes become one: their sum, or the one that was set last."""

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    labels: tuple[str, ...] = ()
    buckets: Sequence[float] = ()
    across: Literal["sum", "latest"] = "sum"


class Metric(NamedTuple):
    """A metric, with its description for people: the `field` of log lines that has its value, how CloudWatch gets it
    from that field, its `series`, and the `attribute` of spans. What is None or empty is not there."""

    help: str
    field: str | None = None
    cloudwatch: CloudWatch | None = None
    series: Series | None = None
    attribute: str | None = None


OF_REQUESTS = (
    Metric(
        "Requests",
        "Requests",
        CloudWatch("Count", (WAREHOUSE, OPERATION)),
        Series("arco_requests_total", "counter", ("operation", "status", "engine")),
    ),
    Metric(
        "Requests that failed by the catalog's fault",
        "ServerErrors",
        CloudWatch("Count", (WAREHOUSE, OPERATION)),
        Series("arco_server_errors_total", "counter"),
    ),
    Metric(
        "Duration of requests",
        "Latency",
        CloudWatch("Milliseconds", (WAREHOUSE, OPERATION)),
        Series("arco_request_duration_seconds", "histogram", ("operation",), SECONDS),
    ),
    Metric(
        "Store calls of a request",
        "StoreCalls",
        CloudWatch("Count"),
        Series("arco_request_store_calls", "histogram", ("operation",), CALLS),
        "arco.store.calls",
    ),
    Metric(
        "Longest chain of store calls of a request",
        "StoreDepth",
        CloudWatch("Count"),
        attribute="arco.store.depth",
    ),
    Metric(
        "Bytes of objects read",
        "StoreBytesRead",
        CloudWatch("Bytes"),
        Series("arco_store_read_bytes_total", "counter"),
        "arco.store.bytes_read",
    ),
    Metric(
        "Bytes of objects written",
        "StoreBytesWritten",
        CloudWatch("Bytes"),
        Series("arco_store_written_bytes_total", "counter"),
        "arco.store.bytes_written",
    ),
    Metric(
        "Compare-and-swaps that were lost",
        "Conflicts",
        CloudWatch("Count"),
        Series("arco_conflicts_total", "counter", ("operation",)),
        "arco.conflicts",
    ),
    Metric(
        "Reads of the store that a cache was valid for",
        "CacheHits",
        CloudWatch("Count"),
        Series("arco_cache_hits_total", "counter"),
        "arco.cache_hits",
    ),
    Metric(
        "Requests without the privilege",
        "Denials",
        CloudWatch("Count"),
        Series("arco_denials_total", "counter", ("privilege",)),
        "arco.denials",
    ),
    Metric(
        "Changes whose outcome is unknown",
        "UnknownOutcomes",
        CloudWatch("Count"),
        Series("arco_unknown_outcomes_total", "counter", ("reason",)),
    ),
    Metric(
        "5xx because of an idempotency key older than a day",
        "StaleKeys",
        CloudWatch("Count", (ANY_CATALOG,)),
        Series("arco_stale_keys_total", "counter"),
    ),
    Metric(
        "Changes by how they got their answer",
        "outcome",
        None,
        Series("arco_outcomes_total", "counter", ("outcome",)),
        "arco.outcome",
    ),
    Metric(
        "Best-effort writes that failed",
        "dropped_writes",
        None,
        Series("arco_dropped_writes_total", "counter"),
        "arco.dropped_writes",
    ),
    Metric(
        "Requests for credentials by a cloud's answer",
        "vended",
        None,
        Series("arco_vended_credentials_total", "counter", ("result",)),
    ),
    Metric(
        "Data files in the tasks of planned scans",
        "scan_files",
        None,
        Series("arco_scan_files_total", "counter"),
        "arco.scan.files",
    ),
    Metric(
        "Manifests read to plan scans",
        "scan_manifests",
        None,
        Series("arco_scan_manifests_total", "counter"),
        "arco.scan.manifests",
    ),
    Metric(
        "Manifests left out of planned scans by their filters",
        "scan_manifests_pruned",
        None,
        Series("arco_scan_manifests_pruned_total", "counter"),
        "arco.scan.manifests_pruned",
    ),
    Metric(
        "Lookups of planned scans that found something in a cache: in the lists, files and bytes of manifests that a "
        "process remembers, and in the index of deletes in the store",
        "scan_cache_hits",
        None,
        Series("arco_scan_cache_hits_total", "counter", ("cache",)),
        "arco.scan.cache_hits",
    ),
    Metric(
        "Lookups of planned scans that found nothing in a cache",
        "scan_cache_misses",
        None,
        Series("arco_scan_cache_misses_total", "counter", ("cache",)),
        "arco.scan.cache_misses",
    ),
    Metric(
        "Duration of store calls",
        series=Series("arco_store_call_duration_seconds", "histogram", ("call",), SECONDS),
    ),
)
"""Metrics of requests. `StaleKeys` is sent with each request, 0 too, and without a dimension: the alarm on the
gateway's 5xx, which knows no catalog, subtracts it."""

OF_TASKS = (
    Metric("Executions of tasks", "TasksExecuted", CloudWatch("Count"), Series("arco_tasks_executed_total", "counter")),
    Metric(
        "Tasks that ended well", "TasksCompleted", CloudWatch("Count"), Series("arco_tasks_completed_total", "counter")
    ),
    Metric(
        "Tasks that ended in a failure",
        "TasksFailed",
        CloudWatch("Count", (WAREHOUSE, ANY_CATALOG)),
        Series("arco_tasks_failed_total", "counter"),
    ),
    Metric(
        "Executions that failed and are retried",
        "TasksRetried",
        CloudWatch("Count"),
        Series("arco_tasks_retried_total", "counter"),
    ),
    Metric(
        "Tasks taken over from dead workers",
        "LeasesLost",
        CloudWatch("Count", (WAREHOUSE, ANY_CATALOG)),
        Series("arco_leases_lost_total", "counter"),
    ),
    Metric(
        "Longest time that a task has been due",
        "TasksDueAge",
        CloudWatch("Seconds", (WAREHOUSE, ANY_CATALOG)),
        Series("arco_tasks_due_age_seconds", "gauge", across="latest"),
    ),
    Metric(
        "Tasks given back by workers that stopped", "given_back", None, Series("arco_tasks_given_back_total", "counter")
    ),
    Metric(
        "Tasks that are due, those under way included, or not due yet",
        series=Series("arco_tasks", "gauge", ("state",), across="latest"),
    ),
    Metric("Looks for tasks that failed", "error", None, Series("arco_task_looks_failed_total", "counter")),
    Metric(
        "Unix time of the last look for tasks, at first of the start",
        series=Series("arco_tasks_observed_timestamp_seconds", "gauge", across="latest"),
    ),
)
"""Metrics of a worker over a period. Metrics without a dimension are for alarms on all catalogs of a deployment."""

OF_EXPIRIES = (
    Metric(
        "Snapshots that expiries removed",
        "SnapshotsExpired",
        CloudWatch("Count"),
        Series("arco_expired_snapshots_total", "counter"),
    ),
    Metric(
        "Expired snapshots after the wait of two days: their files were deleted, or are kept for good",
        "SnapshotsCleaned",
        CloudWatch("Count"),
        Series("arco_cleaned_snapshots_total", "counter"),
    ),
    Metric(
        "Files of expired snapshots that were deleted",
        "ExpiredFiles",
        CloudWatch("Count"),
        Series("arco_expired_files_total", "counter"),
    ),
    Metric(
        "Expiries that kept snapshots or files, mostly since another table may use them",
        "ExpiriesHeldBack",
        CloudWatch("Count"),
        Series("arco_expiries_held_back_total", "counter"),
    ),
    Metric(
        "Expiries that ended in a failure, and tables that could not be read to find what has expired",
        "ExpiriesFailed",
        CloudWatch("Count"),
        Series("arco_expiries_failed_total", "counter"),
    ),
)
"""Metrics of what a worker expired over a period."""

OF_FEED = (
    Metric(
        "Records that entered the event feed",
        "EventsNumbered",
        CloudWatch("Count"),
        Series("arco_events_numbered_total", "counter"),
    ),
    Metric(
        "Records of the event feed before which changes may be missing, because what recorded them was lost",
        "EventGaps",
        CloudWatch("Count"),
        Series("arco_event_gaps_total", "counter"),
    ),
    Metric(
        "Runs of the sequencer that ended with an error, tables or views whose commits could not be read, and "
        "subscriptions whose task could not be made",
        "EventsFailed",
        CloudWatch("Count"),
        Series("arco_events_failed_total", "counter"),
    ),
    Metric(
        "Age of the oldest change that entered the event feed",
        "EventsLag",
        CloudWatch("Seconds"),
        Series("arco_events_lag_seconds", "gauge", across="latest"),
    ),
)
"""Metrics of what a worker entered into the event feed over a period. The lag is that between a change and its number,
by the clocks of two machines; 0 where nothing changed."""

OF_DELIVERIES = (
    Metric(
        "Events that receivers have accepted",
        "EventsDelivered",
        CloudWatch("Count"),
        Series("arco_events_delivered_total", "counter"),
    ),
    Metric(
        "Events that were set aside as dead letters, because their receiver did not take them",
        "EventsSetAside",
        CloudWatch("Count"),
        Series("arco_events_set_aside_total", "counter"),
    ),
    Metric(
        "Deliveries that a receiver did not take, which are continued later",
        "DeliveriesFailed",
        CloudWatch("Count"),
        Series("arco_deliveries_failed_total", "counter"),
    ),
)
"""Metrics of what a worker delivered to subscriptions over a period."""

OF_STORE = ("store",)
"""The label of the metrics of a job, since one machine may run the jobs of several stores."""

OF_WALKS = (
    Metric(
        "Runs of the reconciler that reached the end; for Prometheus the Unix time of the last",
        "ReconcileCompleted",
        CloudWatch("Count"),
        Series("arco_reconcile_completed_timestamp_seconds", "gauge", OF_STORE),
    ),
    Metric(
        "Receipts that the reconciler wrote",
        "ReceiptsWritten",
        CloudWatch("Count"),
        Series("arco_reconcile_receipts_written", "gauge", OF_STORE),
    ),
    Metric(
        "Pointers that the reconciler walked",
        "PointersWalked",
        CloudWatch("Count"),
        Series("arco_reconcile_pointers_walked", "gauge", OF_STORE),
    ),
    Metric(
        "Records that the reconciler could not read",
        "PointersUnreadable",
        CloudWatch("Count"),
        Series("arco_reconcile_pointers_unreadable", "gauge", OF_STORE),
    ),
)
"""Metrics of a run of the reconciler."""

OF_COLLECTIONS = (
    Metric(
        "Collections that reached the end; for Prometheus the Unix time of the last",
        "CollectionCompleted",
        CloudWatch("Count"),
        Series("arco_collection_completed_timestamp_seconds", "gauge", OF_STORE),
    ),
    Metric(
        "Objects that a collection deleted",
        "ObjectsCollected",
        CloudWatch("Count"),
        Series("arco_collection_objects", "gauge", OF_STORE),
    ),
    Metric(
        "Objects of the state that a collection left",
        "StateObjects",
        CloudWatch("Count", (WAREHOUSE, ANY_CATALOG)),
        Series("arco_state_objects", "gauge", OF_STORE),
    ),
)
"""Metrics of a collection."""

OF_JOBS = (*OF_WALKS, *OF_COLLECTIONS)
"""Metrics of jobs, which end: they are on no page of a server."""

OF_PURGES = (
    Metric(
        "Purges of a delegation service by how they ended in its processes",
        series=Series("arco_delegation_tasks_total", "counter", ("result",)),
    ),
    Metric(
        "Duration of purges of a delegation service, from their start in a process to their end there",
        series=Series("arco_delegation_task_duration_seconds", "histogram", (), LONG_SECONDS),
    ),
    Metric(
        "Purges that a delegation service executes",
        series=Series("arco_delegation_tasks_running", "gauge"),
    ),
)
"""Metrics of the tasks of a delegation service."""

OF_PROCESSES = (
    Metric("Open connections of clients", series=Series("arco_connections", "gauge")),
    Metric("Maximum number of connections", series=Series("arco_connections_limit", "gauge")),
    Metric(
        "Requests refused at the connection",
        series=Series("arco_refused_requests_total", "counter", ("reason",)),
    ),
)
"""Metrics of each process that serves."""

OF_SERVERS = (
    Metric("1, with the version as a label", series=Series("arco_build_info", "gauge", ("version",))),
    Metric("Processes that serve", series=Series("arco_workers", "gauge")),
    Metric("Worker processes that died", series=Series("arco_worker_deaths_total", "counter")),
)
"""Metrics of a server as a whole."""

METRICS = (*OF_REQUESTS, *OF_TASKS, *OF_EXPIRIES, *OF_FEED, *OF_JOBS, *OF_PURGES, *OF_PROCESSES, *OF_SERVERS)
