"""One request as it is told of: what came in, what became of it, and what was done for it."""

from dataclasses import dataclass, field

from arco_catalog.http.request_context import Route
from arco_catalog.http.requests import Request
from arco_catalog.http.responses import Response
from arco_catalog.http.telemetry import clients
from arco_catalog.http.telemetry.names import UNKNOWN, operation
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads
from arco_catalog.operations.record import Record
from storage_backends.wrappers.measuring import Measurement

CLIENT_GONE = 499
"""The status told of a request whose client hung up before it was complete. Nobody was answered."""


@dataclass(slots=True)
class Handling:
    """How far the app has come with a request: noted on the way, because any step may be the last.

    `warehouse` is one that there is, whatever the request named. `error` is the class of what was raised.
    """

    warehouse: str
    route: Route | None = None
    response: Response | None = None
    error: str | None = None


@dataclass(slots=True)
class Report:
    """One request. Seconds are of the clock that measured its store calls; `ended_ms` is wall-clock time."""

    request: Request
    handling: Handling
    request_id: str
    invocation: str | None
    store: Measurement
    began: float
    ended: float = 0.0
    ended_ms: int = 0
    trace_id: str | None = None
    record: Record = field(init=False)

    def __post_init__(self) -> None:
        self.record = Record(self.store)

    @property
    def operation(self) -> str:
        """What was asked for."""
        route = self.handling.route
        return UNKNOWN if route is None else operation(route.endpoint)

    @property
    def method(self) -> str:
        """A method of HTTP's own."""
        return clients.method(self.request.method)

    @property
    def status(self) -> int:
        """What was answered."""
        response = self.handling.response
        return CLIENT_GONE if response is None else response.status

    @property
    def failed(self) -> bool:
        """Whether the fault was ours."""
        return self.status >= 500

    @property
    def error_type(self) -> str | None:
        """The type of the error that the client was told, read from the very answer."""
        response = self.handling.response
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
        """All that is told, in one flat object. Names in capitals are CloudWatch's: dimensions and metrics."""
        handling, record, asked = self.handling, self.record, self.store.totals()
        status = self.status
        facts: JsonObject = {
            "level": "error" if status >= 500 else "info",
            "Warehouse": handling.warehouse,
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
            "Conflicts": record.conflicts,
            "CacheHits": asked.unchanged,
            "request_id": self.request_id,
        }
        optional: tuple[tuple[str, JsonValue], ...] = (
            ("route", None if handling.route is None else handling.route.template),
            ("answer_bytes", None if handling.response is None else len(handling.response.body)),
            ("error_type", self.error_type),
            ("error", handling.error),
            ("attempt", record.attempt),
            ("tries", record.tries or None),
            ("outcome", record.outcome),
            ("dropped_writes", record.dropped_writes or None),
            ("key", record.key),
            ("principal", record.principal),
            ("session", record.session),
            ("ignored_claim", record.ignored_claim or None),
            ("invocation", self.invocation),
            ("trace_id", self.trace_id),
            ("agent", clients.client_info(self.request.headers)),
        )
        for name, value in optional:
            if value is not None:
                facts[name] = value
        if len(record.entities) == 1:
            ((facts["entity"], facts["table_uuid"]),) = record.entities.items()
        elif record.entities:
            facts["entities"] = len(record.entities)
        return facts
