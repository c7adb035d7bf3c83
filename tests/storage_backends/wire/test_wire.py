"""HTTP on the wire: what is an answer, and which connections are used again."""

import asyncio
import itertools
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_backends.wire.http1 import (
    MAX_HEAD_BYTES,
    AnswerLost,
    AnswerTooLarge,
    NeverSent,
    Response,
    ResponseReader,
    request_head,
)
from storage_backends.wire.pool import AGE_MS, IDLE_MS, Pool, Timeouts
from tests.storage_backends.wire.servers import Handle, serve
from tests.support.fake_runtime import FakeRuntime

PLAIN = b'HTTP/1.1 200 OK\r\nETag: "1"\r\nContent-Length: 11\r\n\r\nhello world'
CHUNKED = b'HTTP/1.1 200 OK\r\nETag: "1"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n'
INFORMED = b"HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n" + PLAIN
UNCHANGED = b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n'
ENDLESS = b"HTTP/1.1 200 OK\r\n\r\nuntil the connection ends"
ANSWERS = [(PLAIN, 200, b"hello world"), (CHUNKED, 200, b"hello world"), (INFORMED, 200, b"hello world")]
HEAD = request_head("GET", "/key", {"host": "h"}, 0)


@given(answer=st.sampled_from([*ANSWERS, (UNCHANGED, 304, b"")]), cuts=st.sets(st.integers(1, 120), max_size=8))
def test_an_answer_is_the_same_however_it_arrives(answer: tuple[bytes, int, bytes], cuts: set[int]) -> None:
    data, status, body = answer
    reader = ResponseReader("GET")
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    parts = [data[start:end] for start, end in itertools.pairwise(edges)]

    seen = [reader.feed(part) for part in parts]

    assert seen[:-1] == [None] * (len(parts) - 1)
    assert seen[-1] is not None
    assert (seen[-1].status, seen[-1].body, seen[-1].headers["etag"]) == (status, body, '"1"')
    assert "x-early" not in seen[-1].headers
    assert reader.keep_alive


@pytest.mark.parametrize("data", [PLAIN, CHUNKED, INFORMED, UNCHANGED])
def test_part_of_an_answer_is_no_answer(data: bytes) -> None:
    for length in range(len(data)):
        assert ResponseReader("GET").feed(data[:length]) is None


def test_an_answer_without_an_end_is_no_answer() -> None:
    assert ResponseReader("GET").feed(ENDLESS) is None


@pytest.mark.parametrize(
    ("method", "status"), [(b"GET", b"404 Not Found"), (b"PUT", b"200 OK"), (b"DELETE", b"200 OK")]
)
def test_an_answer_without_a_length_ends_with_its_connection_where_its_body_is_no_data(
    method: bytes, status: bytes
) -> None:
    reader = ResponseReader(method.decode())
    assert reader.feed(ENDLESS.replace(b"200 OK", status)) is None
    answer = reader.end()
    assert answer is not None
    assert (answer.status, answer.body) == (int(status[:3]), b"until the connection ends")
    assert not reader.keep_alive


