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


class Counter(Protocol):
    """The interface of objects that count requests."""

    def count(self, log: RequestLog) -> None:
        """Counts a request, which is answered or has failed."""
        ...


class Telemetry:
    """Opens the logs of requests, gives them to the `counter`, if there is one, before the answer, and to the exporters
    at the end. `dropped` counts the requests that one of them failed to take."""

    def __init__(self, exporters: Sequence[Exporter], runtime: Runtime, counter: Counter | None = None) -> None:
        self._exporters = exporters
        self._counter = counter
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

    @property
    def counts(self) -> bool:
        """Whether there is a counter, so that `count` must be called before the answer is sent."""
        return self._counter is not None

    def count(self, request_log: RequestLog) -> None:
        """Sets the end of a request's log to now, and gives the log to the counter. Does nothing if the counter has got
        it already, or if there is none. A failure is logged and counted in `dropped`, and nothing is raised."""
        if self._counter is None or request_log.in_metrics:
            return
        request_log.in_metrics = True
        request_log.ended = request_log.store.clock()
        try:
            self._counter.count(request_log)
        except Exception as error:
            self._drop(self._counter, error)

    async def export(self, request_log: RequestLog) -> None:
        """Counts the request unless `count` did, sets the end of its log to now, and gives the log to all exporters.
        If one fails, that is logged and counted in `dropped`; the others still get the log, and nothing is raised."""
        self.count(request_log)
        request_log.ended, request_log.ended_ms = request_log.store.clock(), self._runtime.now_ms()
        for exporter in self._exporters:
            try:
                await exporter.export(request_log)
            except Exception as error:
                self._drop(exporter, error)

    def _drop(self, where: Exporter | Counter, error: Exception) -> None:
        self.dropped += 1
        _LOG.error(
            "%s failed to export a request, which is missing there; the response is not affected",
            type(where).__name__,
            exc_info=error,
        )
