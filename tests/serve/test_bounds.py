"""A real server stays within its settings: memory for bodies, unpacked metadata and answers, and open files."""

import asyncio
import contextlib
import io
import json
import socket
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import aiohttp
import pytest

from tools.support.arco_server import WAREHOUSE, ArcoServer
from tools.support.request_bodies import schema

MB = 1 << 20
AT_REST = 120 * MB
"""What a server holds that has done little, on the safe side."""
REQUEST_MEMORY = 256 * MB
CACHE_MEMORY = 100 * MB
TIMEOUT_S = 240.0
DESCRIPTORS = 256
HALF_OPEN = 400
NAMESPACES = f"/v1/{WAREHOUSE}/namespaces"
JSON = {"Content-Type": "application/json"}
TABLES = f"{NAMESPACES}/db/tables"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ArcoServer]:
    with ArcoServer(f"file:{tmp_path}/store", tmp_path / "log", "--max-body", "32MB") as server:
        yield server


def session(server: ArcoServer) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(server.uri, timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))


async def make_namespace(client: aiohttp.ClientSession) -> None:
    async with client.post(NAMESPACES, json={"namespace": ["db"]}) as answer:
        assert answer.status == 200, await answer.text()


async def test_a_metadata_file_that_unpacks_to_far_more_than_its_size_is_refused(
    server: ArcoServer, tmp_path: Path
) -> None:
    packer = zlib.compressobj(wbits=31)
    folder = tmp_path / "store" / WAREHOUSE / "warehouse" / "t"
    folder.mkdir(parents=True)
    file = folder / "1.metadata.json"
    file.write_bytes(b"".join(packer.compress(bytes(MB)) for _ in range(512)) + packer.flush())
    async with session(server) as client:
        await make_namespace(client)
        wanted = {"name": "t", "metadata-location": f"file://{file}"}
        async with client.post(f"{NAMESPACES}/db/register", json=wanted) as answer:
            status, error = answer.status, (await answer.json())["error"]

    assert (status, error["type"]) == (400, "BadRequestException")
    assert str(file) in error["message"]
    assert f"{64 * MB:,} bytes" in error["message"]
    assert server.memory("VmHWM") < AT_REST + 3 * 64 * MB


async def post(server: ArcoServer, path: str, body: bytes, *, chunked: bool) -> tuple[int, bytes]:
    """Sends a body, whatever comes meanwhile, and returns status and head of the answer."""
    address = server.uri.removeprefix("http://")
    host, _, port = address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    head = (f"POST {path} HTTP/1.1", f"Host: {address}", "Content-Type: application/json", length, "\r\n")
    writer.write("\r\n".join(head).encode())
    for start in range(0, len(body), MB):
        piece = body[start : start + MB]
        writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        await writer.drain()
    if chunked:
        writer.write(b"0\r\n\r\n")
    answer = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return int(answer.split()[1]), answer


@pytest.mark.parametrize("chunked", [False, True])
async def test_many_large_bodies_at_once_share_the_memory_that_there_is(server: ArcoServer, chunked: bool) -> None:
    body = json.dumps({"updates": {f"p{number}": "x" * 1_000 for number in range(30_000)}, "removals": []}).encode()
    async with asyncio.timeout(TIMEOUT_S):
        answers = await asyncio.gather(
            *(post(server, f"{NAMESPACES}/missing/properties", body, chunked=chunked) for _ in range(20))
        )

    assert {status for status, _ in answers} <= {404, 503}
    assert any(status == 404 for status, _ in answers)
    assert all(b"Retry-After: 1" in head for status, head in answers if status == 503)
    assert server.memory("VmHWM") < AT_REST + REQUEST_MEMORY
    assert server.memory("VmRSS") < AT_REST


async def test_many_loads_of_a_large_table_at_once_share_the_memory_that_there_is(server: ArcoServer) -> None:
    statuses: Counter[int] = Counter()

    async def load(client: aiohttp.ClientSession) -> None:
        async with client.get(f"{TABLES}/t") as answer:
            async for _ in answer.content.iter_chunked(MB):
                pass
            statuses[answer.status] += 1

    async with session(server) as client:
        await make_namespace(client)
        wanted = json.dumps(
            {"name": "t", "schema": schema("x"), "properties": dict.fromkeys("abcd", "x" * 7 * MB)}
        ).encode()
        async with client.post(TABLES, data=io.BytesIO(wanted), headers=JSON) as answer:
            assert answer.status == 200, await answer.text()
        await asyncio.gather(*(load(client) for _ in range(16)))

    assert sum(statuses.values()) == 16
    assert set(statuses) <= {200, 503}
    assert statuses[200] > 0
    assert server.memory("VmHWM") < AT_REST + REQUEST_MEMORY + CACHE_MEMORY


@contextlib.contextmanager
def half_open(uri: str, count: int) -> Iterator[Sequence[socket.socket]]:
    """Connections on which a request has begun, and does not go on."""
    host, _, port = uri.removeprefix("http://").partition(":")
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=TIMEOUT_S))
            connection.sendall(b"GET /v1/config HTTP/1.1\r\nX-Slow: ")
            opened.append(connection)
        yield opened


async def test_clients_are_answered_beside_more_half_open_heads_than_there_are_descriptors(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/store"
    with ArcoServer(url, tmp_path / "log", descriptors=DESCRIPTORS) as server:
        async with session(server) as established, session(server) as new:
            await make_namespace(established)
            with half_open(server.uri, HALF_OPEN):
                for number in range(20):
                    wanted = {"name": f"t{number}", "schema": schema("x")}
                    async with established.post(TABLES, json=wanted) as answer:
                        assert answer.status == 200, await answer.text()
                async with new.get(f"{TABLES}/t0") as answer:
                    assert answer.status == 200
        assert "Too many open files" not in (tmp_path / "log").read_text()


async def test_no_more_is_kept_of_incomplete_heads_than_may_be(server: ArcoServer) -> None:
    with contextlib.ExitStack() as stack:
        for connection in stack.enter_context(half_open(server.uri, HALF_OPEN)):
            with contextlib.suppress(OSError):  # it may have been cut already
                await asyncio.to_thread(connection.sendall, b"x\r\n" + b"a:b\r\n" * 40_000)
        async with session(server) as client, client.get("/v1/config") as answer:
            assert answer.status == 200
        assert server.memory("VmRSS") < AT_REST + 32 * 4 * MB
