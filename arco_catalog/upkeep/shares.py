"""The shares of a run's time that all its catalogs have."""

from dataclasses import replace

from arco_catalog.protocol.operation_request import OperationRequest


def share_of(request: OperationRequest, now_ms: int, number: int, margin_ms: int = 0) -> OperationRequest:
    """Returns the request for the next of `number` catalogs that are left: until its deadline, it has an equal share of
    the time that is left of `request`. The last `margin_ms` of that time, in which nothing new begins, are not divided:
    each catalog has them whole, though never beyond the deadline of `request`."""
    share_ms = (request.deadline_ms - margin_ms - now_ms) // number + margin_ms
    return replace(request, deadline_ms=min(request.deadline_ms, now_ms + share_ms))
