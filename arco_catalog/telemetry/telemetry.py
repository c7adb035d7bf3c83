"""Telemetry of requests: opens a log for each, and hands it to the observers and exporters."""

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
        """Writes the log of a request that is over somewhere, such as to standard output or to a collector of
        traces."""
        ...


class Observer(Protocol):
    """The interface of objects that get the log of a request before its answer is sent."""

    def observe(self, log: RequestLog) -> None:
        """Counts or records a request before the answer is sent: the answer is known, or the request has failed."""
        ...


class Telemetry:
    """Opens the logs of requests, and gives them to the observers before the answer, and to the exporters at the end.
    `dropped` counts how often one of these failed to take a log."""

    def __init__(self, exporters: Sequence[Exporter], runtime: Runtime, observers: Sequence[Observer] = ()) -> None:
        self._exporters = exporters
        self._observers = observers
        self._runtime = runtime
        self.dropped = 0
        self._process: str | None = None
        self._numbers = count(1)

    def begin(self, request: RequestSummary, warehouse: str) -> RequestLog:
        """Returns the log of a request that has just arrived and is not handled yet, with the request's own id, or else
        a new one. `warehouse` stays in the log if the request names no catalog that exists."""
        store = Measurement()
        return RequestLog(request, request.request_id or self._next_id(), warehouse, store, began=store.clock())

    def _next_id(self) -> str:
        """Returns an id for a request that has none: the process's id and a number. The process's id is made at the
        first call, because the process may have been restored from a snapshot."""
        if self._process is None:
            self._process = self._runtime.ulid()
        return f"{self._process}-{next(self._numbers)}"

    @property
    def has_observers(self) -> bool:
        """Whether there are observers, so that `observe` must be called before the answer is sent."""
        return bool(self._observers)

    def observe(self, request_log: RequestLog) -> None:
        """Sets the end of a request's log to now, and gives the log to all observers. Does nothing if they have got it
        already, or if there are none. If one fails, that is logged and counted in `dropped`; the others still get the
        log, and nothing is raised."""
        if request_log.is_observed or not self._observers:
            return
        request_log.is_observed = True
        request_log.ended = request_log.store.clock()
        for observer in self._observers:
            try:
                observer.observe(request_log)
            except Exception as error:
                self._drop(observer, error)

    async def export(self, request_log: RequestLog) -> None:
        """Gives a request's log to the observers, unless they have got it, sets its end to now, and gives it to all
        exporters. If one fails, that is logged and counted in `dropped`; the others still get the log, and nothing is
        raised."""
        self.observe(request_log)
        request_log.ended, request_log.ended_ms = request_log.store.clock(), self._runtime.now_ms()
        for exporter in self._exporters:
            try:
                await exporter.export(request_log)
            except Exception as error:
                self._drop(exporter, error)

    def _drop(self, where: Exporter | Observer, error: Exception) -> None:
        """Counts and logs that an exporter or observer failed to take the log of a request."""
        self.dropped += 1
        _LOG.error(
            "%s failed to export a request, which is missing or incomplete there; the response is not affected",
            type(where).__name__,
            exc_info=error,
        )
