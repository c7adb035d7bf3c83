"""The deadline of a request's head, by a clock that the test turns."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast, get_args

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from arco_catalog.cli.connections import (
    HEAD_SECONDS,
    LINGER_SECONDS,
    MAX_OVERHEAD_BYTES,
    MAX_PIPELINED,
    READ_SECONDS,
    BoundedProtocol,
)
from arco_catalog.cli.crowd import Crowd, RefusalReason


class Timer:
    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self.seconds = seconds
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """An event loop that only remembers what it should do later."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(seconds, call))
        return self.timers[-1]

    def create_task(self, coroutine: Coroutine[Any, Any, None], **_: Any) -> "Task":
        coroutine.close()
        return Task()


class Task:
    def add_done_callback(self, _: Callable[[Any], None]) -> None: ...


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__({})
        self.closed = False
        self.written = b""

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return self.closed


async def _app(scope: Any, receive: Any, send: Any) -> None: ...


def connected(crowd: Crowd | None = None) -> tuple[BoundedProtocol, Loop, Transport]:
    config = Config(_app, http="httptools", ws="none", lifespan="off", log_config=None)
    config.load()
    loop, transport = Loop(), Transport()
    protocol = BoundedProtocol(crowd or Crowd(10, lambda: 0.0), config, ServerState(), {}, cast(Any, loop))
    protocol.connection_made(transport)
    return protocol, loop, transport


def test_a_connection_that_states_nothing_is_closed() -> None:
    _, loop, transport = connected()
    [timer] = loop.timers
    assert timer.seconds == HEAD_SECONDS
    timer.call()
    assert transport.closed


def test_a_head_that_dribbles_gets_no_more_time() -> None:
    protocol, loop, _ = connected()
    protocol.data_received(b"GET / HTTP/1.1\r\n")
    protocol.data_received(b"X-A: b\r\n")
    [timer] = loop.timers
    assert not timer.cancelled


def test_a_complete_head_ends_its_deadline() -> None:
    protocol, loop, _ = connected()
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert [timer.cancelled for timer in loop.timers] == [True]


