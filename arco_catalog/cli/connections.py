"""Connections of `arco serve`: what uvicorn takes from a client without end, ends here."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_OVERHEAD_BYTES = 256 << 10
"""Bytes that may come in a row without a request's head, or a piece of its body, being complete by them: a head (its
target, all its headers), or what stands around the chunks of a body. They are kept until it is, at up to 14 times their
size, and time is spent on them that grows with their square."""
MAX_PIPELINED = 32
"""Requests that may wait behind another on their connection. Hardly a client sends a second before the first is
answered, and one packet can hold thousands."""
HEAD_SECONDS = 75.0
"""How long a client may take from opening a connection, or beginning a request, to the end of the head: as long as an
idle connection is kept."""


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with bounds on what comes before and between bodies; bodies are bounded where they are read."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._overhead = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._overhead += len(data)
        super().data_received(data)
        if self._overhead > MAX_OVERHEAD_BYTES and not self.transport.is_closing():
            # No answer: the head of the request that it would answer is not there yet.
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answers what is no request, and hangs up; just hangs up where that would be read as the answer to the request
        before, which may be a commit."""
        if self.cycle is None or self.cycle.response_complete:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ConnectionError("too many requests wait on this connection")
        super().on_message_begin()
        self._begin_head()

    def on_headers_complete(self) -> None:
        self._end_head()
        self._overhead = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._overhead = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._overhead = 0
        super().on_message_complete()

    def _begin_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _end_head(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
