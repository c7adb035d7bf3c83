"""Telemetry of requests: opens a log for each, and hands it to the exporters."""

import logging
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from arco_catalog.state.runtime import Runtime
from arco_catalog.telemetry.request_log import RequestLog, RequestSummary
from storage_backends.wrappers.measuring import Measurement

_LOG = logging.getLogger(__name__)


class Exporter(Protocol):
    """The interface of objects that write the log of a request to another place, when the request is over: as a line,
    or as spans of a trace."""

    async def export(self, request_log: RequestLog) -> None:
        """Writes the log of a request that is over elsewhere, as a line or as a trace."""
        ...


class Telemetry:
    """Opens the logs of requests, and gives them to the exporters at the end. `dropped` counts the exports that
    failed."""

    def __init__(self, exporters: Sequence[Exporter], runtime: Runtime) -> None:
        self._exporters = exporters
        self._runtime = runtime
        self.dropped = 0
        self._process: str | None = None
        self._numbers = count(1)

    def begin(self, request: RequestSummary, warehouse: str) -> RequestLog:
        """Returns the log of a request that has just arrived and is not handled yet. `warehouse` stays in the log if
        the request names no catalog that exists."""
        store = Measurement()
        return RequestLog(request, request.request_id or self._next_id(), warehouse, store, began=store.clock())

    def _next_id(self) -> str:
        """Returns an id for a request that has none: the process's id and a number. The process's id is made at the
        first call, because the process may have been restored from a snapshot."""
        if self._process is None:
            self._process = self._runtime.ulid()
        return f"{self._process}-{next(self._numbers)}"

    async def export(self, request_log: RequestLog) -> None:
        """Sets the end of a request's log to now, and gives the log to all exporters. If one fails, that is logged and
        counted in `dropped`; the others still get the log, and nothing is raised."""
        request_log.ended, request_log.ended_ms = request_log.store.clock(), self._runtime.now_ms()
        for exporter in self._exporters:
            try:
                await exporter.export(request_log)
            except Exception as error:
                self.dropped += 1
                _LOG.error(
                    "%s failed to export a request, which is missing there; the response is not affected",
                    type(exporter).__name__,
                    exc_info=error,
                )
