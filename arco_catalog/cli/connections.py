"""The connections of `arco serve` and of the delegation service by HTTP/1.1, with limits that uvicorn does not have."""

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from arco_catalog.cli.crowd import Crowd
from arco_catalog.cli.tls import subject_of
from arco_catalog.http.principal import CLIENT_CERTIFICATE
from arco_catalog.iceberg.json import dumps

MAX_OVERHEAD_BYTES = 256 << 10
"""How many bytes a client may send in a row without completing a request's head (target and headers) or a piece of its
body. The parser keeps them until then, at up to 26 times their size, and the time that it takes grows with their
square."""
MAX_PIPELINED = 32
"""How many requests may wait behind another on one connection. Hardly any client sends a second request before the
first is answered, but one packet can hold thousands."""
HEAD_TOO_LARGE = dumps(
    {
        "error": {
            "message": f"The target and the headers of a request may have {MAX_OVERHEAD_BYTES} bytes together",
            "type": "BadRequestException",
            "code": 431,
        }
    }
)
LINGER_SECONDS = 2.0
"""How long a connection stays open after status 431 for a head that is still being sent. Closed at once, it would be
reset, and the client would lose the answer with what it has not read."""
HEAD_SECONDS = 75.0
"""How long a client may take from opening a connection, or beginning a request, to the end of the head: as long as an
idle connection is kept. Where connections are short it is less (`Crowd`)."""
FRAMING = (b"content-length", b"transfer-encoding")
"""Headers that determine where a body ends."""
READ_SECONDS = 60.0
"""How long a client may take to drain the full write buffer of its connection so far that more can be written. An
answer goes out in pieces, so a large one may take longer in all."""


