"""Connections that go wrong: on both event loops that the catalog runs on, in the clear and over TLS."""

import asyncio
import inspect
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from storage_backends.wire import dial
from storage_backends.wire.dial import Address, interleaved
from storage_backends.wire.http1 import AnswerLost, NeverSent, request_head
from storage_backends.wire.pool import Pool, Timeouts
from tests.storage_backends.wire.servers import Handle, serve
from tests.support.certificates import write_certificate
from tests.support.fake_runtime import FakeRuntime

HEAD = request_head("GET", "/key", {"host": "h"}, 0)
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
V4, V6 = socket.AF_INET, socket.AF_INET6


PATIENT = Timeouts(20.0, 20.0)


def on_both_loops(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """The test on asyncio's event loop, and on uvloop's."""

    def run(new_loop: Callable[[], asyncio.AbstractEventLoop], **fixtures: object) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(test(**fixtures))

    new_loop = inspect.Parameter("new_loop", inspect.Parameter.KEYWORD_ONLY)
    signature = inspect.Signature([*inspect.signature(test).parameters.values(), new_loop])
    run.__name__, run.__dict__["__signature__"] = test.__name__, signature
    loops = [asyncio.new_event_loop, uvloop.new_event_loop]
    return pytest.mark.parametrize("new_loop", loops, ids=["asyncio", "uvloop"])(run)


class Trust:
    """How both ends of a connection speak."""

    server: ssl.SSLContext | None = None
    client: ssl.SSLContext | None = None


@pytest.fixture(params=["clear", "tls"])
def trust(request: pytest.FixtureRequest, tmp_path: Path) -> Trust:
    both = Trust()
    if request.param == "tls":
        certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
        write_certificate(certificate, key, "127.0.0.1")
        both.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        both.server.load_cert_chain(certificate, key)
        both.client = ssl.create_default_context(cafile=str(certificate))
    return both


PoolTo = Callable[..., AbstractAsyncContextManager[Pool]]


@pytest.fixture
def pool_to(trust: Trust) -> PoolTo:
    """A pool of connections to a server that treats each of them so."""

    @asynccontextmanager
    async def run(handle: Handle, timeouts: Timeouts = PATIENT) -> AsyncIterator[Pool]:
        async with serve(handle, trust.server) as port:
            pool = Pool("127.0.0.1", port, trust.client, 4, timeouts, FakeRuntime().now_ms)
            try:
                yield pool
            finally:
                await pool.close()

    return run


async def polite(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.readuntil(b"\r\n\r\n"):
        writer.write(PLAIN)


@on_both_loops
async def test_a_connection_whose_request_was_answered_before_it_was_sent_is_not_used_again(pool_to: PoolTo) -> None:
    body = bytes(8_000_000)
    connections, over = 0, asyncio.Event()

    async def early_at_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        if connections > 1:
            return await polite(reader, writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(PLAIN.replace(b"200 OK", b"403 Forbidden"))
        await over.wait()  # reads no more

    async with asyncio.timeout(30), pool_to(early_at_first) as pool:
        try:
            refused = await pool.send("PUT", request_head("PUT", "/key", {}, len(body)), body)
            answer = await pool.send("GET", HEAD, b"")
        finally:
            over.set()
    assert (refused.status, answer.status, connections) == (403, 200, 2)


@on_both_loops
async def test_an_answer_that_trickles_has_an_end(pool_to: PoolTo) -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"1\r\na\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with asyncio.timeout(30), pool_to(trickle, Timeouts(20.0, 20.0, exchange_s=0.3)) as pool:
        with pytest.raises(AnswerLost, match=r"no whole answer of \S+:\d+ came within 0\.3 s"):
            await pool.send("GET", HEAD, b"")


@on_both_loops
async def test_a_failure_that_ends_with_its_connection_is_an_answer(pool_to: PoolTo) -> None:
    async def ends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 503 Slow Down\r\n\r\n<Code>SlowDown</Code>")

    async with asyncio.timeout(30), pool_to(ends) as pool:
        answer = await pool.send("GET", HEAD, b"")
    assert (answer.status, answer.body) == (503, b"<Code>SlowDown</Code>")


@on_both_loops
async def test_an_answer_whose_connection_breaks_is_lost(pool_to: PoolTo) -> None:
    async def breaks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 503 Slow Down\r\n\r\n<Code>Slow")
        await writer.drain()
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()  # now a reset, not an end

    async with asyncio.timeout(30), pool_to(breaks) as pool:
        with pytest.raises(AnswerLost):
            await pool.send("PUT", request_head("PUT", "/key", {}, 0), b"")


class Addresses:
    """A host with one address that does not answer, and further addresses."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        self.dead: Address = (V4, self._listener.getsockname())
        self._clients = [socket.socket() for _ in range(4)]
        for client in self._clients:  # they fill the queue of connections to accept, and none is accepted
            client.setblocking(False)
            client.connect_ex(self._listener.getsockname())

    def close(self) -> None:
        for each in (self._listener, *self._clients):
            each.close()


@pytest.fixture
def addresses() -> Iterator[Addresses]:
    host = Addresses()
    yield host
    host.close()


def resolving_to(monkeypatch: pytest.MonkeyPatch, *addresses: Address) -> None:
    async def resolve(host: str, port: int) -> list[Address]:
        return [*addresses]

    monkeypatch.setattr(dial, "resolve", resolve)


@on_both_loops
async def test_an_address_without_an_answer_does_not_block_the_next(
    addresses: Addresses, trust: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asyncio.timeout(30), serve(polite, trust.server) as port:
        resolving_to(monkeypatch, addresses.dead, addresses.dead, (V4, ("127.0.0.1", port)))
        pool = Pool("127.0.0.1", port, trust.client, 4, Timeouts(25.0, 20.0), FakeRuntime().now_ms)
        answers = await asyncio.gather(*(pool.send("GET", HEAD, b"") for _ in range(3)))
        await pool.close()
    assert [answer.status for answer in answers] == [200] * 3


@on_both_loops
async def test_a_host_that_does_not_answer_is_given_up_in_time(
    addresses: Addresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving_to(monkeypatch, *[addresses.dead] * 50)
    pool = Pool("127.0.0.1", 1, None, 4, Timeouts(0.5, 20.0), FakeRuntime().now_ms)
    async with asyncio.timeout(30):
        with pytest.raises(NeverSent, match="TimeoutError"):
            await pool.send("GET", HEAD, b"")


@on_both_loops
async def test_a_host_that_refuses_at_each_address_is_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        resolving_to(monkeypatch, *[(V4, deaf.getsockname())] * 3)
        pool = Pool("127.0.0.1", 1, None, 4, Timeouts(60.0, 20.0), FakeRuntime().now_ms)
        async with asyncio.timeout(30):
            with pytest.raises(NeverSent, match="ConnectionRefusedError"):
                await pool.send("GET", HEAD, b"")


@on_both_loops
async def test_a_host_without_an_address_is_not_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving_to(monkeypatch)
    with pytest.raises(OSError, match="no address"):
        await dial.connect("unknown", 1)


def test_both_families_are_tried_in_turn() -> None:
    found: list[Address] = [(V6, ("a",)), (V6, ("b",)), (V6, ("c",)), (V4, ("d",))]
    assert [address for _, address in interleaved(found)] == [("a",), ("d",), ("b",), ("c",)]
    assert interleaved([]) == []
