"""Requests with a key that a catalog may have carried out while it read no keys (docs/design/idempotency.md#rule-13):
what their clients may learn, and how often they may take effect."""

import math
from collections.abc import Iterator

from arco_catalog.iceberg.errors import Refusal
from tests.simulation.programs.history import Asked, Effect, History
from tests.simulation.runtime import EPOCH_MS

TICK = 3.0
"""Seconds by which clocks differ from the store's, which has whole ones."""


def is_unprotected(history: History, request: Asked) -> bool:
    """Whether a request with a key may have been carried out without a marker: the catalog read no keys while it was
    sent, and it had not begun in a marker before the catalog read keys again."""
    ended = _read_again(history, request, request.since)
    return ended is not None and history.begun.get(request.principal, ended) >= ended


def may_stay_open(history: History, request: Asked) -> bool:
    """Whether the outcome may stay unknown: of a request that is unprotected, or whose key has a time when the catalog
    read none, or whose marker was closed by a server that did not know that keys are read again."""
    if request.principal in history.keyless and request.principal not in history.begun:
        return True
    made = math.inf if request.key_ms is None else (request.key_ms - EPOCH_MS) / 1000 - TICK
    return (
        is_unprotected(history, request) or _read_again(history, request, min(made, request.since) - TICK) is not None
    )


def problems(history: History, request: Asked, effects: list[Effect]) -> Iterator[str]:
    """What is wrong with the answers to an unprotected request, and with the number of its effects: a sending that
    begins once keys are read again does not carry it out, and refuses nothing that was."""
    ended = _read_again(history, request, request.since)
    assert ended is not None
    sendings = [start for start in request.starts if start < ended]
    units = {effect.unit for effect in effects}
    if len(units) > len(sendings):
        yield f"{request} was applied {len(units)} times, and sent {len(sendings)} times before its key was read"
    if isinstance(request.told, Refusal) and units and request.answered >= ended:
        yield f"{request} was refused with {request.told!r} once its key was read, and is applied"


def _read_again(history: History, request: Asked, since: float) -> float | None:
    """When the catalog read keys again, for the last time before the request was answered, after it had read none at
    some instant from `since` on. None if it always read them; infinity if it still does not."""
    if request.key_ms is None:
        return None
    until = max(request.until, *request.starts)
    ends = [at for at, _ in history.key_policies[1:]] + [math.inf]
    spans = zip(history.key_policies, ends, strict=True)
    unread = [end for (at, policy), end in spans if not policy.enabled and at <= until and end >= since]
    return max(unread, default=None)
