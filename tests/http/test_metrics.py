"""Requests counted for Prometheus, and one table of names for lines, spans, CloudWatch and Prometheus."""

import asyncio
import sys
from collections.abc import Mapping
from typing import get_args

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from arco_catalog.http.app import create_app
from arco_catalog.http.asgi import Message
from arco_catalog.iceberg.errors import UnknownReason
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.protocol.request_stats import Outcome, RequestStats, ScanCache, ScanCounts
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.tasks.work_stats import ExpiryStats, WorkStats
from arco_catalog.telemetry.collection_line import collection_line
from arco_catalog.telemetry.collectors import page_of
from arco_catalog.telemetry.engines import ENGINES, OTHER, engine_of
from arco_catalog.telemetry.lines import JsonLines
from arco_catalog.telemetry.metrics import METRICS, OF_COLLECTIONS, OF_REQUESTS, OF_TASKS, OF_WALKS, Metric
from arco_catalog.telemetry.reconcile_line import reconcile_line
from arco_catalog.telemetry.request_counts import RequestCounts
from arco_catalog.telemetry.request_log import RequestLog, RequestSummary, ResponseSummary
from arco_catalog.telemetry.task_counts import REMEMBERED_MS, TaskCounts
from arco_catalog.telemetry.tasks_line import tasks_line
from arco_catalog.telemetry.telemetry import Telemetry
from arco_catalog.vending.service import Outcome as Vended
from storage_backends import StoreUnavailable
from storage_backends.wrappers.measuring import Measurement
from tests.cli.process import finished
from tests.http.logged_service import NAMESPACE, LoggedService
from tests.support.fake_runtime import FakeRuntime
from tools.support.asgi_client import Client, scope_of
from tools.support.request_bodies import set_property

T = "/v1/wh/namespaces/db/tables/t"
OPEN_METRICS = "application/openmetrics-text"


class CountedService(LoggedService):
    """A service that counts its requests, too."""

    registry: CollectorRegistry

    def serve(self, **settings: object) -> Client:
        self.registry = CollectorRegistry()
        lines = JsonLines(self.lines.append, NAMESPACE)
        telemetry = Telemetry([lines], self.clock, [RequestCounts(self.registry)])
        return Client(create_app({"wh": self.catalog(**settings)}, self.options, telemetry))

    def value(self, name: str, **labels: str) -> float:
        """The value of a series, 0 if there is none."""
        return self.registry.get_sample_value(name, labels) or 0.0

    def total(self, name: str) -> float:
        """The sum over all labels."""
        return sum(sample.value for sample in samples(self.registry) if sample.name == name)


def samples(registry: CollectorRegistry) -> list[Sample]:
    return [sample for family in registry.collect() for sample in family.samples]


@pytest.fixture
async def service() -> CountedService:
    made = CountedService()
    await made.namespace("db", "db")
    await made.table("t")
    return made


async def test_counts_agree_with_the_lines(service: CountedService) -> None:
    service.lines.clear()
    client = service.serve()
    await client.get(T, user_agent="Trino/476")
    await client.post(T, set_property("a", "1"), user_agent="PyIceberg/0.12.0")
    await client.get(f"{T}s")

    lines = service.parsed_lines
    assert service.value("arco_requests_total", operation="loadTable", status="2xx", engine="trino") == 1
    assert service.value("arco_requests_total", operation="updateTable", status="2xx", engine="pyiceberg") == 1
    assert service.value("arco_requests_total", operation="loadTable", status="4xx", engine="other") == 1
    assert service.value("arco_outcomes_total", outcome="moved") == 1
    for field, series in (
        ("StoreCalls", "arco_request_store_calls_sum"),
        ("StoreBytesRead", "arco_store_read_bytes_total"),
        ("StoreBytesWritten", "arco_store_written_bytes_total"),
        ("CacheHits", "arco_cache_hits_total"),
        ("Requests", "arco_request_duration_seconds_count"),
        ("StoreCalls", "arco_store_call_duration_seconds_count"),
    ):
        counts = [line[field] for line in lines]
        assert service.total(series) == sum(count for count in counts if isinstance(count, int)), series