@pytest.mark.parametrize(
    ("method", "data"),
    [
        ("GET", ENDLESS),
        ("POST", ENDLESS),
        ("PUT", PLAIN[:-1]),
        ("PUT", CHUNKED[:-1]),
        ("PUT", ENDLESS[:17]),
        ("PUT", b""),
        ("PUT", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_what_may_be_cut_short_is_no_answer_even_at_the_end(method: str, data: bytes) -> None:
    reader = ResponseReader(method)
    reader.feed(data)
    assert reader.end() is None


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 600000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"8\r\n12345678\r\n" * 2,
        b"HTTP/1.1 404 Not Found\r\n\r\n12345678901",
        PLAIN,
        CHUNKED,
    ],
)
def test_a_body_has_a_bound(data: bytes) -> None:
    with pytest.raises(AnswerTooLarge, match="longer than 10 bytes"):
        ResponseReader("GET", max_body_bytes=10).feed(data)


@pytest.mark.parametrize("part", [b"a", b"Header: value\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n"])
def test_headers_have_a_bound(part: bytes) -> None:
    start = b"" if part.startswith(b"HTTP") else b"HTTP/1.1 200 OK\r\nA: "
    with pytest.raises(AnswerTooLarge, match="headers"):
        fed_in_parts(start, *[part] * MAX_HEAD_BYTES)


def fed_in_parts(*parts: bytes) -> None:
    reader = ResponseReader("GET")
    for part in parts:
        reader.feed(part)


def test_a_head_may_announce_what_a_get_may_not_bring() -> None:
    answer = ResponseReader("HEAD", max_body_bytes=10).feed(PLAIN.removesuffix(b"hello world"))
    assert answer is not None


def test_the_answer_to_a_head_has_no_body_whatever_its_content_length() -> None:
    reader = ResponseReader("HEAD")
    answer = reader.feed(PLAIN.removesuffix(b"hello world"))
    assert answer == Response(200, {"etag": '"1"', "content-length": "11"}, b"")
    assert reader.keep_alive


@pytest.mark.parametrize(
    ("method", "data"),
    [
        ("GET", PLAIN + b"more"),
        ("GET", PLAIN + PLAIN),
        ("HEAD", PLAIN),
        ("GET", PLAIN.replace(b"ETag", b"Connection: close\r\nETag")),
        ("GET", PLAIN.replace(b"1.1", b"1.0")),
    ],
)
def test_after_some_answers_a_connection_is_not_used_again(method: str, data: bytes) -> None:
    reader = ResponseReader(method)
    assert reader.feed(data) is not None
    assert not reader.keep_alive


@pytest.mark.parametrize(
    "data", [PLAIN + PLAIN.replace(b'"1"', b'"2"'), CHUNKED.removesuffix(b"\r\n") + b'ETag: "2"\r\n\r\n']
)
def test_an_answer_keeps_its_own_headers_whatever_comes_behind_it(data: bytes) -> None:
    answer = ResponseReader("GET").feed(data)
    assert answer is not None
    assert (answer.headers["etag"], answer.body) == ('"1"', b"hello world")


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01 a TLS server",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        PLAIN.replace(b"Length: 11", b"Length: -1"),
        PLAIN.replace(b"ETag", b"Content-Length: 3\r\nETag"),
        CHUNKED.replace(b"ETag", b"Content-Length: 3\r\nETag"),
        CHUNKED.replace(b"5\r\n", b"xyz\r\n"),
    ],
)
def test_what_is_not_http_is_no_answer(data: bytes) -> None:
    with pytest.raises(AnswerLost, match="not HTTP"):
        ResponseReader("GET").feed(data)


@pytest.fixture
def clock() -> FakeRuntime:
    return FakeRuntime()


@asynccontextmanager
async def pool_to(handle: Handle, clock: FakeRuntime, *, size: int = 64, idle_s: float = 5.0) -> AsyncIterator[Pool]:
    """A pool of connections to a server that treats each of them so."""
    async with serve(handle) as port:
        pool = Pool("127.0.0.1", port, None, size, Timeouts(3.0, idle_s), clock.now_ms)
        try:
            yield pool
        finally:
            await pool.close()


class Polite:
    """Answers every request, and counts connections."""

    def __init__(self) -> None:
        self.connections = 0
        self.busy = 0
        self.busiest = 0
        self.hangs_up = False
        self.arrived = asyncio.Semaphore(0)
        self.ended = asyncio.Semaphore(0)
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.arrived.release()
                self.busy += 1
                self.busiest = max(self.busiest, self.busy)
                await self.go.wait()
                self.busy -= 1
                if self.hangs_up:
                    return
                writer.write(PLAIN)
        finally:
            self.ended.release()

    async def answer_two(self, pool: Pool) -> None:
        """Answers two requests that are there at once: their connections rest then."""
        self.go.clear()
        both = [asyncio.create_task(pool.send("GET", HEAD, b"")) for _ in range(2)]
        for _ in both:
            await self.arrived.acquire()
        self.go.set()
        await asyncio.gather(*both)


async def test_requests_in_turn_share_a_connection(clock: FakeRuntime) -> None:
    server = Polite()
    async with pool_to(server, clock) as pool:
        for _ in range(3):
            clock.ms += IDLE_MS
            assert (await pool.send("GET", HEAD, b"")).body == b"hello world"
    assert server.connections == 1


