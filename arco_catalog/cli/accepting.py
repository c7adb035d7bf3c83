"""Accepts connections of a server up to its limit. Others wait in the kernel's queue, where they use no memory of the
server."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

from arco_catalog.cli.crowd import Crowd
from arco_catalog.cli.tls import GOODBYE_SECONDS, HANDSHAKE_SECONDS, Certificate

AT_ONCE = 32
"""Maximum number of connections that are accepted in one turn of the event loop."""
PAUSE_SECONDS = 1.0
"""Pause until the next attempt to accept, when no connection could be accepted."""

_LOG = logging.getLogger(__name__)
_NO_MORE = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class Acceptor:
    """Accepts connections on a listening socket from the construction until `close`, as long as `crowd` has room for
    more, and over TLS if there is a `certificate`. `make` returns the protocol of a new connection. The socket stays
    open. An instance has the methods that uvicorn calls on a server."""

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
        crowd.when_one_leaves.append(self._resume)
        self._loop.add_reader(listener, self._accept)

    def close(self) -> None:
        """Stops accepting; accepted connections stay open. A second call does nothing, even after the socket was
        closed."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._listener)
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None

    async def wait_connected(self) -> None:
        """Waits, for at most `PAUSE_SECONDS`, until every accepted connection has completed the TLS handshake; then
        cancels the connections that have not."""
        if self._connecting:
            _, pending = await asyncio.wait(self._connecting, timeout=PAUSE_SECONDS)
            for task in pending:
                task.cancel()

    async def wait_closed(self) -> None:
        """Returns at once, even while accepted connections are open. uvicorn awaits this method of a server."""

    def _accept(self) -> None:
        """Accepts connections that wait at the listener, up to `AT_ONCE`, or until none waits. If there are too many,
        cuts one by `Crowd.make_room`, or pauses if none may be cut; also pauses, and logs a warning, if there is no
        descriptor or memory for one. Raises any other `OSError` of the listener."""
        for _ in range(AT_ONCE):
            if self._crowd.full:
                if not self._crowd.make_room():
                    self._pause()
                return  # the event loop removes the cut connection before the next call
            try:
                accepted, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_MORE:
                    raise
                _LOG.warning(
                    "cannot accept connections: %s; new clients wait, and the next attempt is within %g s",
                    error.strerror,
                    PAUSE_SECONDS,
                )
                self._pause()
                return
            self._crowd.expect()
            task = self._loop.create_task(self._connect(accepted))
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)

    async def _connect(self, accepted: socket.socket) -> None:
        """Makes a connection of an accepted socket, with TLS if there is a certificate. If the client has closed, or
        the TLS handshake fails or takes longer than `HANDSHAKE_SECONDS`, closes the socket and no longer counts it."""
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
        except OSError:  # the client has closed, or does not speak TLS
            accepted.close()
            self._crowd.lost()

    def _pause(self) -> None:
        """Accepts no connections for `PAUSE_SECONDS`, or until a connection is closed. Does nothing during a pause."""
        if self._look_again is None:
            self._loop.remove_reader(self._listener)
            self._look_again = self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        """Ends a pause: accepts connections again, unless `close` was called. Does nothing without a pause."""
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None
            if not self._closed:
                self._loop.add_reader(self._listener, self._accept)
