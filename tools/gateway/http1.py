"""The part of an HTTP/1.1 server that a gateway and a Runtime API need: whole messages, and targets as they were
sent."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from http import HTTPStatus

import httptools

MAX_BYTES = 64 << 20

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Request:
    """An HTTP request to the local gateway or Runtime API. `target` and the names of headers are as they were sent;
    `head_bytes` is the size of the request line and the headers."""

    method: str
    target: str
    headers: Headers
    body: bytes
    head_bytes: int


@dataclass(frozen=True)
class Response:
    """An HTTP response of the local gateway or Runtime API. The server adds its `Content-Length`."""

    status: int
    headers: Headers = ()
    body: bytes = b""


Answer = Callable[[Request], Awaitable[Response]]


@asynccontextmanager
async def listening(answer: Answer, port: int = 0) -> AsyncIterator[str]:
    """Serve on the loopback interface, and yield host and port. On exit, running requests are cancelled."""
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(_serve(reader, writer, answer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", port)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
    """Answer the requests of one connection, one after the other."""
    with closing(writer), suppress(ConnectionError):  # a client that hangs up is no news
        while True:
            incoming = _Incoming(writer)
            try:
                if not await incoming.read(reader):
                    return
            except (httptools.HttpParserError, ValueError):
                writer.write(_encoded(Response(HTTPStatus.BAD_REQUEST), bodiless=False))
                return
            response = await answer(incoming.request())
            writer.write(_encoded(response, bodiless=incoming.method == "HEAD"))
            await writer.drain()
            if not incoming.keep_alive:
                return


class _Incoming:
    """One request as httptools takes it apart."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []
        self._complete = False
        self.keep_alive = True

    async def read(self, reader: asyncio.StreamReader) -> bool:
        """Reads until the request is whole. Returns whether there is one. Raises `ValueError` for one too large."""
        size = 0
        while not self._complete:
            data = await reader.read(1 << 16)
            if not data:
                return False
            size += len(data)
            if size > MAX_BYTES:
                raise ValueError(f"more than {MAX_BYTES} bytes")
            self._parser.feed_data(data)
        return True

    @property
    def method(self) -> str:
        return self._parser.get_method().decode()

    def request(self) -> Request:
        """The whole request."""
        line = len(self.method) + len(self._target) + len("  HTTP/1.1\r\n")
        head = line + sum(len(name) + len(value) + len(": \r\n") for name, value in self._headers)
        return Request(self.method, self._target.decode("latin-1"), self._headers, b"".join(self._body), head)

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        if any(name.lower() == "expect" for name, _ in self._headers):
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._complete = True
        self.keep_alive = self._parser.should_keep_alive()  # afterwards the parser has forgotten


def _encoded(response: Response, *, bodiless: bool) -> bytes:
    headers = [(name, value) for name, value in response.headers if name.lower() != "content-length"]
    if response.status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        headers.append(("content-length", str(len(response.body))))
    try:
        phrase = HTTPStatus(response.status).phrase
    except ValueError:  # a status that has no name
        phrase = "-"
    lines = [f"HTTP/1.1 {response.status} {phrase}", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace") + (b"" if bodiless else response.body)
