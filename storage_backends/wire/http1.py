"""The client side of HTTP/1.1 on one connection: one request and one response at a time, and nothing is ever sent
twice.

`ResponseReader` makes responses of bytes and does no I/O; `Connection` sends and receives them.
"""

import asyncio
import math
import select
import ssl
from collections.abc import Mapping
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from storage_backends.base import StoreError
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.settings import MAX_ANSWER_BYTES

MAX_HEAD_BYTES = 64 * 1024
"""How long the headers of a response may be: a multiple of what any store sends."""


class NeverSent(Exception):
    """An HTTP request failed before any byte of it was sent."""


class AnswerLost(Exception):
    """An HTTP request was sent, at least in part, and no complete response came."""


class AnswerTooLarge(AnswerLost):
    """The response to an HTTP request is larger than the caller allows. `status` is its status, 0 if its headers are
    too long."""

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Response:
    """A complete HTTP response. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def request_head(method: str, target: str, headers: Mapping[str, str], length: int) -> bytes:
    """Returns the request line and the headers of a request with a body of `length` bytes, up to the blank line before
    the body. Raises `StoreError` for a target or header that is not printable ASCII: a line break in it would begin
    another header."""
    lines = [f"{method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if length or method in ("PUT", "POST"):
        lines.append(f"content-length: {length}")
    _check_printable("".join(lines), headers)
    return "\r\n".join([*lines, "\r\n"]).encode("ascii")


def check_headers(headers: Mapping[str, str]) -> None:
    """Raises `StoreError` for a header with a value that is not printable ASCII: a line break in it would begin another
    header."""
    _check_printable("".join(headers.values()), headers)


def _check_printable(text: str, headers: Mapping[str, str]) -> None:
    """Raises `StoreError`, which names the headers, unless the `text` of a request, or of these headers, is printable
    ASCII."""
    if not (text.isascii() and text.isprintable()):
        raise StoreError(
            f"the request was not sent: the URL or one of the headers {', '.join(headers)} is not printable ASCII"
        )


def may_end_with_its_connection(method: str, status: int) -> bool:
    """Whether an answer that announces no length is whole when its connection ends. A truncated one looks the same (RFC
    9112, section 8), so only where its body holds no data: that of a failure, a PUT or a DELETE."""
    return status >= 300 or method in ("PUT", "DELETE")


class ResponseReader:
    """Parses the response to one HTTP request, by the method of that request. `whole` is the response, None until it is
    complete; from then on, `keep_alive` is whether the connection may carry another request."""

    def __init__(self, method: str, max_body_bytes: int = MAX_ANSWER_BYTES) -> None:
        self._method = method  # the parser cannot know that a HEAD's answer has no body; after 204 and 304 it does
        self._max_body_bytes = max_body_bytes
        self._parser = HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._status = 0
        self._headers_complete = False
        self._unparsed_head_bytes = 0
        self._body_bytes = 0
        self.whole: Response | None = None
        self.keep_alive = False

    def feed(self, data: bytes) -> Response | None:
        """Parses further bytes of a response, as the connection delivers them. Returns the response once it is whole,
        None before. Raises `AnswerLost` for bytes that are not HTTP, unless they follow the whole response, and
        `AnswerTooLarge` for too many."""
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self.keep_alive = False
            if self.whole is None:
                raise AnswerLost(f"the server's answer is not HTTP: {error}") from error
        self._check_size(len(data))
        return self.whole

    def end(self) -> Response | None:
        """Ends the parsing, because the connection has ended. Returns the response if it is whole, or if the end of the
        connection makes it whole; else None."""
        unframed = self._headers_complete and not {"content-length", "transfer-encoding"} & self._headers.keys()
        if self.whole is None and unframed and may_end_with_its_connection(self._method, self._status):
            self._end()
        self.keep_alive = False
        return self.whole

    def _check_size(self, received: int) -> None:
        """Raises `AnswerTooLarge` for too long headers, or too long a body, as read or as the headers announce it;
        `received` is the number of the last bytes."""
        if not self._headers_complete:
            self._unparsed_head_bytes += received
            if self._unparsed_head_bytes > MAX_HEAD_BYTES:
                raise AnswerTooLarge(
                    f"the headers of the server's answer are longer than {MAX_HEAD_BYTES:,} bytes, the fixed limit"
                )
        elif max(self._body_bytes, self._announced_bytes() if self.whole is None else 0) > self._max_body_bytes:
            self.keep_alive = False
            raise AnswerTooLarge(
                f"the body of the server's answer is longer than {self._max_body_bytes:,} bytes", self._status
            )

    def _announced_bytes(self) -> int:
        """Returns the length of the body that the headers of a response state; 0 if they state none."""
        return int(self._headers.get("content-length", "0"))  # the parser has checked that it is a number

    def on_message_begin(self) -> None:
        """Allows no further request on the connection if a second response to one request begins. The parser calls this
        method, and all others whose names begin with `on_`."""
        if self.whole is not None:
            self.keep_alive = False  # a second answer to one request

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keeps a header of the response, with its name in lower case; ignores one that follows the final headers."""
        if self._status >= 200:
            return  # a trailer, or the header of a second answer
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Keeps the status, and whether the connection may carry another request. The response to a HEAD is then
        whole."""
        if self.whole is None:
            self._status = self._parser.get_status_code()
            self.keep_alive = self._parser.should_keep_alive()
            self._headers_complete = self._status >= 200
            if self._method == "HEAD" and self._headers_complete:
                self._end()

    def on_body(self, part: bytes) -> None:
        """Keeps a part of the response's body, unless the body is too long by now. After the whole response, allows no
        further request on the connection instead."""
        if self.whole is not None:
            self.keep_alive = False
            return
        self._body_bytes += len(part)
        if self._body_bytes <= self._max_body_bytes:
            self._body.append(part)

    def on_message_complete(self) -> None:
        """Makes the response whole, or forgets the headers of an informational one (100 to 199), after which the
        response comes."""
        if self._status < 200:  # an informational answer, such as 100 or 103
            self._headers.clear()
        elif self.whole is None:
            self._end()

    def _end(self) -> None:
        """Makes the response of the parts that were parsed, so that it counts as whole."""
        self.whole = Response(self._status, self._headers, b"".join(self._body))


class Connection(asyncio.Protocol):
    """The client's side of an HTTP connection, which carries one exchange at a time. `reusable` is whether it may carry
    another one after the last; False until the first is over."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._socket_transport: asyncio.Transport  # the same, or what is below TLS
        self._readable = select.poll()
        self._reader: ResponseReader | None = None
        self._answer: asyncio.Future[Response] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_s = math.inf
        """When the alarm is due, by the clock of the event loop: no later than the limits of the exchange under way."""
        self._heard = False
        self._unsent = 0
        self._silent_s = 0.0
        """Since when no byte is known to have come or gone."""
        self._idle_s = self._end_s = 0.0
        self.reusable = False

    async def exchange(
        self,
        method: str,
        head: bytes,
        body: bytes,
        idle_s: float,
        exchange_s: float,
        max_body_bytes: int = MAX_ANSWER_BYTES,
    ) -> Response:
        """Sends a request, once, and returns its answer; fails when no byte comes or goes for `idle_s` seconds, or when
        the answer is not whole after `exchange_s`.

        Raises `NeverSent` if the connection is closed, `TimeoutError` after `exchange_s`, and `AnswerLost` if no
        complete response comes for another reason. Only after a whole answer to a request that was sent whole may the
        connection be `reusable`: not after a cancellation, since an answer that is still to come would be taken for
        that of the next request, and not after an early answer, since the rest of the body would be taken for it.
        """
        self.reusable = False
        if self._transport.is_closing():
            raise NeverSent("the connection to the server was closed before the request was sent")
        self._reader = reader = ResponseReader(method, max_body_bytes)
        loop = asyncio.get_running_loop()
        self._answer = loop.create_future()
        self._silent_s = loop.time()
        self._idle_s, self._end_s = idle_s, self._silent_s + exchange_s
        self._transport.write(head + body)
        self._heard, self._unsent = False, self._unsent_bytes()
        self._set_alarm(loop)
        try:
            answer = await self._answer
        finally:
            self._answer = None  # the alarm stays set: the next exchange rarely needs an earlier one
        self.reusable = reader.keep_alive and not self._unsent_bytes()
        return answer

    def is_idle(self) -> bool:
        """Whether the connection is open and has nothing to read. On an idle connection, something to read is its end
        (EOF), which the event loop may not have seen yet, for example after the machine slept."""
        return not self._transport.is_closing() and not self._readable.poll(0)

    def close(self) -> None:
        """Closes the connection at once; an exchange that is under way fails."""
        self.reusable = False
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport of a connection that was made. The event loop calls this method, as it does the other
        methods of `asyncio.Protocol`."""
        self._transport = self._socket_transport = cast(asyncio.Transport, transport)  # uvloop's does not inherit
        self._readable.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    async def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Encrypts the connection by TLS from now on. Raises `OSError` if the handshake fails."""
        loop = asyncio.get_running_loop()
        encrypted = await loop.start_tls(self._socket_transport, self, context, server_hostname=host)
        if encrypted is None:
            raise ConnectionError("the connection was closed in the TLS handshake")
        self._transport = encrypted

    def data_received(self, data: bytes) -> None:
        """Gives received bytes to the reader of the exchange under way, which ends if its response is whole or not
        valid. Closes the connection if there is no exchange."""
        self._heard = True
        if self._reader is None or self._answer is None or self._answer.done():
            self._transport.abort()  # unsolicited bytes
            return
        try:
            answer = self._reader.feed(data)
        except AnswerLost as error:
            self._lose(error)
            return
        if answer is not None:
            self._answer.set_result(answer)

    def eof_received(self) -> None:
        """Ends the exchange under way, if there is one and the end of the connection makes its response whole."""
        if self._reader is not None and self._answer is not None and not self._answer.done():
            answer = self._reader.end()
            if answer is not None:
                self._answer.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancels the alarm, and fails the exchange under way, if there is one, by `AnswerLost`."""
        if self._alarm is not None:
            self._alarm.cancel()
        reason = f"was lost: {exc!r}" if exc else "was closed before the answer was whole"
        self._lose(AnswerLost(f"the connection to the server {reason}"))

    def _set_alarm(self, loop: asyncio.AbstractEventLoop) -> None:
        """Sets the alarm for the time at which the exchange fails if no further byte comes or goes, or for its end. An
        alarm that is due before stays set: it sets itself anew."""
        due_s = min(self._silent_s + self._idle_s, self._end_s)
        if due_s < self._alarm_s:
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm_s, self._alarm = due_s, loop.call_at(due_s, self._on_alarm, loop)

    def _on_alarm(self, loop: asyncio.AbstractEventLoop) -> None:
        """Fails the exchange under way if a time limit has passed: the one of the exchange, or that for silence.
        Otherwise sets the next alarm. Does nothing if there is no exchange under way."""
        now_s = max(loop.time(), self._alarm_s)  # uvloop rounds times to milliseconds, and may call early
        self._alarm_s, self._alarm = math.inf, None
        if self._answer is None or self._answer.done():
            return
        if self._end_s <= now_s:
            self._lose(TimeoutError())
            return
        unsent = self._unsent_bytes()
        if self._heard or unsent < self._unsent:
            self._silent_s, self._heard, self._unsent = now_s, False, unsent
        elif self._silent_s + self._idle_s <= now_s:
            self._lose(AnswerLost(f"the server's answer is lost: no byte was sent or received for {self._idle_s} s"))
            return
        self._set_alarm(loop)

    def _unsent_bytes(self) -> int:
        """Returns the number of bytes of the request that wait to be sent, below TLS too."""
        unsent = self._transport.get_write_buffer_size()
        if self._socket_transport is self._transport:
            return unsent
        return unsent + self._socket_transport.get_write_buffer_size()  # TLS has passed it on

    def _lose(self, error: AnswerLost | TimeoutError) -> None:
        """Closes the connection, and fails the exchange under way, if there is one, with this error."""
        self._transport.abort()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