@pytest.mark.parametrize("later_ms", [IDLE_MS + 1, 3_600_000, -1])
async def test_a_connection_that_was_idle_too_long_is_not_used_again(clock: FakeRuntime, later_ms: int) -> None:
    server = Polite()
    async with pool_to(server, clock) as pool:
        await pool.send("GET", HEAD, b"")
        clock.ms += later_ms
        await pool.send("GET", HEAD, b"")
    assert server.connections == 2


async def test_a_connection_is_used_again_until_it_is_old(clock: FakeRuntime) -> None:
    server = Polite()
    async with pool_to(server, clock) as pool:
        for _ in range(AGE_MS // IDLE_MS + 1):
            await pool.send("GET", HEAD, b"")
            assert server.connections == 1
            clock.ms += IDLE_MS
        await pool.send("GET", HEAD, b"")
    assert server.connections == 2


async def test_a_connection_that_rests_too_long_is_closed_while_others_work(clock: FakeRuntime) -> None:
    server = Polite()
    async with pool_to(server, clock) as pool:
        await server.answer_two(pool)
        for later_ms in (IDLE_MS, 1):  # the same one works both times
            clock.ms += later_ms
            await pool.send("GET", HEAD, b"")
        async with asyncio.timeout(10):
            await server.ended.acquire()
        await pool.send("GET", HEAD, b"")
    assert server.connections == 2


async def test_when_an_answer_is_lost_no_connection_that_rests_is_used_again(clock: FakeRuntime) -> None:
    server = Polite()
    async with pool_to(server, clock) as pool:
        await server.answer_two(pool)
        server.hangs_up = True
        with pytest.raises(AnswerLost):
            await pool.send("GET", HEAD, b"")
        server.hangs_up = False
        await pool.send("GET", HEAD, b"")
    assert server.connections == 3


async def test_connections_are_bounded_and_all_requests_are_answered(clock: FakeRuntime) -> None:
    server = Polite()
    server.go.clear()
    async with pool_to(server, clock, size=2) as pool:
        sent = [asyncio.create_task(pool.send("GET", HEAD, b"")) for _ in range(7)]
        await server.arrived.acquire()
        await server.arrived.acquire()
        server.go.set()
        assert {answer.status for answer in await asyncio.gather(*sent)} == {200}
    assert server.busiest == 2
    assert server.connections == 2


async def test_the_answer_to_a_cancelled_request_is_never_taken_for_anothers(clock: FakeRuntime) -> None:
    arrived = asyncio.Event()
    connections: list[asyncio.StreamWriter] = []

    async def slow_at_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        if len(connections) == 1:
            arrived.set()
            await reader.read()
        writer.write(PLAIN.replace(b"world", b"%5d" % len(connections)))

    async with pool_to(slow_at_first, clock) as pool:
        cancelled = asyncio.create_task(pool.send("GET", HEAD, b""))
        await arrived.wait()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert (await pool.send("GET", HEAD, b"")).body == b"hello     2"


@pytest.mark.parametrize("length", [0, 1, 30, len(PLAIN) - 1])
async def test_a_short_answer_is_lost(clock: FakeRuntime, length: int) -> None:
    requests = 0

    async def cut_short(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        requests += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(PLAIN[:length])

    async with pool_to(cut_short, clock) as pool:
        with pytest.raises(AnswerLost):
            await pool.send("GET", HEAD, b"")
    assert requests == 1


async def test_a_server_that_speaks_something_else_is_not_waited_for(clock: FakeRuntime) -> None:
    async def mumble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.com ESMTP\r\n")
        await reader.read()

    async with pool_to(mumble, clock, idle_s=60.0) as pool, asyncio.timeout(10):
        with pytest.raises(AnswerLost, match="not HTTP"):
            await pool.send("GET", HEAD, b"")


async def test_silence_ends_an_exchange(clock: FakeRuntime) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with pool_to(silent, clock, idle_s=0.05) as pool:
        with pytest.raises(AnswerLost, match=r"no byte was sent or received for 0\.05 s"):
            await pool.send("GET", HEAD, b"")


class Later:
    """Sets the clock of the event loop forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._seconds = 0.0
        loop = asyncio.get_running_loop()
        loop_time = loop.time
        monkeypatch.setattr(loop, "time", lambda: loop_time() + self._seconds)

    async def by(self, seconds: float) -> None:
        """Makes it so much later than at first, and lets the loop run what is due and what has arrived."""
        self._seconds = seconds
        for _ in range(20):
            await asyncio.sleep(0)


async def test_the_silence_of_each_exchange_on_a_connection_is_its_own(
    clock: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One alarm serves all exchanges of a connection, so it may ring early."""
    polite, later = Polite(), Later(monkeypatch)

    async with pool_to(polite, clock, idle_s=100.0) as pool:
        await pool.send("GET", HEAD, b"")
        await later.by(90.0)
        polite.go.clear()
        second = asyncio.create_task(pool.send("GET", HEAD, b""))
        for _ in range(2):
            await polite.arrived.acquire()
        for seconds, is_lost in ((101.0, False), (180.0, False), (191.0, True)):
            await later.by(seconds)
            assert second.done() == is_lost
        with pytest.raises(AnswerLost, match="no byte was sent or received"):
            await second
        polite.go.set()
    assert polite.connections == 1


async def test_an_answer_that_stops_coming_is_lost(clock: FakeRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    later, begun = Later(monkeypatch), asyncio.Event()

    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(PLAIN[:-1])
        begun.set()
        await reader.read()

    async with pool_to(half, clock, idle_s=100.0) as pool:
        sent = asyncio.create_task(pool.send("GET", HEAD, b""))
        await begun.wait()
        for seconds, is_lost in ((60.0, False), (101.0, False), (190.0, False), (202.0, True)):
            await later.by(seconds)
            assert sent.done() == is_lost
        with pytest.raises(AnswerLost, match="no byte was sent or received"):
            await sent


async def test_a_large_body_goes_and_comes_whole(clock: FakeRuntime) -> None:
    body = bytes(range(256)) * 20_000

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + await reader.readexactly(len(body)))
        await writer.drain()

    async with pool_to(echo, clock) as pool:
        answer = await pool.send("PUT", request_head("PUT", "/key", {}, len(body)), body)
    assert answer.body == body


async def test_an_address_without_a_listener_means_never_sent(clock: FakeRuntime) -> None:
    with socket.socket() as deaf:  # bound, so that no other socket gets its port, and it does not listen
        deaf.bind(("127.0.0.1", 0))
        pool = Pool("127.0.0.1", deaf.getsockname()[1], None, 1, Timeouts(3.0, 5.0), clock.now_ms)
        with pytest.raises(NeverSent, match="no connection"):
            await pool.send("PUT", HEAD, b"")


class Sockets:
    """A server that does not need our event loop, so that things can happen while that stands still."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.port: int = listener.getsockname()[1]
        self.first_may_close = threading.Event()
        self.first_is_closed = threading.Event()
        self.requests = 0

    def serve(self) -> None:
        """Two connections with one request each."""
        for _ in range(2):
            connection, _ = self._listener.accept()
            with connection:
                while b"\r\n\r\n" not in connection.recv(65_536):
                    pass
                self.requests += 1
                connection.sendall(PLAIN)
                self.first_may_close.wait(10)
            self.first_is_closed.set()


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        server = Sockets(listener)
        thread = threading.Thread(target=server.serve)
        thread.start()
        yield server
        thread.join(10)
        assert not thread.is_alive()


async def test_a_connection_that_died_in_a_freeze_is_found_out_before_it_is_used(
    sockets: Sockets, clock: FakeRuntime
) -> None:
    pool = Pool("127.0.0.1", sockets.port, None, 1, Timeouts(3.0, 5.0), clock.now_ms)
    await pool.send("PUT", HEAD, b"")
    sockets.first_may_close.set()
    sockets.first_is_closed.wait(10)  # the event loop stands still, and cannot have heard of it

    assert (await pool.send("PUT", HEAD, b"")).status == 200
    assert sockets.requests == 2
    await pool.close()
