"""A pool of keep-alive connections to one address."""

import asyncio
import os
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from storage_backends.base import StoreError
from storage_backends.wire.http1 import AnswerLost, Connection, NeverSent, Response

IDLE_MS = 5_000
"""How long a connection may be idle: less than S3 allows. In wall-clock time, since a monotonic clock stops while a
machine sleeps, and one that wakes holds sockets that S3 has closed long ago."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """In seconds: `connect_s` to connect, name look-up and TLS included; `idle_s` without a byte sent or received."""

    connect_s: float
    idle_s: float


class Pool:
    """At most `size` connections at a time, opened when they are needed. Belongs to one event loop."""

    def __init__(
        self, host: str, port: int, tls: ssl.SSLContext | None, size: int, timeouts: Timeouts, now_ms: Callable[[], int]
    ) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._timeouts = timeouts
        self._now_ms = now_ms
        self._places = asyncio.Semaphore(size)
        self._idle: deque[tuple[Connection, int]] = deque()  # the connection used last is used first
        self._closed = False

    async def send(self, method: str, head: bytes, body: bytes) -> Response:
        """One exchange, never repeated. Raises `NeverSent` or `AnswerLost`."""
        async with self._places:
            connection = self._take_idle() or await self._connect()
            try:
                return await connection.exchange(method, head, body, self._timeouts.idle_s)
            except AnswerLost:
                self._drop_idle()  # the other idle connections may be broken too
                raise
            finally:
                self._release(connection)

    async def close(self) -> None:
        """Closes idle connections now, and busy ones when their exchange ends."""
        self._closed = True
        self._drop_idle()
        await asyncio.sleep(0)  # an aborted transport lets go of its socket in the next round

    def _take_idle(self) -> Connection | None:
        now = self._now_ms()
        while self._idle:
            connection, since = self._idle.pop()
            if 0 <= now - since <= IDLE_MS and connection.is_idle():
                return connection
            connection.close()
        return None

    def _release(self, connection: Connection) -> None:
        if self._closed or not connection.reusable:
            connection.close()
            return
        now = self._now_ms()
        self._idle.append((connection, now))
        while now - self._idle[0][1] > IDLE_MS:
            self._idle.popleft()[0].close()

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop()[0].close()

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeouts.connect_s):
                _, connection = await loop.create_connection(Connection, self._host, self._port, ssl=self._tls)
        except OSError as error:  # includes timeouts, name resolution and certificate errors
            reason = f"{type(error).__name__}: {error}"
            raise NeverSent(f"no connection to {self._host}:{self._port} could be made: {reason}") from error
        return connection


@cache
def tls_context(ca_bundle: str | None) -> ssl.SSLContext:
    """A TLS context that trusts the authorities in `ca_bundle` (a file or a folder), or else the system's. Reads files,
    so call it in a thread. Raises `StoreError` for a bundle that cannot be read."""
    in_folder = ca_bundle is not None and os.path.isdir(ca_bundle)
    try:
        context = ssl.create_default_context(
            cafile=None if in_folder else ca_bundle, capath=ca_bundle if in_folder else None
        )
    except OSError as error:
        raise StoreError(f"no S3 client can be made: cannot read AWS_CA_BUNDLE {ca_bundle!r}: {error}") from error
    context.set_alpn_protocols(["http/1.1"])
    return context
