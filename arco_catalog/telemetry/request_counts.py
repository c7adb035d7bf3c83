"""Counts requests for Prometheus. This module is imported only by a server with a port for metrics."""

from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram

from arco_catalog.iceberg.errors import UnknownReason
from arco_catalog.protocol.request_stats import Outcome, ScanCache, ScanCounts
from arco_catalog.telemetry.collectors import Collectors
from arco_catalog.telemetry.engines import engine_of
from arco_catalog.telemetry.metrics import OF_REQUESTS
from arco_catalog.telemetry.request_log import RequestLog
from arco_catalog.vending.service import Outcome as Vended
from storage_backends.wrappers.measuring import Kind


class RequestCounts:
    """The metrics of requests in a Prometheus registry. Those with labels of few values are 0 from the start, so that a
    first event is an increase."""

    def __init__(self, registry: CollectorRegistry) -> None:
        collectors = Collectors(OF_REQUESTS, registry)
        self._requests = collectors.counter("arco_requests_total")
        self._durations = collectors.histogram("arco_request_duration_seconds")
        self._calls = collectors.histogram("arco_request_store_calls")
        call_durations = collectors.histogram("arco_store_call_duration_seconds")
        self._call_durations = {kind: call_durations.labels(kind) for kind in get_args(Kind)}
        self._server_errors = collectors.counter("arco_server_errors_total")
        self._stale_keys = collectors.counter("arco_stale_keys_total")
        self._bytes_read = collectors.counter("arco_store_read_bytes_total")
        self._bytes_written = collectors.counter("arco_store_written_bytes_total")
        self._cache_hits = collectors.counter("arco_cache_hits_total")
        self._dropped_writes = collectors.counter("arco_dropped_writes_total")
        self._conflicts = collectors.counter("arco_conflicts_total")
        self._denials = collectors.counter("arco_denials_total")
        self._unknown = collectors.counter("arco_unknown_outcomes_total")
        self._outcomes = collectors.counter("arco_outcomes_total")
        self._vended = collectors.counter("arco_vended_credentials_total")
        self._scan_files = collectors.counter("arco_scan_files_total")
        self._scan_manifests = collectors.counter("arco_scan_manifests_total")
        self._scan_manifests_pruned = collectors.counter("arco_scan_manifests_pruned_total")
        self._scan_cache_hits = collectors.counter("arco_scan_cache_hits_total")
        self._scan_cache_misses = collectors.counter("arco_scan_cache_misses_total")
        for counter, known in (
            (self._unknown, get_args(UnknownReason)),
            (self._outcomes, get_args(Outcome)),
            (self._vended, tuple(Vended)),
            (self._scan_cache_hits, get_args(ScanCache)),
            (self._scan_cache_misses, get_args(ScanCache)),
        ):
            for value in known:
                counter.labels(value)
        self._of_label: dict[tuple[str, int, str], Counter] = {}
        self._of_operation: dict[str, tuple[Histogram, Histogram]] = {}
        """The series that are in use, by labels: to look them up in the library takes longer than to count."""

    def observe(self, log: RequestLog) -> None:
        """Counts a request in Prometheus metrics by operation, class of status and engine, and the duration and number
        of store calls by operation. Also counts, with other labels or none, errors and denials, conflicts, the outcome
        of a change, and the other counts of the request's log."""
        label = (log.operation, log.status // 100, engine_of(log.request.client))
        requests = self._of_label.get(label)
        if requests is None:
            requests = self._of_label[label] = self._requests.labels(label[0], f"{label[1]}xx", label[2])
        requests.inc()
        histograms = self._of_operation.get(log.operation)
        if histograms is None:
            histograms = self._durations.labels(log.operation), self._calls.labels(log.operation)
            self._of_operation[log.operation] = histograms
        durations, calls = histograms
        durations.observe(log.ended - log.began)
        calls.observe(log.store.calls)
        self._count_errors(log)
        self._count_store(log)
        self._count_change(log)

    def _count_errors(self, log: RequestLog) -> None:
        """Counts in Prometheus metrics whether a request failed by the catalog's fault (a 5xx), had a 5xx because of a
        stale key, or was denied a privilege."""
        if log.failed:
            self._server_errors.inc()
        if log.has_stale_key:
            self._stale_keys.inc()
        if log.stats.denied is not None:
            self._denials.labels(log.stats.denied[0]).inc()

    def _count_store(self, log: RequestLog) -> None:
        """Counts in Prometheus metrics a request's calls to the store: durations of calls that are over, bytes (the
        written ones also of calls under way), and cache hits."""
        called = log.store.totals()
        for call in log.store.trace:
            if call.outcome:
                self._call_durations[call.kind].observe(call.ended - call.began)
        for counter, value in (
            (self._bytes_read, called.bytes_read),
            (self._bytes_written, called.bytes_written),
            (self._cache_hits, called.unchanged),
        ):
            if value:
                counter.inc(value)

    def _count_change(self, log: RequestLog) -> None:
        """Counts in Prometheus metrics a request's conflicts, the outcome of its change, dropped writes, vended
        credentials, and the files and manifests of the scan."""
        stats = log.stats
        if stats.conflicts:
            self._conflicts.labels(log.operation).inc(stats.conflicts)
        if stats.outcome is not None:
            self._outcomes.labels(stats.outcome).inc()
        if stats.unknown_outcome is not None:
            self._unknown.labels(stats.unknown_outcome).inc()
        if stats.dropped_writes:
            self._dropped_writes.inc(stats.dropped_writes)
        if stats.vended is not None:
            self._vended.labels(stats.vended).inc()
        if stats.scan is not None:
            self._count_scan(stats.scan)

    def _count_scan(self, scan: ScanCounts) -> None:
        """Counts in Prometheus metrics the files, manifests and lookups of a part of a planned scan."""
        self._scan_files.inc(scan.files)
        self._scan_manifests.inc(scan.manifests)
        self._scan_manifests_pruned.inc(scan.pruned)
        for counter, lookups in ((self._scan_cache_hits, scan.hits), (self._scan_cache_misses, scan.misses)):
            for cache, count in lookups.items():
                counter.labels(cache).inc(count)