class BoundedProtocol(HttpToolsProtocol):
    """A connection of a server by HTTP/1.1, with limits on the bytes outside of bodies, and on the time that a client
    takes to send a head or to read an answer; limits on bodies are the app's. Reports to the `crowd` when it is new,
    busy, idle or closed.

    It declines what clients offer to upgrade to (RFC 9110, section 7.8): Java's client offers HTTP/2 on each
    connection. The parser takes the head of such a request for a whole message, so a new parser reads the body."""

    def __init__(self, crowd: Crowd, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._crowd = crowd
        self._overhead = 0
        self._queued = 0
        """Bytes of requests that wait behind another on this connection."""
        self._resuming = False
        """True while a new parser is fed the framing headers of a head again, to learn how long the body is."""
        self._lingers = False
        """True after a head that was too large: what the client still sends is discarded."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    @property
    def kept_bytes(self) -> int:
        """Bytes that this connection holds in memory: of an incomplete head or the framing of a body, and of waiting
        requests."""
        return self._overhead + self._queued

    def cut(self) -> None:
        """Closes the connection at once, even while a request is under way."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begins the connection: adds it to the crowd as a new one, starts the time limit for the first head, and
        passes the subject of the client's TLS certificate, if it sent one, to the app."""
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        subject = None if tls is None else subject_of(tls.getpeercert())
        if subject is not None:
            self.app_state = {**self.app_state, CLIENT_CERTIFICATE: subject}
        self._crowd.add(self)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cleans up after the connection was closed: cancels the time limits, subtracts the bytes that it held from the
        sum of all connections, and removes it from the crowd."""
        self._stop_head_timer()
        self.resume_writing()
        self._keep(0, 0)
        self._crowd.left(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parses received bytes. Responds with 431, or just closes, if the bytes since the last complete head or piece
        of a body exceed `MAX_OVERHEAD_BYTES`, and lets the crowd cut a connection if all together hold too much.
        Discards the bytes after a 431."""
        if self._lingers:
            return
        self._keep(self._overhead + len(data), self._queued)
        self._parse(data)
        if self.pipeline:
            self._keep(self._overhead, self._queued + len(data))
        if self._overhead > MAX_OVERHEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()
        self._crowd.check_kept(self)

    def _parse(self, data: bytes) -> None:
        """Feeds received bytes to the parser, and declines an upgrade. Logs an invalid request, or one too many that is
        pipelined, and ends the connection as `send_400_response` does."""
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.logger.warning(
                "Invalid HTTP request received, or more than %d pipelined: the connection is closed", MAX_PIPELINED
            )
            self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade as offer:
            self._decline(data[offer.args[0] :])

    def _decline(self, rest: bytes) -> None:
        """Ignores the upgrade that a head offered, and parses `rest`, the bytes after the head: the body, then further
        requests."""
        framing = [b"%b: %b\r\n" % header for header in self.headers if header[0] in FRAMING]
        self.parser = httptools.HttpRequestParser(self)
        self._resuming = True
        try:
            self.parser.feed_data(b"".join([b"POST / HTTP/1.1\r\n", *framing, b"\r\n"]))
        finally:
            self._resuming = False
        self._parse(rest)

    def _refuse_head(self) -> None:
        """Answers 431 to a head that is too large, counts it, and closes after `LINGER_SECONDS`. Closes without an
        answer if an earlier request has none yet, since the client would take the 431 for it, or if the bytes do not
        belong to a head, but to the framing of a chunked body."""
        self._crowd.when_one_is_refused("head-too-large")
        waits = self.cycle is not None and not self.cycle.response_complete
        if waits or self._head_timer is None:
            self.transport.close()
            return
        lines = (
            b"HTTP/1.1 431 Request Header Fields Too Large",
            b"content-type: application/json",
            b"content-length: %d" % len(HEAD_TOO_LARGE),
            b"connection: close",
        )
        self._lingers = True
        self._stop_head_timer()
        self._keep(0, self._queued)
        self.transport.write(b"\r\n".join([*lines, b"", HEAD_TOO_LARGE]))
        self._head_timer = self.loop.call_later(LINGER_SECONDS, self.cut)

    def send_400_response(self, msg: str) -> None:
        """Counts bytes that are not a request, or too many pipelined requests, answers 400, and closes. If a request on
        the connection waits for an answer, as with pipelined ones, closes without the 400: the client would take it for
        that answer, which may be a commit's."""
        self._crowd.when_one_is_refused("malformed" if len(self.pipeline) < MAX_PIPELINED else "pipelined")
        if self.cycle is None or self.cycle.response_complete:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begins a request, and the time limit for the head. Raises `ConnectionError` if `MAX_PIPELINED` requests wait
        already, after which `_parse` closes the connection. Does nothing while a new parser reads the framing of a
        head."""
        if self._resuming:
            return
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ConnectionError(
                f"the client pipelined more than {MAX_PIPELINED} requests, a fixed limit, on one connection, which is "
                "closed"
            )
        super().on_message_begin()
        self._start_head_timer()

    def on_url(self, url: bytes) -> None:
        """Adds a piece of the target to the request; does nothing while a new parser reads the framing of a head."""
        if not self._resuming:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Adds a header to the request; does nothing while a new parser reads the framing of a head."""
        if not self._resuming:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Ends the head of a request: cancels the time limit, sets the count of bytes outside of bodies to 0, reports
        the connection as busy, and starts the request, or queues it behind an unfinished one. Does nothing while a new
        parser reads the framing of a head."""
        if self._resuming:
            return
        self._stop_head_timer()
        self._keep(0, self._queued)
        self._crowd.busy(self)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Passes a piece of a body to the request, unless that was answered already, and sets the count of bytes
        outside of bodies to 0."""
        self._keep(0, self._queued)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Ends a request's body, and sets the count of bytes outside of bodies to 0. Does nothing after a head that
        offers an upgrade, because the body follows."""
        if self.parser.should_upgrade():
            return
        self._keep(0, self._queued)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Starts the next request that waits on the connection after a response was sent, unless it is being closed. If
        none waits, it reports the connection as idle, and closes it after uvicorn's keep-alive time."""
        if not self.pipeline:
            self._keep(self._overhead, 0)
            self._crowd.idle(self)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Makes the app wait because the write buffer is full, and starts the time limit of `READ_SECONDS`, after which
        the connection is cut, unless it runs."""
        super().pause_writing()
        if self._unread_timer is None:
            self._unread_timer = self.loop.call_later(READ_SECONDS, self.cut)

    def resume_writing(self) -> None:
        """Lets the app write on after the client has read enough, or the connection was lost, and cancels the time
        limit for that."""
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Closes an idle connection at once. A plain close would wait until the client has read the last answer."""
        self.cut()

    def _keep(self, overhead: int, queued: int) -> None:
        """Records how many bytes this connection holds in memory, here and in the sum of all connections: `overhead`
        bytes of an incomplete head or the framing of a body, and `queued` bytes of requests that wait behind
        another."""
        self._crowd.kept_bytes += overhead + queued - self.kept_bytes
        self._overhead, self._queued = overhead, queued

    def _start_head_timer(self) -> None:
        """Starts the time limit for the head of a request, after which the connection is closed; does nothing while one
        runs."""
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._refuse_slow_head)

    def _refuse_slow_head(self) -> None:
        """Closes the connection, and counts a refused request if a part of one has arrived."""
        if self._overhead:
            self._crowd.when_one_is_refused("head-too-slow")
        self.cut()

    def _stop_head_timer(self) -> None:
        """Ends the time limit for the head of a request, if one runs."""
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