async def test_a_failure_of_the_store_is_an_error_of_the_server(service: CountedService) -> None:
    async def get(*_: object) -> object:
        raise StoreUnavailable("it is gone")

    service.store.get = get  # type: ignore[method-assign,assignment]
    await service.client.get(T)

    assert service.value("arco_server_errors_total") == 1
    assert service.value("arco_requests_total", operation="loadTable", status="5xx", engine="other") == 1


async def test_a_request_is_counted_before_any_of_its_answer_is_sent(service: CountedService) -> None:
    client, seen = service.serve(), list[float]()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        seen.append(service.value("arco_requests_total", operation="loadTable", status="2xx", engine="other"))

    await client.app(scope_of("GET", T, {}), receive, send)

    assert set(seen) == {1.0}


async def test_a_request_whose_client_has_gone_is_counted_once(service: CountedService) -> None:
    client = service.serve()

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        raise AssertionError("no client is left")

    await client.app(scope_of("POST", T, {"content-type": "application/json"}), receive, send)

    assert service.value("arco_requests_total", operation="updateTable", status="4xx", engine="other") == 1
    assert service.total("arco_requests_total") == 1


class Broken:
    def observe(self, log: RequestLog) -> None:
        raise RuntimeError("no room")


async def test_a_failure_to_count_fails_no_request(service: CountedService, caplog: pytest.LogCaptureFixture) -> None:
    telemetry = Telemetry([], service.clock, [Broken()])
    client = Client(create_app({"wh": service.catalog()}, service.options, telemetry))

    assert (await client.get(T)).status == 200
    assert telemetry.dropped == 1
    assert "Broken failed to export a request" in caplog.text


SCAN = ScanCounts(5, 2, 7, hits={"lists": 1, "delete_index": 4}, misses={"files": 3})


def counted(stats: RequestStats, status: int = 200) -> CollectorRegistry:
    """The registry after a request with these statistics."""
    registry = CollectorRegistry()
    log = RequestLog(RequestSummary("POST", "/"), "id", "wh", Measurement(), 0.0)
    log.stats, log.operation, log.response, log.ended = stats, "updateTable", ResponseSummary(status), 0.25
    RequestCounts(registry).observe(log)
    return registry


@pytest.mark.parametrize(
    ("stats", "status", "series", "labels", "value"),
    [
        (RequestStats(conflicts=3), 200, "arco_conflicts_total", {"operation": "updateTable"}, 3),
        (RequestStats(denied=("TABLE_DROP", "table")), 403, "arco_denials_total", {"privilege": "TABLE_DROP"}, 1),
        (RequestStats(dropped_writes=2), 200, "arco_dropped_writes_total", {}, 2),
        (RequestStats(vended="refused"), 200, "arco_vended_credentials_total", {"result": "refused"}, 1),
        (RequestStats(scan=SCAN), 200, "arco_scan_files_total", {}, 5),
        (RequestStats(scan=SCAN), 200, "arco_scan_manifests_total", {}, 2),
        (RequestStats(scan=SCAN), 200, "arco_scan_manifests_pruned_total", {}, 7),
        (RequestStats(scan=SCAN), 200, "arco_scan_cache_hits_total", {"cache": "lists"}, 1),
        (RequestStats(scan=SCAN), 200, "arco_scan_cache_hits_total", {"cache": "delete_index"}, 4),
        (RequestStats(scan=SCAN), 200, "arco_scan_cache_misses_total", {"cache": "files"}, 3),
        (RequestStats(scan=SCAN), 200, "arco_scan_cache_misses_total", {"cache": "lists"}, 0),
        (RequestStats(outcome="replayed"), 200, "arco_outcomes_total", {"outcome": "replayed"}, 1),
        (RequestStats(unknown_outcome="undecided"), 500, "arco_unknown_outcomes_total", {"reason": "undecided"}, 1),
        (RequestStats(stale_key=True), 500, "arco_stale_keys_total", {}, 1),
        (RequestStats(stale_key=True), 500, "arco_server_errors_total", {}, 0),
        (RequestStats(), 503, "arco_server_errors_total", {}, 1),
        (RequestStats(), 200, "arco_request_duration_seconds_sum", {"operation": "updateTable"}, 0.25),
    ],
)
def test_what_happened_to_a_change_is_counted(
    stats: RequestStats, status: int, series: str, labels: Mapping[str, str], value: float
) -> None:
    assert counted(stats, status).get_sample_value(series, dict(labels)) == value


