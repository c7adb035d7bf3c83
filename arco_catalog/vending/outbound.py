"""Requests to the services that give credentials, over connections of our own. Proxies are not supported."""

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from arco_catalog.iceberg.errors import Unavailable
from storage_backends.backoff import growing_pause_s
from storage_backends.base import StoreError
from storage_backends.wire.http1 import AnswerLost, NeverSent, Response, request_head
from storage_backends.wire.pool import Pool, Timeouts, tls_context

ATTEMPTS = 3
MAX_ANSWER_BYTES = 1 << 20
_TIMEOUTS = Timeouts(connect_s=3.0, idle_s=10.0, exchange_s=15.0)
_MOST_ORIGINS = 16
_CONNECTIONS = 8


class Outbound(Protocol):
    """Sends a request and returns its answer. May send it again, so the request must bear that."""

    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Raises `Unavailable` if no answer comes."""
        ...

    async def close(self) -> None:
        """Closes connections."""
        ...


class WireOutbound:
    """Keeps connections to a few servers, for one event loop at a time. An answer of status 429 or 500 and above is
    asked for again, some times in all."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
        ca_bundle: str | None = None,
    ) -> None:
        self._now_ms = now_ms
        self._sleep = sleep
        self._random = random
        self._ca_bundle = ca_bundle
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pools: OrderedDict[str, Pool] = OrderedDict()

    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        """See `Outbound.send`."""
        host = urlsplit(url).netloc
        failure = f"{host} does not answer"
        for attempt in range(ATTEMPTS):
            if attempt:
                await self._sleep(growing_pause_s(self._random(), attempt))
            try:
                answer = await self._exchange(method, url, headers, body)
            except (NeverSent, AnswerLost) as error:
                failure = f"{host} does not answer: {error}"
                continue
            except StoreError as error:
                raise Unavailable(f"{host} cannot be asked: {error}") from error
            if answer.status != 429 and answer.status < 500:
                return answer
            failure = f"{host} answered with status {answer.status}"
        raise Unavailable(failure)

    async def close(self) -> None:
        """See `Outbound.close`."""
        pools, self._pools = self._pools, OrderedDict()
        if self._loop is asyncio.get_running_loop():
            for pool in pools.values():
                await pool.close()

    async def _exchange(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        parts = urlsplit(url)
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        sent = {"host": parts.netloc, **headers, "accept-encoding": "identity", "user-agent": "arco-catalog"}
        pool = await self._pool(parts.scheme, parts.hostname or "", parts.port)
        return await pool.send(method, request_head(method, target, sent, len(body)), body)

    async def _pool(self, scheme: str, host: str, port: int | None) -> Pool:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._pools = loop, OrderedDict()
        tls = await self._tls() if scheme == "https" else None
        port = port or (443 if tls else 80)
        origin = f"{scheme}://{host}:{port}"
        pool = self._pools.get(origin)
        if pool is None:
            pool = Pool(host, port, tls, _CONNECTIONS, _TIMEOUTS, self._now_ms, MAX_ANSWER_BYTES)
            self._pools[origin] = pool
        self._pools.move_to_end(origin)
        if len(self._pools) > _MOST_ORIGINS:
            _, oldest = self._pools.popitem(last=False)
            await oldest.close()
        return pool

    async def _tls(self) -> ssl.SSLContext:
        return await asyncio.to_thread(tls_context, self._ca_bundle)
