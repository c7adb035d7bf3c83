"""The log of one request: what came in, how it was answered, and what was done for it."""

from dataclasses import dataclass, field

from arco_catalog.http.request_context import Route
from arco_catalog.http.requests import Request
from arco_catalog.http.responses import Response
from arco_catalog.http.telemetry import clients
from arco_catalog.http.telemetry.names import UNKNOWN, operation
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads
from arco_catalog.protocol.request_stats import RequestStats
from storage_backends.wrappers.measuring import Measurement

CLIENT_GONE = 499
"""The status logged for a request whose client hung up before it was complete. It was not answered."""


@dataclass(slots=True)
class RequestState:
    """How far the app has come with a request: set step by step, because any step may be the last.

    `warehouse` is one that there is, whatever the request named. `error` is the class of what was raised.
    """

    warehouse: str
    route: Route | None = None
    response: Response | None = None
    error: str | None = None


@dataclass(slots=True)
class RequestLog:
    """The log of one request. Seconds are of the clock that measured its store calls; `ended_ms` is wall-clock time."""

    request: Request
    state: RequestState
    request_id: str
    invocation: str | None
    store: Measurement
    began: float
    ended: float = 0.0
    ended_ms: int = 0
    trace_id: str | None = None
    stats: RequestStats = field(init=False)

    def __post_init__(self) -> None:
        self.stats = RequestStats(self.store)

    @property
    def operation(self) -> str:
        """What was asked for."""
        route = self.state.route
        return UNKNOWN if route is None else operation(route.endpoint)

    @property
    def method(self) -> str:
        """A method of HTTP's own."""
        return clients.method(self.request.method)

    @property
    def status(self) -> int:
        """What was answered."""
        response = self.state.response
        return CLIENT_GONE if response is None else response.status

    @property
    def failed(self) -> bool:
        """Whether the fault was ours."""
        return self.status >= 500

    @property
    def error_type(self) -> str | None:
        """The type of the error that the client got, read from the response."""
        response = self.state.response
        if response is None or response.status < 400:
            return None
        try:
            body = loads(response.body)
        except MalformedJson:
            return None
        error = body.get("error") if isinstance(body, dict) else None
        kind = error.get("type") if isinstance(error, dict) else None
        return kind if isinstance(kind, str) else None

    def facts(self) -> JsonObject:
        """All fields of the log, in one flat object. Names in capitals are CloudWatch's: dimensions and metrics."""
        state, stats, asked = self.state, self.stats, self.store.totals()
        status = self.status
        facts: JsonObject = {
            "level": "error" if status >= 500 else "info",
            "Warehouse": state.warehouse,
            "Operation": self.operation,
            "method": self.method,
            "status": status,
            "Requests": 1,
            "ServerErrors": int(status >= 500),
            "Latency": round(1000 * (self.ended - self.began), 3),
            "StoreCalls": asked.calls,
            "StoreDepth": asked.depth,
            "StoreBytesRead": asked.bytes_read,
            "StoreBytesWritten": asked.bytes_written,
            "Conflicts": stats.conflicts,
            "CacheHits": asked.unchanged,
            "request_id": self.request_id,
        }
        optional: tuple[tuple[str, JsonValue], ...] = (
            ("route", None if state.route is None else state.route.template),
            ("answer_bytes", None if state.response is None else len(state.response.body)),
            ("error_type", self.error_type),
            ("error", state.error),
            ("attempt", stats.attempt),
            ("tries", stats.tries or None),
            ("outcome", stats.outcome),
            ("dropped_writes", stats.dropped_writes or None),
            ("key", stats.key),
            ("principal", stats.principal),
            ("session", stats.session),
            ("ignored_claim", stats.ignored_claim or None),
            ("invocation", self.invocation),
            ("trace_id", self.trace_id),
            ("agent", clients.client_info(self.request.headers)),
        )
        for name, value in optional:
            if value is not None:
                facts[name] = value
        if len(stats.entities) == 1:
            ((facts["entity"], facts["table_uuid"]),) = stats.entities.items()
        elif stats.entities:
            facts["entities"] = len(stats.entities)
        return facts
