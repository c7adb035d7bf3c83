"""What no HTTP client sends, byte by byte at a real server: it answers with a 4xx or hangs up, and goes on serving."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.support.arco_server import WAREHOUSE, ArcoServer

EXCHANGES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "wire.json").read_text())
CPU_SECONDS = 5.0
"""What a server may spend on one exchange: on the clock it takes as long as others let it."""
TIMEOUT = 60.0
JSON = b"Content-Type: application/json"
QUIET = 0.2
"""How long to wait for a server that may have nothing to say."""
MAX_BYTES = 300 << 20
"""Bytes that a server may take, whatever single body it is sent: the body a few times over, and itself."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArcoServer]:
    """A server of its own, over local files, with the namespace `db`."""
    folder = tmp_path_factory.mktemp("wire")
    with ArcoServer(f"file:{folder}/store", folder / "log") as running:
        body = b'{"namespace":["db"]}'
        assert status_of(exchange(running, [_post("namespaces", body)])) == 200
        yield running


def _post(path: str, body: bytes, *headers: bytes) -> bytes:
    lines = [
        b"POST /v1/%b/%b HTTP/1.1" % (WAREHOUSE.encode(), path.encode()),
        b"Host: localhost",
        JSON,
        b"Connection: close",
    ]
    return b"\r\n".join([*lines, *headers, b"Content-Length: %d" % len(body), b"", body])


def exchange(server: ArcoServer, pieces: list[bytes], timeout: float = TIMEOUT) -> bytes:
    """Sends pieces over one connection, then reads until the server hangs up or sends nothing for so many seconds."""
    host, _, port = server.uri.removeprefix("http://").partition(":")
    read = b""
    with socket.create_connection((host, int(port)), timeout=TIMEOUT) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a piece, a packet
        try:
            for piece in pieces:
                connection.sendall(piece)
            connection.settimeout(timeout)
            while received := connection.recv(1 << 16):
                read += received
        except (ConnectionResetError, BrokenPipeError, TimeoutError):
            pass  # it hung up on us, or waits for more: that is an answer, too
    return read


def status_of(answer: bytes) -> int | None:
    """The status of the first answer; None where the server just hung up."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None


@pytest.mark.parametrize("sent", EXCHANGES, ids=lambda sent: sent["name"])
def test_bytes_that_are_no_request_are_refused(sent: dict[str, Any], server: ArcoServer) -> None:
    raw = "".join(part * times for part, times in sent["bytes"]).replace("$WH", f"/v1/{WAREHOUSE}")
    before = server.cpu_seconds()

    answer = exchange(server, [raw.encode("latin-1")], QUIET if None in sent["statuses"] else TIMEOUT)

    assert server.cpu_seconds() - before < CPU_SECONDS
    assert status_of(answer) in sent["statuses"], (sent["why"], answer[:300])
    assert answer.count(b"HTTP/1.1 ") == sent.get("answers", 0 if status_of(answer) is None else 1), answer
    assert status_of(exchange(server, [b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"])) == 200


def test_a_request_may_dribble(server: ArcoServer) -> None:
    request = _post("namespaces/db/properties", b'{"updates":{"a":"b"}}')

    answer = exchange(server, [request[start : start + 8] for start in range(0, len(request), 8)])

    assert status_of(answer) == 200


def test_chunks_of_one_byte_are_a_body(server: ArcoServer) -> None:
    body = b'{"updates":{"a":"c"}}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    head = (
        b"POST /v1/%b/namespaces/db/properties HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nConnection: close\r\n" % WAREHOUSE.encode()
    )

    assert status_of(exchange(server, [head + b"Transfer-Encoding: chunked\r\n\r\n", chunks])) == 200


def test_chunks_without_end_are_cut_off(server: ArcoServer) -> None:
    head = (
        b"POST /v1/%b/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
        % WAREHOUSE.encode()
    )
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"

    answer = exchange(server, [head + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 64])

    assert status_of(answer) in (None, 413)
    assert server.memory("VmHWM") < MAX_BYTES


HEAD = b"POST /v1/%b/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % WAREHOUSE.encode()
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "headers": (HEAD, b"X-A: b\r\n" * 8192),
    "one header": (HEAD + b"X-A: ", b"b" * (64 << 10)),
    "a target": (b"GET /", b"b" * (64 << 10)),
    "an extension of a chunk": (CHUNKED + b"1;", b"b" * (64 << 10)),
    "trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"X-A: b\r\n" * 8192),
    "requests": (b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_never_ends_is_cut_off(what: str, server: ArcoServer) -> None:
    first, piece = ENDLESS[what]
    before = server.memory("VmRSS")

    answer = exchange(server, [first, *[piece] * 320])

    assert answer == b"" or status_of(answer) in (200, 400, 431)
    assert server.memory("VmRSS") - before < 64 << 20
    assert status_of(exchange(server, [b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"])) == 200


def test_what_is_no_request_is_not_answered_in_place_of_the_commit_before(server: ArcoServer) -> None:
    body = b'{"namespace":["made"]}'
    commit = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body

    answer = exchange(server, [commit + b"\x00\r\n\r\n"])

    assert status_of(answer) in (None, 200)


FILLS = {
    "text": (b"x" * 64, 404),
    "arrays": (b'",[],[],"', 413),
    "objects": (b'",{},{},"', 413),
    "deep": (b'",[[[[]]]],"', 413),
}


@pytest.mark.parametrize("fill", FILLS)
def test_the_largest_body_costs_bounded_time_and_memory(fill: str, server: ArcoServer) -> None:
    filling, expected = FILLS[fill]
    body = b'{"requirements":[],"updates":[],"x":["' + filling * ((7 << 20) // len(filling)) + b'"]}'
    before = server.cpu_seconds()

    answer = exchange(server, [_post("namespaces/db/tables/none", body)])

    assert status_of(answer) == expected
    assert server.cpu_seconds() - before < CPU_SECONDS
    assert server.memory("VmHWM") < MAX_BYTES
