"""The log of one request: summaries of the request and of the response, and the work done for it."""

from dataclasses import field
from typing import NamedTuple

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.protocol.request_stats import RequestStats
from arco_catalog.telemetry.names import UNKNOWN
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wrappers.measuring import Measurement

CLIENT_GONE = 499
"""The status logged for a request without an answer: its client hung up before it was complete."""


class TraceParent(NamedTuple):
    """The header `traceparent` of a request (W3C Trace Context), and the trace id in it: the span of the caller, below
    which the request's span is put."""

    header: str
    trace_id: str


@dataclass(frozen=True, slots=True)
class RequestSummary:
    """What a request log has about the request and the client.

    `method` is a method of HTTP, or a placeholder for any other. `path` is only in lines of text, not in JSON. `client`
    has the names of the client's products, not the free text of User-Agent. `request_id` is the id that the caller or
    the gateway gave the request, and `invocation` the platform's id of the function call."""

    method: str
    path: str
    client: str | None = None
    request_id: str | None = None
    invocation: str | None = None
    trace_parent: TraceParent | None = None


@dataclass(frozen=True, slots=True)
class ResponseSummary:
    """What a request log has about the response: the status, the `error_type` in the body (None for a success), and the
    `size` of the body in bytes."""

    status: int
    error_type: str | None = None
    size: int = 0


@dataclass(slots=True)
class RequestLog:
    """The log of one request. `began` and `ended` are seconds of the clock that measured the store calls of the
    request; `ended_ms` is wall-clock time.

    The middleware sets the other fields when the answer is known, and again when the request is over; the `stats` are
    filled while it runs. `warehouse` is the name of a catalog that exists, or `-`; `operation` and `route` are of the
    route that handled the request; `error` is the class of the exception that was raised. The principal is among the
    `stats`. `is_observed`: the observers have got the log."""

    request: RequestSummary
    request_id: str
    warehouse: str
    store: Measurement
    began: float
    stats: RequestStats = field(init=False)
    operation: str = UNKNOWN
    route: str | None = None
    response: ResponseSummary | None = None
    error: str | None = None
    ended: float = 0.0
    ended_ms: int = 0
    trace_id: str | None = None
    is_observed: bool = False

    def __post_init__(self) -> None:
        self.stats = RequestStats(self.store)
        if self.request.trace_parent is not None:
            self.trace_id = self.request.trace_parent.trace_id

    @property
    def status(self) -> int:
        """The status of the response to a request, or `CLIENT_GONE` if it got none."""
        return CLIENT_GONE if self.response is None else self.response.status

    @property
    def failed(self) -> bool:
        """Whether the catalog failed: the status is 500 or more, and the reason is not an idempotency key that is too
        old."""
        return self.status >= 500 and not self.stats.stale_key

    @property
    def has_stale_key(self) -> bool:
        """Whether the answer is a 5xx only because the client's idempotency key is too old."""
        return self.status >= 500 and self.stats.stale_key

    @property
    def error_type(self) -> str | None:
        """The type of the error that the client got; None for a success, and without a response."""
        return None if self.response is None else self.response.error_type

    def facts(self) -> JsonObject:
        """Returns the fields of a request's log in one flat object, except the path, the time and the name of the
        principal. Names that begin with a capital are dimensions and metrics of CloudWatch. Optional fields without a
        value are left out. If the request is about one table, the object has the ids of that; if about more, only how
        many."""
        stats, called = self.stats, self.store.totals()
        facts: JsonObject = {
            "level": "error" if self.failed else "info",
            "Warehouse": self.warehouse,
            "Operation": self.operation,
            "method": self.request.method,
            "status": self.status,
            "Requests": 1,
            "ServerErrors": int(self.failed),
            "Latency": round(1000 * (self.ended - self.began), 3),
            "StoreCalls": called.calls,
            "StoreDepth": called.depth,
            "StoreBytesRead": called.bytes_read,
            "StoreBytesWritten": called.bytes_written,
            "Conflicts": stats.conflicts,
            "CacheHits": called.unchanged,
            "Denials": int(stats.denied is not None),
            "UnknownOutcomes": int(stats.unknown_outcome is not None),
            "StaleKeys": int(self.has_stale_key),
            "request_id": self.request_id,
        }
        optional: tuple[tuple[str, JsonValue], ...] = (
            ("route", self.route),
            ("answer_bytes", None if self.response is None else self.response.size),
            ("error_type", self.error_type),
            ("error", self.error),
            ("attempt", stats.attempt),
            ("tries", stats.tries or None),
            ("outcome", stats.outcome),
            ("unknown_outcome", stats.unknown_outcome),
            ("dropped_writes", stats.dropped_writes or None),
            ("vended", stats.vended),
            ("scan_files", None if stats.scan is None else stats.scan.files),
            ("scan_manifests", None if stats.scan is None else stats.scan.manifests),
            ("scan_manifests_pruned", None if stats.scan is None else stats.scan.pruned),
            ("scan_cache_hits", None if stats.scan is None else sum(stats.scan.hits.values())),
            ("scan_cache_misses", None if stats.scan is None else sum(stats.scan.misses.values())),
            ("key", stats.key),
            ("principal", stats.principal),
            ("session", stats.session),
            ("ignored_claim", stats.ignored_claim or None),
            ("denied", None if stats.denied is None else stats.denied[0]),
            ("denied_on", None if stats.denied is None else stats.denied[1]),
            ("invocation", self.request.invocation),
            ("trace_id", self.trace_id),
            ("agent", self.request.client),
        )
        for name, value in optional:
            if value is not None:
                facts[name] = value
        if len(stats.entities) == 1:
            ((facts["entity"], facts["table_uuid"]),) = stats.entities.items()
        elif stats.entities:
            facts["entities"] = len(stats.entities)
        return facts