def test_what_has_few_values_is_zero_before_it_happens() -> None:
    registry = CollectorRegistry()
    RequestCounts(registry)

    zero = {(sample.name, *sample.labels.values()) for sample in samples(registry) if sample.value == 0}
    for name, values in (
        ("arco_unknown_outcomes_total", get_args(UnknownReason)),
        ("arco_outcomes_total", get_args(Outcome)),
        ("arco_vended_credentials_total", Vended),
        ("arco_scan_cache_hits_total", get_args(ScanCache)),
        ("arco_scan_cache_misses_total", get_args(ScanCache)),
    ):
        assert {(name, value) for value in values} <= zero


@pytest.mark.parametrize(
    ("client", "label"),
    [
        ("Trino/476", "trino"),
        ("Apache-HttpClient/5.6 Java/17.0.15 Iceberg/1.11.0", "iceberg-java"),
        ("Spark/4.1 Iceberg/1.11.0", "spark"),
        ("python-requests/2.32 PyIceberg/0.12.0", "pyiceberg"),
        ("made-up/1", OTHER),
        ("trino-not/1", OTHER),
        (None, OTHER),
    ],
)
def test_a_client_has_one_of_a_few_labels(client: str | None, label: str) -> None:
    assert engine_of(client) == label
    assert label in {*ENGINES.values(), OTHER}


async def test_labels_are_few_whatever_clients_send(service: CountedService) -> None:
    client = service.serve()
    for number in range(50):
        await client.send(f"M{number}", f"/v1/wh/{number}", headers={"user-agent": f"agent-{number}/1 {number}"})

    assert [sample.labels for sample in samples(service.registry) if sample.name == "arco_requests_total"] == [
        {"operation": "unknown", "status": "4xx", "engine": "other"}
    ]


async def test_no_name_of_a_table_namespace_or_catalog_is_on_the_page(service: CountedService) -> None:
    made = CountedService()
    await made.namespace("secretspace", "secretspace")
    await made.client.get("/v1/wh/namespaces/secretspace/tables/secrettable")
    body, _ = page_of(made.registry)(OPEN_METRICS)

    assert b"secret" not in body
    assert b'"wh"' not in body


@pytest.mark.parametrize("accept", ["", "*/*", "text/plain;version=0.0.4", f"{OPEN_METRICS};version=1.0.0,*/*;q=0.1"])
async def test_a_page_has_the_format_that_the_scrape_accepts(service: CountedService, accept: str) -> None:
    body, content_type = page_of(service.registry)(accept)

    if OPEN_METRICS in accept:
        families = {family.name for family in text_string_to_metric_families(body.decode())}
        assert content_type.startswith(f"{OPEN_METRICS}; version=1.0.0")
        assert "arco_requests" in families
    else:
        assert content_type.startswith("text/plain; version=0.0.4")
    assert b"_created" not in body


