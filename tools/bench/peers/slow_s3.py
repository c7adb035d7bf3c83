"""A server of S3 that answers with a delay, as one that is far away: `python -m tools.bench.peers.slow_s3
MILLISECONDS`.

Requests come over connections that stay open, wait beside each other, and are then answered one by one, which makes
conditional writes atomic.
"""

import asyncio
import sys
from http import HTTPStatus
from typing import cast

import httptools
import uvloop

from tools.bench.peers.objects import Objects


class Connection(asyncio.Protocol):
    """One client's connection to the delayed server: a request at a time, as all of ours send them."""

    def __init__(self, objects: Objects, seconds: float) -> None:
        self._objects = objects
        self._seconds = seconds
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by name

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._url, self._headers, self._body = b"", {}, []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._headers.get("expect") and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        asyncio.get_running_loop().call_later(self._seconds, self._answer)

    def _answer(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        method = self._parser.get_method().decode()
        path, _, query = self._url.decode("latin-1").partition("?")
        status, headers, body = self._objects.answer(method, path, query, self._headers, b"".join(self._body))
        if status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            headers.setdefault("Content-Length", str(len(body)))
        if method == "HEAD":
            body = b""
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._transport.write(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode("latin-1") + body)


async def serve(objects: Objects, seconds: float) -> None:
    """Serves until it is ended."""
    server = await asyncio.get_running_loop().create_server(lambda: Connection(objects, seconds), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(Objects(), float(sys.argv[1]) / 1000))
