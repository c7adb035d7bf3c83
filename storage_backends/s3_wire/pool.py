"""Connections to one address, kept for the next request while they are worth it."""

import asyncio
import os
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from storage_backends.base import StoreError
from storage_backends.s3_wire.http1 import AnswerLost, Connection, NeverSent, Response

IDLE_MS = 5_000
"""How long a connection may rest: less than S3 lets it. Time on the wall, since a monotonic clock stops while a machine
sleeps, and a thawed one holds sockets whose other ends are long gone."""


@dataclass(frozen=True, slots=True)
class Patience:
    """In seconds: to connect, name look-up and TLS included; and for anything to come or go."""

    connect_s: float
    silence_s: float


class Pool:
    """At most `size` connections at a time, opened when they are needed. Belongs to one event loop."""

    def __init__(
        self, host: str, port: int, tls: ssl.SSLContext | None, size: int, patience: Patience, now_ms: Callable[[], int]
    ) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._patience = patience
        self._now_ms = now_ms
        self._places = asyncio.Semaphore(size)
        self._resting: deque[tuple[Connection, int]] = deque()  # the last to rest is the first to work
        self._closed = False

    async def send(self, method: str, head: bytes, body: bytes) -> Response:
        """One exchange, never repeated. Raises `NeverSent` or `AnswerLost`."""
        async with self._places:
            connection = self._rested() or await self._connect()
            try:
                return await connection.exchange(method, head, body, self._patience.silence_s)
            except AnswerLost:
                self._drop_resting()  # what one met, the others may well meet
                raise
            finally:
                self._release(connection)

    async def close(self) -> None:
        """Closes what rests now, and what works as soon as it is done."""
        self._closed = True
        self._drop_resting()
        await asyncio.sleep(0)  # an aborted transport lets go of its socket in the next round

    def _rested(self) -> Connection | None:
        now = self._now_ms()
        while self._resting:
            connection, since = self._resting.pop()
            if 0 <= now - since <= IDLE_MS and connection.is_quiet():
                return connection
            connection.close()
        return None

    def _release(self, connection: Connection) -> None:
        if self._closed or not connection.reusable:
            connection.close()
            return
        now = self._now_ms()
        self._resting.append((connection, now))
        while now - self._resting[0][1] > IDLE_MS:
            self._resting.popleft()[0].close()

    def _drop_resting(self) -> None:
        while self._resting:
            self._resting.pop()[0].close()

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._patience.connect_s):
                _, connection = await loop.create_connection(Connection, self._host, self._port, ssl=self._tls)
        except OSError as error:  # time-outs, names that do not resolve and certificates are among them
            reason = f"{type(error).__name__}: {error}"
            raise NeverSent(f"no connection to {self._host}:{self._port}: {reason}") from error
        return connection


@cache
def tls_context(ca_bundle: str | None) -> ssl.SSLContext:
    """How to tell whom to trust: `ca_bundle` (a file or a folder), or else the system. Reads files: call it in a
    thread. Raises `StoreError` for a bundle that cannot be read."""
    in_folder = ca_bundle is not None and os.path.isdir(ca_bundle)
    try:
        context = ssl.create_default_context(
            cafile=None if in_folder else ca_bundle, capath=ca_bundle if in_folder else None
        )
    except OSError as error:
        raise StoreError(f"no S3 client can be made: AWS_CA_BUNDLE {ca_bundle!r}: {error}") from error
    context.set_alpn_protocols(["http/1.1"])
    return context
