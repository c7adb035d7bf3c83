"""Listens to requests: opens a report around each, and hands it to whoever tells of it."""

import logging
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from arco_catalog.http.asgi import Scope
from arco_catalog.http.requests import Request
from arco_catalog.http.telemetry import clients
from arco_catalog.http.telemetry.report import Handling, Report
from arco_catalog.state.runtime import Runtime
from storage_backends.wrappers.measuring import Measurement

_LOG = logging.getLogger(__name__)


class Teller(Protocol):
    """Somebody who tells of requests."""

    async def tell(self, report: Report) -> None:
        """Tells of one that is over."""
        ...


class Telemetry:
    """What an app tells of its requests, and to whom. `untold` counts the reports that a teller failed at."""

    def __init__(self, tellers: Sequence[Teller], runtime: Runtime) -> None:
        self._tellers = tellers
        self._runtime = runtime
        self.untold = 0
        self._process: str | None = None
        self._numbers = count(1)

    def begin(self, scope: Scope, request: Request, handling: Handling) -> Report:
        """Opens the report of a request that has just come in, and is about to be handled."""
        parent = clients.trace_parent(request.headers)
        store = Measurement()
        return Report(
            request=request,
            handling=handling,
            request_id=clients.request_id(scope, request.headers) or self._next_id(),
            invocation=clients.invocation(scope),
            store=store,
            began=store.clock(),
            trace_id=None if parent is None else parent[1],
        )

    def _next_id(self) -> str:
        """An id for a request that has none: the process's own, and a number. It is made when it is first needed, for a
        process may have been restored from a snapshot."""
        if self._process is None:
            self._process = self._runtime.ulid()
        return f"{self._process}-{next(self._numbers)}"

    async def tell(self, report: Report) -> None:
        """Tells of a request that is over. It has been answered, so a teller that fails is logged and no more."""
        report.ended, report.ended_ms = report.store.clock(), self._runtime.now_ms()
        for teller in self._tellers:
            try:
                await teller.tell(report)
            except Exception as error:
                self.untold += 1
                _LOG.error("a request could not be reported to telemetry", exc_info=error)
