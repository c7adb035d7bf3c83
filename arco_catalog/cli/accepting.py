"""Accepts connections up to the limit; others wait in the kernel's queue, which costs nothing."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

from arco_catalog.cli.crowd import Crowd
from arco_catalog.cli.tls import GOODBYE_SECONDS, HANDSHAKE_SECONDS, Certificate

AT_ONCE = 32
"""Connections accepted before other work goes on."""
PAUSE_SECONDS = 1.0
"""How long to wait before looking again if there is room."""

_LOG = logging.getLogger(__name__)
_NO_MORE = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class Acceptor:
    """Accepts on one socket, which it does not own, until it is closed; with a `certificate` by TLS. To uvicorn it is
    one of its servers."""

    def __init__(
        self,
        listener: socket.socket,
        crowd: Crowd,
        make: Callable[[], asyncio.Protocol],
        certificate: Certificate | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._crowd = crowd
        self._make = make
        self._certificate = certificate
        self._connecting: set[asyncio.Task[None]] = set()
        self._look_again: asyncio.TimerHandle | None = None
        self._closed = False
        listener.setblocking(False)
        crowd.when_one_leaves = self._resume
        self._loop.add_reader(listener, self._accept)

    def close(self) -> None:
        """Accepts no more. Closing again does nothing, also when the listener is closed by then."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._listener)
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None

    async def wait_connected(self) -> None:
        """Waits, for a moment, until each accepted connection has its protocol, and gives up those that have none."""
        if self._connecting:
            _, pending = await asyncio.wait(self._connecting, timeout=PAUSE_SECONDS)
            for task in pending:
                task.cancel()

    async def wait_closed(self) -> None:
        """Nothing is left to wait for."""

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            if self._crowd.full:
                if not self._crowd.make_room():
                    self._pause()
                return  # what was cut is gone in the next round
            try:
                accepted, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_MORE:
                    raise
                _LOG.warning("cannot accept connections: %s", error.strerror)
                self._pause()
                return
            self._crowd.expect()
            task = self._loop.create_task(self._connect(accepted))
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)

    async def _connect(self, accepted: socket.socket) -> None:
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            tls = self._certificate
            await self._loop.connect_accepted_socket(
                self._make,
                accepted,
                ssl=None if tls is None else tls.context,
                ssl_handshake_timeout=None if tls is None else HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=None if tls is None else GOODBYE_SECONDS,
            )
        except OSError:  # gone again, or it speaks no TLS
            accepted.close()
            self._crowd.lost()

    def _pause(self) -> None:
        if self._look_again is None:
            self._loop.remove_reader(self._listener)
            self._look_again = self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None
            if not self._closed:
                self._loop.add_reader(self._listener, self._accept)
