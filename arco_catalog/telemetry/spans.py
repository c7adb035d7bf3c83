"""Traces by OpenTelemetry: a span a request, and one for each store call in it. This module is imported only if traces
are configured.

Spans are made when the request is over, from its log, so they cost nothing while it runs.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from arco_catalog.state.paths import record_kind
from arco_catalog.telemetry.metrics import OF_REQUESTS
from arco_catalog.telemetry.request_log import RequestLog
from storage_backends.wrappers.measuring import StoreCall

_LOG = logging.getLogger(__name__)

FLUSH_SECONDS = 0.5
"""How long a response waits at most until its spans are sent, in a process that runs nothing after the response."""

ATTRIBUTES: Mapping[str, str] = {
    "method": "http.request.method",
    "route": "http.route",
    "status": "http.response.status_code",
    "answer_bytes": "http.response.body.size",
    "error_type": "error.type",
    "error": "arco.error",
    "Warehouse": "arco.warehouse",
    "entity": "arco.entity",
    "table_uuid": "arco.table_uuid",
    "entities": "arco.entities",
    "attempt": "arco.attempt",
    "tries": "arco.tries",
    "unknown_outcome": "arco.unknown_outcome",
    "key": "arco.key",
    "principal": "arco.principal",
    "session": "arco.session",
    "ignored_claim": "arco.ignored_claim",
    "denied": "arco.denied",
    "denied_on": "arco.denied_on",
    "request_id": "arco.request_id",
    "invocation": "faas.invocation_id",
    **{metric.field: metric.attribute for metric in OF_REQUESTS if metric.field and metric.attribute},
}
"""The fields of a request's log that its span has, with the names of the attributes there."""


class Spans:
    """Exports requests as spans. `flush`, if given, sends all finished spans: `export` then waits for it, at most
    `FLUSH_SECONDS`, and `unflushed` counts the requests for which that was too short."""

    def __init__(self, tracer: Tracer, flush: Callable[[], object] | None = None) -> None:
        self._tracer = tracer
        self._flush = flush
        self._parents = TraceContextTextMapPropagator()
        self.unflushed = 0
        # A thread of its own: flushes that hang would fill the loop's, for which large answers wait to be compressed.
        self._thread = ThreadPoolExecutor(1, "spans")

    async def export(self, request_log: RequestLog) -> None:
        """Makes the span of a request that is over, as an error if the catalog failed, and a span for every store call
        of it, unless the request is not sampled. Sets the trace id of the request's log. With `flush` it waits until
        they are sent, but at most `FLUSH_SECONDS`."""
        parent = request_log.request.trace_parent
        context = self._parents.extract({} if parent is None else {"traceparent": parent.header})

        def wall_ns(seconds: float) -> int:
            return request_log.ended_ms * 1_000_000 - round(1e9 * (request_log.ended - seconds))

        span = self._tracer.start_span(
            request_log.operation,
            context,
            SpanKind.SERVER,
            _attributes(request_log),
            start_time=wall_ns(request_log.began),
        )
        if span.is_recording():
            inside = set_span_in_context(span)
            for call in request_log.store.trace:
                child = self._tracer.start_span(
                    f"store {call.kind}", inside, SpanKind.CLIENT, _about(call), start_time=wall_ns(call.began)
                )
                child.end(wall_ns(call.ended))
        if request_log.failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(wall_ns(request_log.ended))
        request_log.trace_id = f"{span.get_span_context().trace_id:032x}"
        if self._flush is not None:
            await self._flushed(self._flush)

    async def _flushed(self, flush: Callable[[], object]) -> None:
        """Sends the spans at best effort: after `FLUSH_SECONDS` it logs a warning and counts the request in
        `unflushed`, so that the response does not wait long for a collector that is slow or unavailable."""
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await asyncio.get_running_loop().run_in_executor(self._thread, flush)
        except TimeoutError:
            self.unflushed += 1
            _LOG.warning(
                "the OTLP collector did not accept the traces of a request within %g s, which is as long as the "
                "response waits",
                FLUSH_SECONDS,
            )


def _attributes(request_log: RequestLog) -> dict[str, str | int | float]:
    """Returns the attributes of a request's span: the fields of the request's log that are in `ATTRIBUTES`, without
    those that have no text and no number."""
    facts = request_log.facts()
    return {name: value for fact, name in ATTRIBUTES.items() if isinstance(value := facts.get(fact), str | int | float)}


def _about(call: StoreCall) -> dict[str, str | int]:
    """Returns the attributes of the span of a call to the store: the kind of the object (not the key), the outcome,
    `depth`, and the bytes read and written."""
    return {
        "arco.store.object": record_kind(call.key),
        "arco.store.outcome": call.outcome,
        "arco.store.depth": call.depth,
        "arco.store.bytes_read": call.read,
        "arco.store.bytes_written": call.written,
    }


def open_spans(exporter: str, *, flush: bool) -> Spans:
    """Returns an exporter of spans by the OpenTelemetry exporter of this name, `otlp` or `console`. Endpoint, headers,
    sampling and the service's name come from the usual OTEL_* variables. With `flush`, a response waits until the spans
    of the request are sent, but at most `FLUSH_SECONDS`."""
    resource = Resource({"service.name": "arco-catalog"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource)
    processor = BatchSpanProcessor(_exporter(exporter))
    provider.add_span_processor(processor)
    return Spans(provider.get_tracer("arco_catalog"), processor.force_flush if flush else None)


def _exporter(name: str) -> SpanExporter:
    """Returns the exporter `console`, which writes spans on standard output; for any other name the exporter for
    OTLP."""
    if name == "console":
        return ConsoleSpanExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()
