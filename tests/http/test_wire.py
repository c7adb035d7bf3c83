"""What reaches a socket: the bytes that clients see."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn

from tests.support.http_service import HttpService


class Wire:
    """A connection to a server."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def send(self, request: str) -> tuple[str, list[str], bytes]:
        """Status line, header lines and body of the answer to one request."""
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(request.replace("\n", "\r\n").encode() + b"Host: x\r\nConnection: close\r\n\r\n")
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            writer.close()
            await writer.wait_closed()
        status, *headers = head.decode().split("\r\n")
        return status, headers, body


class Listening(uvicorn.Server):
    """A server with an event for when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@pytest.fixture
async def wire(service: HttpService) -> AsyncIterator[Wire]:
    """The server that `arco serve` runs, on a free port."""
    config = uvicorn.Config(service.client.app, host="127.0.0.1", port=0, http="httptools", ws="none", log_config=None)
    server = Listening(config)
    serving = asyncio.create_task(server._serve())
    await server.listening.wait()
    yield Wire(server.servers[0].sockets[0].getsockname()[1])
    server.should_exit = True
    await serving


async def test_header_names_arrive_with_their_capitalisation(wire: Wire) -> None:
    status, headers, body = await wire.send("GET /v1/wh/namespaces/db/tables/t HTTP/1.1\n")

    assert status == "HTTP/1.1 200 OK"
    names = [line.partition(":")[0] for line in headers]
    assert "ETag" in names
    assert "Content-Type" in names
    assert body.startswith(b'{"metadata-location":"memory:///')
    assert f"content-length: {len(body)}" in headers
    assert not [line for line in headers if line.lower().startswith("transfer-encoding")]


async def test_304_and_204_have_no_body_and_no_length(wire: Wire) -> None:
    _, headers, _ = await wire.send("GET /v1/wh/namespaces/db/tables/t HTTP/1.1\n")
    [tag] = [line for line in headers if line.startswith("ETag: ")]

    for request, expected in (
        (f"GET /v1/wh/namespaces/db/tables/t HTTP/1.1\nIf-None-Match: {tag[6:]}\n", "HTTP/1.1 304 Not Modified"),
        ("HEAD /v1/wh/namespaces/db HTTP/1.1\n", "HTTP/1.1 204 No Content"),
    ):
        status, headers, body = await wire.send(request)
        assert (status, body) == (expected, b"")
        assert not [line for line in headers if line.lower().startswith(("content-length", "transfer-encoding"))]


async def test_an_error_to_head_has_no_body(wire: Wire) -> None:
    status, headers, body = await wire.send("HEAD /v1/wh/namespaces/missing HTTP/1.1\n")

    assert (status, body) == ("HTTP/1.1 404 Not Found", b"")
    assert not [line for line in headers if line.lower().startswith(("content-length", "transfer-encoding"))]


async def test_encoded_slashes_and_plus_signs_reach_the_catalog(service: HttpService, wire: Wire) -> None:
    await service.table("a/b+c d")

    status, _, _ = await wire.send("GET /v1/wh/namespaces/db/tables/a%2Fb%2Bc+d HTTP/1.1\n")

    assert status == "HTTP/1.1 200 OK"


async def test_a_body_that_is_too_large_is_refused_before_it_is_sent(wire: Wire) -> None:
    request = (
        "POST /v1/wh/namespaces HTTP/1.1\nContent-Type: application/json\n"
        "Content-Length: 99999999999\nExpect: 100-continue\n"
    )

    status, _, body = await wire.send(request)

    assert status.startswith("HTTP/1.1 413 ")
    assert b'"type":"BadRequestException"' in body
