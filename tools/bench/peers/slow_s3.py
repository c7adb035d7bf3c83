"""An S3 that is far away: `python -m tools.bench.peers.slow_s3 MILLISECONDS [moto]` answers so much later.

Requests come over connections that stay open, wait beside each other, and are then answered one by one, which makes
conditional writes atomic: by `Objects`, or by moto (whose own server takes a thread and a connection for each request).
"""

import asyncio
import io
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeAlias, cast
from urllib.parse import unquote_to_bytes

import httptools
import uvloop

from tools.bench.peers.objects import Answer, Objects

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

Answering: TypeAlias = Callable[[str, str, str, Mapping[str, str], bytes], Answer]
"""Method, path and query as sent, headers by names in lower case, body."""


class Connection(asyncio.Protocol):
    """One client's connection: a request at a time, as all of ours send them."""

    def __init__(self, answering: Answering, seconds: float) -> None:
        self._answering = answering
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
        status, headers, body = self._answering(method, path, query, self._headers, b"".join(self._body))
        if status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            headers.setdefault("Content-Length", str(len(body)))
        if method == "HEAD":
            body = b""
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._transport.write(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode("latin-1") + body)


def moto() -> Answering:
    """moto's S3, asked as a WSGI server would."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    application = DomainDispatcherApplication(create_backend_app)

    def answer(method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Answer:
        environ: WSGIEnvironment = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "RAW_URI": f"{path}?{query}" if query else path,
            "QUERY_STRING": query,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()},
        }
        said: list[tuple[int, dict[str, str]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], error: object = None) -> Callable[..., None]:
            said.append((int(status[:3]), dict(headers)))
            return lambda data: None

        data = b"".join(application(environ, start_response))
        [(status, answered)] = said
        return status, answered, data

    return answer


async def serve(answering: Answering, seconds: float) -> None:
    """Serves until it is ended."""
    server = await asyncio.get_running_loop().create_server(lambda: Connection(answering, seconds), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(moto() if "moto" in sys.argv[2:] else Objects().answer, float(sys.argv[1]) / 1000))
