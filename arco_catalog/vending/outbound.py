"""Sends requests to the services that give credentials, over connections that this module opens. Proxies are not
supported."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from arco_catalog.iceberg.errors import Unavailable
from storage_backends.backoff import growing_pause_s
from storage_backends.base import StoreError, StoreUnavailable
from storage_backends.wire.connections import exchange, open_pool
from storage_backends.wire.endpoint import parse_endpoint
from storage_backends.wire.http1 import Response
from storage_backends.wire.pool import Pool
from storage_backends.wire.settings import ConnectionSettings

ATTEMPTS = 3
MAX_ANSWER_BYTES = 1 << 20
EXCHANGE_S = 15.0
_MAX_ORIGINS = 16
_CONNECTIONS = 8


class Outbound(Protocol):
    """The interface of what sends requests to the services that give credentials. It may send one more than once, so a
    request must have no other effect if it is repeated."""

    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Sends a request to a service that gives credentials, perhaps more than once, and returns the response, also
        one that refuses the request. Raises `Unavailable` if there is no response, or the service is overloaded or
        fails."""
        ...

    async def close(self) -> None:
        """Closes all connections to the services that give credentials."""
        ...


class WireOutbound:
    """Sends requests to the services that give credentials, and keeps connections to a few servers, for one event loop
    at a time. A request that got no response, or one with the status 429 or at least 500, is repeated, at most
    `ATTEMPTS` times in all."""

    def __init__(
        self, sleep: Callable[[float], Awaitable[None]], random: Callable[[], float], ca_bundle: str | None = None
    ) -> None:
        self._sleep = sleep
        self._random = random
        self._settings = ConnectionSettings(
            ca_bundle=ca_bundle,
            exchange_timeout_s=EXCHANGE_S,
            max_connections=_CONNECTIONS,
            max_answer_bytes=MAX_ANSWER_BYTES,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pools: OrderedDict[str, Pool] = OrderedDict()

    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Sends a request, and returns the response. Repeats it, at most `ATTEMPTS` times in all, if there is no
        response, or one with the status 429 or at least 500. Raises `Unavailable` if the last attempt ends like that,
        or the server can't be reached."""
        host = urlsplit(url).netloc
        failure = f"No credentials for files can be had now: {host} does not answer"
        for attempt in range(ATTEMPTS):
            if attempt:
                await self._sleep(growing_pause_s(self._random(), attempt))
            try:
                answer = await self._exchange(method, url, headers, body)
            except StoreUnavailable as error:
                failure = f"No credentials for files can be had now: {host} does not answer: {error}"
                continue
            except StoreError as error:
                raise Unavailable(
                    f"No credentials for files can be had now: {host} cannot be reached: {error}"
                ) from error
            if answer.status != 429 and answer.status < 500:
                return answer
            failure = f"No credentials for files can be had now: {host} answered with status {answer.status}"
        raise Unavailable(failure)

    async def close(self) -> None:
        """Closes all connections of this event loop, and forgets those of another."""
        pools, self._pools = self._pools, OrderedDict()
        if self._loop is asyncio.get_running_loop():
            for pool in pools.values():
                await pool.close()

    async def _exchange(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Sends a request over the pool of the origin."""
        parts = urlsplit(url)
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        pool = await self._pool(f"{parts.scheme}://{parts.netloc}")
        return await exchange(pool, method, target, {"host": parts.netloc, **headers}, body)

    async def _pool(self, origin: str) -> Pool:
        """Returns the pool of connections to an origin, and closes the one that was unused longest if there are too
        many."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._pools = loop, OrderedDict()
        if origin not in self._pools:
            opened = await open_pool(parse_endpoint(origin, "vending"), self._settings)
            self._pools.setdefault(origin, opened)  # another task may have been faster; this one has no connection yet
        self._pools.move_to_end(origin)
        pool = self._pools[origin]
        if len(self._pools) > _MAX_ORIGINS:
            _, oldest = self._pools.popitem(last=False)
            await oldest.close()
        return pool
