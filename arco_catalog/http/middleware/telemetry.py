"""The outermost layer: opens the log of each request, fills it, gives it to the observers before the response is
sent, and exports it afterwards."""

from functools import partial

from arco_catalog.http.clients import client_info, invocation, method, path, request_id, trace_parent
from arco_catalog.http.requests import Handle, Request
from arco_catalog.http.responses import Response
from arco_catalog.protocol.request_stats import collect_stats
from arco_catalog.telemetry.names import operation
from arco_catalog.telemetry.request_log import RequestLog, RequestSummary, ResponseSummary
from arco_catalog.telemetry.telemetry import Telemetry


class RequestTelemetry:
    """The layer that gives each request an id, and reports it to `telemetry` with what became of it. A request that
    names no warehouse, or one that does not exist, is reported under `usual_warehouse`."""

    def __init__(self, inner: Handle, telemetry: Telemetry, usual_warehouse: str) -> None:
        self._inner = inner
        self._telemetry = telemetry
        self._usual_warehouse = usual_warehouse

    async def handle(self, request: Request) -> Response:
        """Gives the request an id, passes it on, and returns its response. The class of an exception is logged, and the
        exception is raised. In both cases the log of the request is exported afterwards. Observers get the
        log before the response is sent, so that they have each request that was answered, even if this process is
        killed."""
        log = self._telemetry.begin(_request_summary(request), self._usual_warehouse)
        request.id = log.request_id
        if self._telemetry.has_observers:
            request.before_answer = partial(self._observe, log, request)
        try:
            with collect_stats(log.stats):
                return await self._inner(request)
        except BaseException as error:
            request.error = type(error).__name__
            raise
        finally:
            _fill(log, request)
            await self._telemetry.export(log)

    def _observe(self, log: RequestLog, request: Request) -> None:
        """Adds the known fields of the request to the log, and gives it to the observers. Called before the response is
        sent."""
        _fill(log, request)
        self._telemetry.observe(log)


def _request_summary(request: Request) -> RequestSummary:
    """Returns the fields for logs and spans of a request before it is handled."""
    headers = request.headers
    return RequestSummary(
        method(request.method),
        path(request.raw_path),
        client=client_info(headers),
        request_id=request_id(request.scope, headers),
        invocation=invocation(request.scope),
        trace_parent=trace_parent(headers),
    )


def _fill(log: RequestLog, request: Request) -> None:
    """Copies the error, warehouse, route and response of a request into its log, as far as they are known. A request
    that failed early has no route or no response."""
    log.error = request.error
    if request.warehouse is not None:
        log.warehouse = request.warehouse
    if request.route is not None:
        log.operation, log.route = operation(request.route.endpoint), request.route.template
    if request.response is not None:
        response = request.response
        log.response = ResponseSummary(response.status, response.error_type, len(response.body))