def test_a_head_that_is_too_large_is_answered_before_the_connection_is_closed() -> None:
    crowd = Crowd(10, lambda: 0.0)
    protocol, loop, transport = connected(crowd)
    protocol.data_received(b"GET / HTTP/1.1\r\nX-A: ")
    for _ in range(5):
        protocol.data_received(b"a" * (MAX_OVERHEAD_BYTES // 4))

    head, _, body = transport.written.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert f"content-length: {len(body)}".encode() in head
    error = json.loads(body)["error"]
    assert (error["code"], error["type"], str(MAX_OVERHEAD_BYTES) in error["message"]) == (
        431,
        "BadRequestException",
        True,
    )
    assert (crowd.kept_bytes, transport.closed) == (0, False)
    [timer] = [timer for timer in loop.timers if not timer.cancelled]
    assert timer.seconds == LINGER_SECONDS
    timer.call()
    assert transport.closed


def test_a_large_head_behind_a_request_under_way_takes_no_answer_away() -> None:
    protocol, _, transport = connected()
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    protocol.data_received(b"GET / HTTP/1.1\r\nX-A: " + b"a" * MAX_OVERHEAD_BYTES)

    assert (transport.written, transport.closed) == (b"", True)


def test_a_client_that_does_not_read_is_cut() -> None:
    protocol, loop, transport = connected()
    protocol.pause_writing()
    timer = loop.timers[-1]
    assert timer.seconds == READ_SECONDS
    timer.call()
    assert transport.closed


def test_a_client_that_reads_on_is_not_cut() -> None:
    protocol, loop, _ = connected()
    protocol.pause_writing()
    protocol.resume_writing()
    assert loop.timers[-1].cancelled


def test_heads_that_are_not_complete_and_those_that_wait_are_counted() -> None:
    crowd = Crowd(10, lambda: 0.0)
    protocol, _, transport = connected(crowd)
    crowd.expect()
    protocol.data_received(b"GET / HTTP/1.1\r\nX-A: b")
    assert crowd.kept_bytes == 22
    protocol.data_received(b"\r\n\r\n")
    assert crowd.kept_bytes == 0
    waiting = b"GET / HTTP/1.1\r\n\r\n" * 3
    protocol.data_received(waiting)
    assert crowd.kept_bytes == len(waiting)
    protocol.connection_lost(None)
    assert crowd.kept_bytes == 0
    assert not crowd.full
    assert transport.closed


HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
REFUSED: dict[str, Sequence[bytes]] = {
    "malformed": [b"what?\r\n\r\n"],
    "head-too-large": [b"GET / HTTP/1.1\r\nX-A: ", b"a" * (MAX_OVERHEAD_BYTES + 1)],
    "head-too-slow": [b"GET / HTTP/1.1\r\n"],
    "pipelined": [HEAD * (MAX_PIPELINED + 2)],
    "buffers-full": [b"GET / HTTP/1.1\r\nX-A: ", b"a" * 90_000],
}
"""What clients send for each reason to refuse a request."""


@pytest.mark.parametrize("reason", get_args(RefusalReason))
def test_a_request_that_the_app_never_gets_is_counted_with_its_reason(reason: RefusalReason) -> None:
    refused: list[str] = []
    crowd = Crowd(10, lambda: 0.0, 80_000 if reason == "buffers-full" else 4 << 20)
    crowd.when_one_is_refused = refused.append
    protocol, loop, transport = connected(crowd)
    for data in REFUSED[reason]:
        protocol.data_received(data)
    if reason == "head-too-slow":
        loop.timers[0].call()

    assert refused == [reason]
    assert transport.closed or reason == "head-too-large"  # which is closed after a while


def test_neither_an_idle_connection_that_is_closed_nor_a_request_of_the_app_is_counted() -> None:
    refused: list[str] = []
    crowd = Crowd(10, lambda: 0.0)
    crowd.when_one_is_refused = refused.append
    _, loop, _ = connected(crowd)
    loop.timers[0].call()
    protocol, _, _ = connected(crowd)
    protocol.data_received(HEAD)

    assert refused == []


OFFER = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAM\r\n"
"""What Java's client sends first on each connection."""


@pytest.mark.parametrize(
    "body",
    [b"Content-Length: 4\r\n\r\nbody", b"Transfer-Encoding: chunked\r\n\r\n1\r\nb\r\n3\r\nody\r\n0\r\n\r\n"],
    ids=["length", "chunks"],
)
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_a_request_that_offers_another_protocol_is_read_as_any(body: bytes, size: int) -> None:
    protocol, _, transport = connected()
    sent = OFFER + body
    for start in range(0, len(sent), size):
        protocol.data_received(sent[start : start + size])

    assert (bytes(protocol.cycle.body), protocol.cycle.more_body) == (b"body", False)
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + OFFER + body)
    assert [bytes(cycle.body) for cycle, _ in reversed(protocol.pipeline)] == [b"", b"body"]
    assert not transport.closed


def test_an_offer_without_a_body_is_a_whole_request() -> None:
    protocol, _, _ = connected()
    protocol.data_received(OFFER.replace(b"POST", b"GET") + b"\r\n")

    assert (protocol.cycle.scope["method"], protocol.cycle.more_body) == ("GET", False)


def test_what_follows_an_offer_and_is_no_body_is_refused() -> None:
    protocol, _, transport = connected()
    protocol.data_received(OFFER + b"Transfer-Encoding: chunked\r\n\r\nnot a chunk\r\n")

    assert transport.closed


def test_a_connection_that_is_gone_leaves_no_deadline() -> None:
    protocol, loop, _ = connected()
    protocol.connection_lost(None)
    assert [timer.cancelled for timer in loop.timers] == [True]