class TestTasks:
    def test_are_counted_and_the_age_is_that_of_the_oldest_of_any_catalog(self) -> None:
        registry, clock = CollectorRegistry(), FakeRuntime()
        counts = TaskCounts(registry, clock.now_ms)
        counts.count("one", WorkStats(executed=3, completed=1, failed=1, retried=1, oldest_due_ms=5_000))
        counts.count("two", WorkStats(leases_lost=2, given_back=1, oldest_due_ms=9_000, due=2, scheduled=7))
        counts.count("one", WorkStats(executed=1, oldest_due_ms=0, due=1, scheduled=0))

        value = registry.get_sample_value
        assert value("arco_tasks_executed_total") == 4
        assert value("arco_tasks_completed_total") == value("arco_tasks_failed_total") == 1
        assert value("arco_tasks_retried_total") == value("arco_tasks_given_back_total") == 1
        assert value("arco_leases_lost_total") == 2
        assert value("arco_tasks_due_age_seconds") == 9
        assert value("arco_tasks", {"state": "due"}) == 3
        assert value("arco_tasks", {"state": "scheduled"}) == 7
        assert value("arco_tasks_observed_timestamp_seconds") == clock.now_ms() / 1000

    def test_of_expiries_have_counts_of_what_expired(self) -> None:
        registry = CollectorRegistry()
        counts = TaskCounts(registry, FakeRuntime().now_ms)
        for name in ("one", "two"):
            counts.count(name, WorkStats(expiries=ExpiryStats(5, 4, 3, 2, 1)))

        names = ("expired_snapshots", "cleaned_snapshots", "expired_files", "expiries_held_back", "expiries_failed")
        assert [registry.get_sample_value(f"arco_{name}_total") for name in names] == [10, 8, 6, 4, 2]

    def test_of_a_feed_with_a_subscription_without_a_task_have_the_lag_of_the_feed(self) -> None:
        registry = CollectorRegistry()
        TaskCounts(registry, FakeRuntime().now_ms).count("one", WorkStats(feed=FeedStats(waiting=1, lag_ms=2_000)))

        assert registry.get_sample_value("arco_events_lag_seconds") == 2
        assert registry.get_sample_value("arco_events_failed_total") == 1

    def test_of_a_catalog_that_is_gone_count_no_longer(self) -> None:
        registry, clock = CollectorRegistry(), FakeRuntime()
        counts = TaskCounts(registry, clock.now_ms)
        counts.count("dropped", WorkStats(oldest_due_ms=9_000))
        clock.ms += REMEMBERED_MS
        counts.count("kept", WorkStats(oldest_due_ms=1_000))

        assert registry.get_sample_value("arco_tasks_due_age_seconds") == 1

    def test_that_could_not_be_listed_leave_the_time_of_the_last_look(self) -> None:
        registry, clock = CollectorRegistry(), FakeRuntime()
        counts = TaskCounts(registry, clock.now_ms)
        counts.count("one", WorkStats(oldest_due_ms=5_000))
        seen = clock.now_ms()
        clock.ms += 60_000
        counts.count("one", WorkStats(error="it is gone"))

        assert registry.get_sample_value("arco_task_looks_failed_total") == 1
        assert registry.get_sample_value("arco_tasks_due_age_seconds") == 5
        assert registry.get_sample_value("arco_tasks_observed_timestamp_seconds") == seen / 1000


class TestTheTable:
    def test_has_each_name_once(self) -> None:
        for names in (
            [metric.field for metric in METRICS],
            [metric.attribute for metric in METRICS],
            [None if metric.series is None else metric.series.name for metric in METRICS],
        ):
            given = [name for name in names if name is not None]
            assert len(given) == len(set(given))

    def test_names_series_as_prometheus_wants_it(self) -> None:
        for metric in METRICS:
            if metric.series is not None:
                assert metric.series.name.startswith("arco_")
                assert metric.series.name.endswith("_total") == (metric.series.kind == "counter"), metric
                assert bool(metric.series.buckets) == (metric.series.kind == "histogram"), metric

    @pytest.mark.parametrize(
        ("metrics", "line"),
        [
            (
                OF_TASKS,
                tasks_line("wh", WorkStats(), at_ms=0, namespace=None)
                + tasks_line("wh", WorkStats(error="x"), at_ms=0, namespace=None),
            ),
            (OF_WALKS, reconcile_line("wh", ReconcileStats(), began_ms=0, ended_ms=1, namespace=None)),
            (OF_COLLECTIONS, collection_line("wh", completed=True, collected=1, left=1, at_ms=0, namespace=None)),
        ],
    )
    def test_has_fields_that_the_lines_have(self, metrics: tuple[Metric, ...], line: str) -> None:
        assert [metric.field for metric in metrics if metric.field and f'"{metric.field}":' not in line] == []

    def test_has_fields_that_the_line_of_a_request_has(self) -> None:
        log = RequestLog(RequestSummary("POST", "/"), "id", "wh", Measurement(), 0.0)
        log.stats = RequestStats(outcome="moved", dropped_writes=1, vended="issued", scan=SCAN)
        facts = log.facts()

        assert [metric.field for metric in OF_REQUESTS if metric.field and metric.field not in facts] == []


async def test_the_client_library_is_imported_only_by_a_server_with_a_port_for_metrics() -> None:
    look = (
        "import sys, arco_catalog.cli.serve, arco_catalog.cli.workers, arco_catalog.telemetry.setup as s;"
        "from arco_catalog.state.runtime import SystemRuntime;"
        "s.function_telemetry({}, SystemRuntime()); import arco_catalog.http.function_app;"
        "print([name for name in sys.modules if name.startswith('prometheus')])"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", look, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )

    assert (await finished(process)).out == "[]\n"
