"""Traces: a span a request, named and described as its line is, and one for each store call in it."""

import asyncio
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from arco_catalog.state.paths import Paths, record_kind
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.telemetry import spans as module
from arco_catalog.telemetry.setup import function_telemetry, server_telemetry, traces_exporter
from arco_catalog.telemetry.spans import ATTRIBUTES, Spans, open_spans
from storage_backends import StoreUnavailable
from tests.cli.process import finished
from tests.http.logged_service import LoggedService
from tools.support.request_bodies import set_property

T = "/v1/wh/namespaces/db/tables/t"
TRACE, PARENT = "a" * 32, "b" * 16


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
async def service(exporter: InMemorySpanExporter) -> LoggedService:
    """A catalog with the namespace `db` and in it the table `t`, and no lines so far."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    made = LoggedService(exporters=[Spans(provider.get_tracer("test"))])
    await made.namespace("db", "db")
    await made.table("t")
    made.lines.clear()
    exporter.clear()
    return made


def split(exporter: InMemorySpanExporter) -> tuple[ReadableSpan, list[ReadableSpan]]:
    """The one request's span, and its store calls'."""
    finished = exporter.get_finished_spans()
    [request] = [span for span in finished if span.kind is SpanKind.SERVER]
    return request, [span for span in finished if span is not request]


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    return span.attributes or {}


async def test_a_span_has_the_attributes_of_the_line(service: LoggedService, exporter: InMemorySpanExporter) -> None:
    await service.client.post(T, set_property("a", "1"), idempotency_key=service.key())

    request, _ = split(exporter)
    line = service.last
    assert request.name == line["Operation"] == "updateTable"
    assert attributes(request) == {ATTRIBUTES[name]: line[name] for name in ATTRIBUTES if name in line}
    assert attributes(request)["http.route"] == "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    assert attributes(request)["arco.attempt"] == line["attempt"]
    assert request.status.status_code is StatusCode.UNSET


async def test_store_calls_are_its_children_within_its_time(
    service: LoggedService, exporter: InMemorySpanExporter
) -> None:
    await service.serve().get(T)

    request, calls = split(exporter)
    assert [span.name for span in calls] == ["store get"] * 3
    found = [(attributes(span)["arco.store.object"], attributes(span)["arco.store.depth"]) for span in calls]
    assert found == [("manifest", 1), ("pointer", 2), ("metadata", 3)]
    assert {attributes(span)["arco.store.outcome"] for span in calls} == {"Found"}
    begins, ends = request.start_time, request.end_time
    assert begins is not None
    assert ends is not None
    for span in calls:
        assert span.kind is SpanKind.CLIENT
        assert span.parent is not None
        assert span.parent.span_id == request.context.span_id
        assert span.start_time is not None
        assert span.end_time is not None
        assert begins <= span.start_time <= span.end_time <= ends
    assert abs(ends - service.clock.now_ms() * 1_000_000) < 1_000_000


async def test_a_trace_goes_on_from_its_caller(service: LoggedService, exporter: InMemorySpanExporter) -> None:
    await service.client.get(T, traceparent=f"00-{TRACE}-{PARENT}-01", tracestate="hunter2=hunter2")

    request, calls = split(exporter)
    assert f"{request.context.trace_id:032x}" == TRACE == service.last["trace_id"]
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == PARENT
    assert all(span.context.trace_id == request.context.trace_id for span in calls)
    assert not request.context.trace_state


async def test_a_caller_that_does_not_sample_is_heeded(service: LoggedService, exporter: InMemorySpanExporter) -> None:
    await service.client.get(T, traceparent=f"00-{TRACE}-{PARENT}-00")

    assert exporter.get_finished_spans() == ()
    assert service.last["trace_id"] == TRACE


@pytest.mark.parametrize("sent", ["", "00-x", f"00-{'0' * 32}-{PARENT}-01", "hunter2"])
async def test_without_a_caller_a_trace_begins_here(
    service: LoggedService, exporter: InMemorySpanExporter, sent: str
) -> None:
    await service.client.get(T, traceparent=sent)

    request, _ = split(exporter)
    assert request.parent is None
    assert request.context.trace_flags.sampled
    assert service.last["trace_id"] == f"{request.context.trace_id:032x}"


async def test_a_fault_of_ours_is_an_error_and_a_clients_is_not(
    service: LoggedService, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.client.get(f"{T}x")
    request, _ = split(exporter)
    assert request.status.status_code is StatusCode.UNSET
    assert attributes(request)["error.type"] == "NoSuchTableException"
    exporter.clear()

    async def get(*_: object) -> object:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(service.store, "get", get)
    await service.client.get(T)

    request, calls = split(exporter)
    assert request.status.status_code is StatusCode.ERROR
    assert request.status.description is None
    assert {attributes(span)["arco.store.outcome"] for span in calls} <= {"StoreUnavailable", "CancelledError"}


def test_every_record_has_a_kind_that_does_not_contain_its_key() -> None:
    paths = Paths("some/root")
    kinds = {
        paths.manifest: "manifest",
        paths.registry_commit("x"): "registry-commit",
        paths.entity_value("namespace", "x"): "registry-value",
        paths.pointer("x"): "pointer",
        paths.pointers: "pointer",
        paths.transaction("x"): "transaction",
        paths.marker_slot("abc", 0): "marker",
        paths.receipt("pending", "x", 1): "receipt",
        paths.report(date(2026, 1, 1), "x"): "report",
        paths.checkpoints(1): "operational",
        f"{paths.warehouse}/db/t/metadata/x.json": "metadata",
        Paths("").manifest: "manifest",
        f"{paths.state}/core/index/x.json": "registry-index",
        f"{paths.state}/other": "state",
    }

    assert {key: record_kind(key) for key in kinds} == kinds


class TestLeavingBeforeTheAnswer:
    """Nothing runs after the answer where a function is frozen with it."""

    async def test_spans_have_left_when_the_request_is_over(self, exporter: InMemorySpanExporter) -> None:
        left: list[int] = []
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))

        def flush() -> None:
            left.append(len(exporter.get_finished_spans()))

        service = LoggedService(exporters=[Spans(provider.get_tracer("test"), flush)])

        await service.client.get("/openapi.json")

        assert left == [1]

    async def test_a_collector_that_hangs_costs_little_and_is_counted(
        self, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(module, "FLUSH_SECONDS", 0.02)
        hanging = threading.Event()
        spans = Spans(TracerProvider(shutdown_on_exit=False).get_tracer("test"), lambda: hanging.wait(30))
        service = LoggedService(exporters=[spans])
        try:
            async with asyncio.timeout(10):
                answer = await service.client.get("/v1/config")
        finally:
            hanging.set()

        assert (answer.status, spans.unflushed) == (200, 1)
        assert "did not accept the traces" in caplog.text

    async def test_a_collector_that_hangs_keeps_no_large_answer_waiting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is compressed is compressed in a thread, of which a loop has a few."""
        monkeypatch.setattr(module, "FLUSH_SECONDS", 0.02)
        hanging = threading.Event()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        spans = Spans(TracerProvider(shutdown_on_exit=False).get_tracer("test"), lambda: hanging.wait(30))
        service = LoggedService(exporters=[spans])
        try:
            async with asyncio.timeout(10):
                for _ in range(4):
                    await service.client.get("/v1/config")
                await asyncio.to_thread(lambda: None)
        finally:
            hanging.set()

        assert spans.unflushed == 4


