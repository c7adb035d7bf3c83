"""One GET of a small document, and no other request."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from storage_backends import StoreDenied, StoreUnavailable
from storage_backends.clock import system_now_ms
from storage_backends.wire.fetch import checked_url, fetch
from storage_backends.wire.http1 import Response
from tests.support.certificates import write_certificate
from tests.support.stub_server import stub_server

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def saying(status: int, body: bytes = b"", **headers: str) -> tuple[Handle, list[str]]:
    requests: list[str] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        requests.append(f"{request.method} {request.path_qs} {request.headers.get('x-more', '')}".strip())
        return web.Response(
            status=status, body=body, headers={name.replace("_", "-"): v for name, v in headers.items()}
        )

    return handle, requests


async def got(url: str, max_bytes: int = 1000, **headers: str) -> Response:
    return await fetch(url, headers, system_now_ms, max_bytes, plain_loopback=True)


async def test_a_document_is_got_with_its_query_and_headers() -> None:
    handle, requests = saying(200, b'{"a": 1}')
    async with stub_server(handle) as server:
        answer = await fetch(f"{server.uri}/a/b?c=d", {"x-more": "m"}, system_now_ms, 100, plain_loopback=True)
    assert (answer.status, answer.body, requests) == (200, b'{"a": 1}', ["GET /a/b?c=d m"])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(status: int) -> None:
    handle, requests = saying(status, location="/elsewhere")
    async with stub_server(handle) as server:
        assert (await got(server.uri)).status == status
    assert requests == ["GET /"]


async def test_an_answer_that_is_too_long_is_refused() -> None:
    handle, _ = saying(200, b"x" * 1001)
    async with stub_server(handle) as server:
        with pytest.raises(StoreUnavailable, match="longer than 1,000"):
            await got(server.uri)


async def test_a_refused_connection_is_unavailable() -> None:
    handle, _ = saying(200)
    async with stub_server(handle) as server:
        uri = server.uri
        await server.stop_listening()
        with pytest.raises(StoreUnavailable, match="no complete answer"):
            await got(uri)


async def test_an_untrusted_certificate_is_refused(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate", tmp_path / "key"
    write_certificate(certificate, key, "127.0.0.1")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    trusting = await asyncio.to_thread(ssl.create_default_context, cafile=certificate)
    handle, _ = saying(200, b"{}")
    async with stub_server(handle, serving) as server:
        with pytest.raises(StoreUnavailable, match="certificate"):
            await got(server.uri)
        assert (await fetch(server.uri, {}, system_now_ms, 100, tls=trusting)).body == b"{}"


@pytest.mark.parametrize(
    "url",
    [
        "", "x", "//host/path", "http://example.org", "http://127.0.0.1", "file:///etc/passwd", "ftp://example.org",
        "https://", "https://:443", "https://a@example.org", "https://a:b@example.org", "https://example.org#x",
        "https://example.org:x", "https://example.org:99999", "https://example.org/a b", "https://example.org/\n",
        "https://exämple.org", "javascript:alert(1)", "HTTP://example.org", "https://[::1",
    ],
)  # fmt: skip
async def test_only_plain_https_is_fetched(url: str) -> None:
    with pytest.raises(StoreDenied):
        checked_url(url)
    with pytest.raises(StoreDenied):
        await fetch(url, {}, system_now_ms, 100)


@pytest.mark.parametrize("url", ["http://127.0.0.1:80/x", "http://localhost", "http://[::1]:8080"])
def test_this_machine_may_be_called_without_tls_if_that_is_allowed(url: str) -> None:
    assert checked_url(url, plain_loopback=True).scheme == "http"


@pytest.mark.parametrize(
    "url", ["http://example.org", "http://169.254.169.254", "http://127.0.0.1.example.org", "http://0.0.0.0"]
)
def test_others_may_not_even_then(url: str) -> None:
    with pytest.raises(StoreDenied):
        checked_url(url, plain_loopback=True)
