"""A pool of keep-alive connections to one address."""

import asyncio
import os
import ssl
from collections import deque
from collections.abc import Callable
from functools import cache

from storage_backends.base import StoreError
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.dial import Permits, connect
from storage_backends.wire.http1 import AnswerLost, Connection, NeverSent, Response
from storage_backends.wire.settings import MAX_ANSWER_BYTES

IDLE_MS = 5_000
"""How long a connection may be idle: less than S3 allows. In wall-clock time, since a monotonic clock stops while a
machine sleeps, and one that wakes holds sockets that S3 has closed long ago."""
AGE_MS = 300_000
"""How old a connection may be when it is used again: a store moves its addresses, and takes some out of service."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits of a connection in seconds: `connect_s` to connect, name look-up and TLS included; `idle_s` without a
    byte sent or received; `exchange_s` for a request and its response, however steadily they trickle."""

    connect_s: float
    idle_s: float
    exchange_s: float = 300.0


@dataclass(slots=True)
class _PooledConnection:
    """A connection of a pool, with the times at which it was made and became idle."""

    connection: Connection
    made_ms: int
    idle_since_ms: int


class Pool:
    """Keeps up to `size` HTTP connections to one host, which are opened when needed, to addresses that `permits`
    permits, if it is given. For one event loop."""

    def __init__(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        size: int,
        timeouts: Timeouts,
        now_ms: Callable[[], int],
        max_body_bytes: int = MAX_ANSWER_BYTES,
        permits: Permits | None = None,
    ) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._timeouts = timeouts
        self._now_ms = now_ms
        self._max_body_bytes = max_body_bytes
        self._permits = permits
        self._places = asyncio.Semaphore(size)
        self._idle: deque[_PooledConnection] = deque()  # the connection used last is used first
        self._closed = False

    async def send(self, method: str, head: bytes, body: bytes) -> Response:
        """Sends a request once, on an idle connection or a new one, and returns its answer; waits while all connections
        are busy. Raises `NeverSent` if there is no connection, and `AnswerLost`, of which `AnswerTooLarge` is one, if
        no complete response comes; then also closes the idle connections, unless the time of the exchange was over."""
        async with self._places:
            kept = self._take_idle() or await self._connect()
            try:
                return await kept.connection.exchange(
                    method, head, body, self._timeouts.idle_s, self._timeouts.exchange_s, self._max_body_bytes
                )
            except TimeoutError as error:
                raise AnswerLost(
                    f"no whole answer of {self._host}:{self._port} came within {self._timeouts.exchange_s} s"
                ) from error
            except AnswerLost:
                self._drop_idle()  # the other idle connections may be broken too
                raise
            finally:
                self._release(kept)

    async def close(self) -> None:
        """Closes idle connections now, and busy ones when their exchange ends."""
        self._closed = True
        self._drop_idle()
        await asyncio.sleep(0)  # an aborted transport lets go of its socket in the next round

    def _take_idle(self) -> _PooledConnection | None:
        """Takes the idle connection that was used last and may be used once more out of the pool, and returns it; None
        if there is none. Closes those that it meets before that and are too old or broken."""
        now = self._now_ms()
        while self._idle:
            kept = self._idle.pop()
            fresh = 0 <= now - kept.idle_since_ms <= IDLE_MS and now - kept.made_ms <= AGE_MS
            if fresh and kept.connection.is_idle():
                return kept
            kept.connection.close()
        return None

    def _release(self, kept: _PooledConnection) -> None:
        """Returns a connection to the pool after an exchange, or closes it if it may not be used once more. Closes
        connections that were idle for too long."""
        if self._closed or not kept.connection.reusable:
            kept.connection.close()
            return
        now = kept.idle_since_ms = self._now_ms()
        self._idle.append(kept)
        while now - self._idle[0].idle_since_ms > IDLE_MS:
            self._idle.popleft().connection.close()

    def _drop_idle(self) -> None:
        """Closes the connections that no request uses."""
        while self._idle:
            self._idle.pop().connection.close()

    async def _connect(self) -> _PooledConnection:
        """Opens a connection. Raises `NeverSent` if that fails, or takes longer than `connect_s`."""
        try:
            async with asyncio.timeout(self._timeouts.connect_s):
                connection = await self._open()
        except OSError as error:  # includes timeouts, name resolution and certificate errors
            reason = f"{type(error).__name__}: {error}"
            raise NeverSent(f"no connection to {self._host}:{self._port} could be made: {reason}") from error
        now = self._now_ms()
        return _PooledConnection(connection, now, now)

    async def _open(self) -> Connection:
        """Opens a connection to the pool's host, with TLS if the pool has a context for that. Raises `OSError`."""
        connected = await connect(self._host, self._port, self._permits)
        try:
            _, connection = await asyncio.get_running_loop().create_connection(Connection, sock=connected)
        except BaseException:
            connected.close()
            raise
        if self._tls is not None:
            try:
                await connection.start_tls(self._tls, self._host)
            except BaseException:
                connection.close()
                raise
        return connection


@cache
def tls_context(ca_bundle: str | None) -> ssl.SSLContext:
    """Returns the context that checks a server's certificate: by the authorities in `ca_bundle` (a file or a folder),
    or, without one, those that the system trusts. One context serves all stores with the same bundle. It reads files,
    so call it in a thread. Raises `StoreError` for a bundle that can't be read."""
    in_folder = ca_bundle is not None and os.path.isdir(ca_bundle)
    try:
        context = ssl.create_default_context(
            cafile=None if in_folder else ca_bundle, capath=ca_bundle if in_folder else None
        )
    except OSError as error:
        raise StoreError(
            f"no TLS connection is possible: the CA bundle {ca_bundle!r} cannot be read: {error}"
        ) from error
    context.set_alpn_protocols(["http/1.1"])
    return context