class TestConfiguration:
    @pytest.mark.parametrize(
        ("environment", "exporter"),
        [
            ({}, None),
            ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, "otlp"),
            ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, "otlp"),
            ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
            ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, None),
            ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, None),
        ],
    )
    def test_the_usual_variables_say_where_traces_go(
        self, environment: Mapping[str, str], exporter: str | None
    ) -> None:
        assert traces_exporter(environment) == exporter

    @pytest.mark.parametrize(
        "environment",
        [
            {"OTEL_TRACES_EXPORTER": "zipkin"},
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
        ],
    )
    def test_what_can_not_be_followed_is_refused_at_the_start(self, environment: Mapping[str, str]) -> None:
        with pytest.raises(ValueError, match=r"zipkin|grpc"):
            function_telemetry(environment, SystemRuntime())

    def test_a_missing_package_is_reported_at_the_start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, "arco_catalog.telemetry.spans")
        monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)

        with pytest.raises(ValueError, match="install the extra 'otel'"):
            server_telemetry({"OTEL_TRACES_EXPORTER": "otlp"}, SystemRuntime())

    def test_a_server_without_listeners_has_no_telemetry(self) -> None:
        assert server_telemetry({}, SystemRuntime()) is None

    def test_the_service_has_a_name_that_the_environment_can_change(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def name() -> object:
            spans = open_spans("console", flush=False)
            return spans._tracer.resource.attributes["service.name"]  # type: ignore[attr-defined]

        assert name() == "arco-catalog"
        monkeypatch.setenv("OTEL_SERVICE_NAME", "lake")
        assert name() == "lake"

    async def test_nothing_of_it_is_imported_unless_configured(self) -> None:
        look = (
            "import sys, arco_catalog.cli.serve, arco_catalog.telemetry.setup as s;"
            "from arco_catalog.state.runtime import SystemRuntime;"
            "s.function_telemetry({}, SystemRuntime());"
            "print([name for name in sys.modules if name.startswith('opentelemetry')])"
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", look, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )

        assert (await finished(process)).out == "[]\n"
