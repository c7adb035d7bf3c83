"""Sends requests to the services that give credentials, over connections that this module opens. Proxies are not
supported."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from arco_catalog.iceberg.errors import Unavailable
from storage_backends.backoff import growing_pause_s
from storage_backends.base import StoreError, StoreUnavailable
from storage_backends.wire.http1 import Response
from storage_backends.wire.origin_pools import OriginPools
from storage_backends.wire.settings import ConnectionSettings

ATTEMPTS = 3
MAX_ANSWER_BYTES = 1 << 20
EXCHANGE_S = 15.0
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
        """Closes the connections to the services that give credentials, if they are of this event loop."""
        ...


class WireOutbound:
    """Sends requests to the services that give credentials, and keeps connections to a few servers, for one event loop
    at a time. A request that could not be sent, or got a response with the status 429 or at least 500, is repeated, at
    most `ATTEMPTS` times in all."""

    def __init__(
        self, sleep: Callable[[float], Awaitable[None]], random: Callable[[], float], ca_bundle: str | None = None
    ) -> None:
        self._sleep = sleep
        self._random = random
        settings = ConnectionSettings(
            ca_bundle=ca_bundle,
            exchange_timeout_s=EXCHANGE_S,
            max_connections=_CONNECTIONS,
            max_answer_bytes=MAX_ANSWER_BYTES,
        )
        self._pools = OriginPools("vending", settings)

    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Sends a request, and returns the response. Repeats it after a growing pause, at most `ATTEMPTS` times in all,
        if nothing was sent, as without a connection, or the response has the status 429 or at least 500. Raises
        `Unavailable` if the last attempt ends like that, or at once if an attempt fails otherwise, as without a whole
        response."""
        host = urlsplit(url).netloc
        failure = f"No credentials for files can be had now: {host} does not answer"
        for attempt in range(ATTEMPTS):
            if attempt:
                await self._sleep(growing_pause_s(self._random(), attempt))
            try:
                answer = await self._pools.exchange(method, url, headers, body)
            except StoreUnavailable as error:
                failure = f"No credentials for files can be had now: {host} does not answer: {error}"
                continue
            except StoreError as error:
                raise Unavailable(
                    f"No credentials for files can be had now: the request to {host} failed: {error}"
                ) from error
            if answer.status != 429 and answer.status < 500:
                return answer
            failure = f"No credentials for files can be had now: {host} answered with status {answer.status}"
        raise Unavailable(failure)

    async def close(self) -> None:
        """Closes the connections to services that give credentials which belong to this event loop, and forgets any of
        another loop."""
        await self._pools.close()
