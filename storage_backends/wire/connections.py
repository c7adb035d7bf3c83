"""Sends requests over our own connections to a store of any vendor, and classifies their failures."""

import asyncio
from collections.abc import Mapping

from storage_backends.base import StoreUnavailable
from storage_backends.clock import system_now_ms
from storage_backends.wire.endpoint import Endpoint
from storage_backends.wire.exchange import Ambiguous, OversizedAnswer
from storage_backends.wire.http1 import AnswerLost, AnswerTooLarge, NeverSent, Response, request_head
from storage_backends.wire.pool import Pool, Timeouts, tls_context
from storage_backends.wire.settings import ConnectionSettings

ALWAYS_SENT = {"accept-encoding": "identity", "user-agent": "arco-catalog"}
"""Headers that are never signed, since proxies may change them."""


async def open_pool(endpoint: Endpoint, settings: ConnectionSettings) -> Pool:
    """Returns a pool of connections to `endpoint`, none of which is made yet. Raises `StoreError` for a CA bundle that
    can't be read."""
    tls = await asyncio.to_thread(tls_context, settings.ca_bundle) if endpoint.tls else None
    timeouts = Timeouts(settings.connect_timeout_s, settings.idle_timeout_s, settings.exchange_timeout_s)
    size, max_bytes = settings.max_connections, settings.max_answer_bytes
    return Pool(endpoint.host, endpoint.port, tls, size, timeouts, system_now_ms, max_bytes)


async def exchange(pool: Pool, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Response:
    """Sends one request, once, and returns the response. Raises `StoreUnavailable` if nothing was sent, `Ambiguous`
    without a complete response, and another `StoreError` for an invalid header."""
    return await exchange_bytes(pool, method, head_of(method, target, headers, len(body)), body)


def head_of(method: str, target: str, headers: Mapping[str, str], length: int) -> bytes:
    """Returns the head of a request with these headers, `ALWAYS_SENT` and a body of `length` bytes, as `exchange_bytes`
    sends it. Raises `StoreError` for an invalid header."""
    return request_head(method, target, {**headers, **ALWAYS_SENT}, length)


async def exchange_bytes(pool: Pool, method: str, head: bytes, body: bytes) -> Response:
    """Sends one request, once, and returns the response. Raises `StoreUnavailable` if nothing was sent, and `Ambiguous`
    if no complete response came, with `OversizedAnswer` for one that is too large."""
    try:
        return await pool.send(method, head, body)
    except NeverSent as error:
        raise StoreUnavailable(str(error)) from error
    except AnswerTooLarge as error:
        raise OversizedAnswer(str(error)) from error
    except AnswerLost as error:
        raise Ambiguous(str(error)) from error
