"""Writes one log line for each request: JSON for machines, or text for people."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

from arco_catalog.telemetry.emf import REQUESTS, MetricLine
from arco_catalog.telemetry.request_log import RequestLog

Write = Callable[[str], object]
"""Takes a line without its end."""


def utc_time(ms: int) -> str:
    """Returns a time in milliseconds since 1970 as text, as logs have it: in UTC with milliseconds."""
    return f"{_second(ms // 1000)}.{ms % 1000:03d}Z"


@lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    """Returns a time in seconds since 1970 as text in UTC, without a zone (`2026-01-31T23:59:59`)."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class JsonLines:
    """Writes the log of each request as one line of JSON, with metrics for CloudWatch if a namespace is given."""

    def __init__(self, write: Write, namespace: str | None = None) -> None:
        self._write = write
        self._line = MetricLine(namespace, REQUESTS)

    async def export(self, request_log: RequestLog) -> None:
        """Writes the log of a request that is over as one line of JSON, with metrics if there is a namespace for them.
        The `time` is the end of the request."""
        self._write(
            self._line.encode(request_log.ended_ms, {"time": utc_time(request_log.ended_ms), **request_log.facts()})
        )


class TextLines:
    """Writes the log of each request as one short line of text: method, path, status and type of error, operation,
    duration, and the number and depth of store calls."""

    def __init__(self, write: Write) -> None:
        self._write = write

    async def export(self, request_log: RequestLog) -> None:
        """Writes the log of a request that is over as one short line of text: method, path, status and type of error,
        operation, duration, and the number and depth of store calls."""
        store, error = request_log.store, request_log.error_type
        request, status = request_log.request, request_log.status
        self._write(
            f"{request.method} {request.path} {status}{f' {error}' if error else ''} {request_log.operation} "
            f"{1000 * (request_log.ended - request_log.began):.1f} ms, {store.calls} store calls {store.depth} deep"
        )
