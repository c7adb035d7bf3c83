"""Connections of `arco serve`, with limits that uvicorn does not have."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from arco_catalog.cli.crowd import Crowd

MAX_OVERHEAD_BYTES = 256 << 10
"""Bytes that may come in a row without a request's head, or a piece of its body, being complete by them: a head (its
target, all its headers), or what stands around the chunks of a body. They are kept until it is, at up to 26 times their
size, and time is spent on them that grows with their square."""
MAX_PIPELINED = 32
"""Requests that may wait behind another on their connection. Hardly a client sends a second before the first is
answered, and one packet can hold thousands."""
HEAD_SECONDS = 75.0
"""How long a client may take from opening a connection, or beginning a request, to the end of the head: as long as an
idle connection is kept. Where connections are short it is less (`Crowd`)."""
READ_SECONDS = 60.0
"""How long a client may take to read what was written to it, so far that more can be written. An answer goes out in
pieces, so a large one may take longer."""


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with bounds on what comes before and between bodies, and on how long it is not read; bodies are bounded
    where they are read. One of a `crowd`, which is told what each connection is at."""

    def __init__(self, crowd: Crowd, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._crowd = crowd
        self._overhead = 0
        self._queued = 0
        """Bytes in which requests came that wait behind another."""
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    @property
    def kept_bytes(self) -> int:
        """Bytes of heads that are kept for this connection."""
        return self._overhead + self._queued

    def cut(self) -> None:
        """Ends the connection at once, whatever is under way on it."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._crowd.came(self)
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self.resume_writing()
        self._keep(0, 0)
        self._crowd.left(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._keep(self._overhead + len(data), self._queued)
        super().data_received(data)
        if self.pipeline:
            self._keep(self._overhead, self._queued + len(data))
        if self._overhead > MAX_OVERHEAD_BYTES and not self.transport.is_closing():
            # No answer: the head of the request that it would answer is not there yet.
            self.transport.close()
        self._crowd.check_kept(self)

    def send_400_response(self, msg: str) -> None:
        """Answers what is no request, and hangs up; just hangs up where that would be read as the answer to the request
        before, which may be a commit."""
        if self.cycle is None or self.cycle.response_complete:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ConnectionError("too many pipelined requests on this connection")
        super().on_message_begin()
        self._begin_head()

    def on_headers_complete(self) -> None:
        self._end_head()
        self._keep(0, self._queued)
        self._crowd.busy(self)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._keep(0, self._queued)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._keep(0, self._queued)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if not self.pipeline:
            self._keep(self._overhead, 0)
            self._crowd.idle(self)
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(READ_SECONDS, self.cut)

    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Ends an idle connection, at once: closed, it would stay until its client has read what was answered."""
        self.cut()

    def _keep(self, overhead: int, queued: int) -> None:
        self._crowd.kept_bytes += overhead + queued - self.kept_bytes
        self._overhead, self._queued = overhead, queued

    def _begin_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self.cut)

    def _end_head(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
