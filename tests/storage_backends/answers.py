"""What a store makes of a server's misbehaviour, whatever the vendor and whatever carries the requests: a contract that
each store's tests subclass, with the vendor's own answers. Every test ends within a time of the test's own."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

import pytest

from storage_backends import (
    ABSENT,
    ANY,
    Applied,
    Found,
    Missing,
    ObjectStore,
    PreconditionFailed,
    StoreDenied,
    StoreError,
    StoreUnavailable,
    Unchanged,
    Unknown,
    When,
)
from storage_backends.backoff import ATTEMPTS, full_jitter
from storage_backends.wire.http1 import MAX_HEAD_BYTES
from storage_backends.wrappers.request import RequestStore
from tests.storage_backends.s3.scripted_s3 import (
    Deaf,
    Drop,
    Early,
    Hang,
    Raw,
    Reply,
    ScriptedS3,
    Serve,
    Step,
    Trickle,
    Truncate,
    raw,
)

LONG = bytes(8_000_000)
"""More than the buffers between two sockets hold."""
REASON = re.compile(r'"reason": "(\w+)"')
TRICKLES = [
    Trickle(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    Trickle(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
]
CALLS: list[Callable[[ObjectStore], Awaitable[object]]] = [
    lambda store: store.get("key"),
    lambda store: store.get_range("key", 0, 1),
    lambda store: store.put("key", b"", ANY),
    lambda store: store.delete("key"),
    lambda store: store.list(""),
]


Sleep: TypeAlias = Callable[[float], Awaitable[None]]


class OpenStore(Protocol):
    """Opens a store on a scripted server; settings replace those of its configuration."""

    def __call__(self, sleep: Sleep, **settings: Any) -> ObjectStore: ...


@dataclass
class PlayedScript:
    """A store on a scripted server, and the pauses that it made."""

    server: ScriptedS3
    open: OpenStore
    pauses: list[float] = field(default_factory=list)
    _stores: list[ObjectStore] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = self.another()

    def another(self, **settings: Any) -> ObjectStore:
        """A store with connections, and settings, of its own."""
        self._stores.append(self.open(self._sleep, **settings))
        return self._stores[-1]

    async def close(self) -> None:
        """Closes all stores."""
        for store in self._stores:
            await store.close()

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    @property
    def wire(self) -> list[str]:
        """The methods of what came over the wire."""
        return [request.method for request in self.server.requests]


Play: TypeAlias = Callable[..., AbstractAsyncContextManager[PlayedScript]]


@asynccontextmanager
async def playing(server: ScriptedS3, open_store: OpenStore) -> AsyncIterator[PlayedScript]:
    """A store on a server that runs."""
    played = PlayedScript(server, open_store)
    try:
        async with asyncio.timeout(90):
            yield played
    finally:
        await played.close()


class AnswersContract:
    """A subclass has fixtures of one parameter an answer: `again` (not applied, and sent again), `failure` (may have
    been applied), `denial`, `nowhere` (there is no such bucket), `refused` (a condition that does not hold, and the
    condition); and `play`, of one parameter a transport."""

    write = "PUT"
    """The method of a write."""
    busy: Reply
    """One of `again`, which `throttled` is part of the text of."""
    throttled: str
    unversioned: Reply
    """The answer to a write that does not say which version it made."""
    endpoint: str = "endpoint_url"
    """The setting that has the address of the server."""

    @pytest.fixture
    def leap(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
        """Moves the event loop's clock on: who waits for so long has waited, however fast this machine is."""

        def forward(seconds: float) -> None:
            loop = asyncio.get_running_loop()
            time = loop.time
            monkeypatch.setattr(loop, "time", lambda: time() + seconds)

        return forward

    @pytest.fixture
    def half_dead_host(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], str]]:
        """The name of a host with two addresses: the first does not answer, the second is this machine."""
        sockets: list[socket.socket] = []
        resolve = socket.getaddrinfo

        def resolving(host: Any, port: Any, *args: Any, **options: Any) -> Any:
            if host in ("half-dead.test", b"half-dead.test"):
                addresses = [(each, int(port)) for each in ("127.0.0.2", "127.0.0.1")]
                return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]
            return resolve(host, port, *args, **options)

        def host_at(port: int) -> str:
            listener = socket.socket()
            sockets.append(listener)
            listener.bind(("127.0.0.2", port))
            listener.listen(0)
            for _ in range(4):  # they fill the queue of connections to accept, and none is accepted
                waiting = socket.socket()
                sockets.append(waiting)
                waiting.setblocking(False)
                waiting.connect_ex(("127.0.0.2", port))
            return "half-dead.test"

        monkeypatch.setattr(socket, "getaddrinfo", resolving)
        yield host_at
        for each in sockets:
            each.close()

    async def test_a_write_that_did_not_land_is_sent_again(self, play: Play, again: Reply) -> None:
        async with play(again, again) as played:
            assert isinstance(await played.store.put("key", b"body", ABSENT), Applied)
            assert played.wire == [self.write] * 3
            assert played.pauses == [0.05, 0.1]

    async def test_a_deletion_that_did_not_land_is_sent_again(self, play: Play, again: Reply) -> None:
        async with play(again) as played:
            assert isinstance(await played.store.delete("key"), Applied)
            assert played.wire == ["DELETE"] * 2

    async def test_of_a_deletion_of_many_that_may_have_been_made_each_key_is_unknown(
        self, play: Play, failure: Reply
    ) -> None:
        async with play(failure, Drop(applied=False)) as played:
            for _ in range(2):
                deleted = await played.store.delete_many(["a", "b"])
                assert [*deleted.left] == ["a", "b"]
                assert all(isinstance(reason, Unknown) for reason in deleted.left.values())
            assert played.wire == ["POST"] * 2

    async def test_a_denied_deletion_of_many_is_reported_for_each_key(self, play: Play, denial: Reply) -> None:
        async with play(denial, denial) as played:
            deleted = await played.store.delete_many(["a", "b"])
            assert [*deleted.left] == ["a", "b"]
            assert all(isinstance(reason, StoreDenied) for reason in deleted.left.values())
            assert {*played.wire} == {"POST"}

    async def test_patience_ends_and_nothing_has_landed(self, play: Play) -> None:
        async with play(*[self.busy] * 50) as played:
            with pytest.raises(StoreUnavailable, match=self.throttled):
                await played.store.put("key", b"body", ABSENT)

            assert played.wire == [self.write] * ATTEMPTS
            assert played.pauses == list(full_jitter(lambda: 1.0))[1:]

    @pytest.mark.parametrize("retry_after", ["7", "Sat, 21 Nov 2026 12:00:07 GMT"])
    async def test_a_retry_waits_for_retry_after(self, play: Play, retry_after: str) -> None:
        later = with_headers(self.busy, {"Retry-After": retry_after, "Date": "Sat, 21 Nov 2026 12:00:00 GMT"})
        async with play(later, later) as played:
            assert isinstance(await played.store.put("key", b"body", ABSENT), Applied)
            assert played.pauses == [7, 7]

    async def test_a_request_is_not_retried_if_retry_after_exceeds_the_timeout(self, play: Play) -> None:
        async with play(with_headers(self.busy, {"Retry-After": "60"})) as played:
            with pytest.raises(StoreUnavailable, match=self.throttled):
                await played.store.put("key", b"body", ABSENT)
            assert (played.wire, played.pauses) == ([self.write], [])

    async def test_a_write_that_may_have_landed_is_unknown_and_not_sent_again(self, play: Play, failure: Reply) -> None:
        async with play(failure, failure) as played:
            assert isinstance(await played.store.put("key", b"body", ABSENT), Unknown)
            assert isinstance(await played.store.delete("key"), Unknown)
            assert played.wire == [self.write, "DELETE"]
            assert played.pauses == []

    async def test_a_read_is_sent_again_after_a_failure(self, play: Play, failure: Reply) -> None:
        await self._read_is_sent_again(play, failure)

    async def test_a_read_is_sent_again_after_what_did_not_land(self, play: Play, again: Reply) -> None:
        await self._read_is_sent_again(play, again)

    @pytest.mark.parametrize(
        "step",
        [
            Truncate(),
            Drop(applied=False),
            Raw(b"HTTP/1.1 20"),
            Raw(b'HTTP/1.1 200 OK\r\nETag: "1"\r\nx-goog-generation: 1\r\nLast-Mod'),
            Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"),
            Raw(b"this is no HTTP\r\n\r\n"),
        ],
    )
    async def test_a_read_is_sent_again_after_half_an_answer(self, play: Play, step: Step) -> None:
        await self._read_is_sent_again(play, step)

    async def test_an_object_that_ends_with_its_connection_may_be_cut_off_and_is_read_again(self, play: Play) -> None:
        report = b'ETag: "1"\r\nx-goog-generation: 1\r\nLast-Modified: Sat, 21 Nov 2026 12:00:00 GMT\r\n'
        await self._read_is_sent_again(play, Raw(b"HTTP/1.1 200 OK\r\n" + report + b"\r\nhalf of it"))

    async def _read_is_sent_again(self, play: Play, step: Step) -> None:
        async with play(Serve(), step, step) as played:
            await played.store.put("key", b"body", ABSENT)

            found = await played.store.get("key")

            assert isinstance(found, Found)
            assert found.body == b"body"
            assert played.wire == [self.write, "GET", "GET", "GET"]

    async def test_a_failure_that_ends_with_its_connection_is_an_answer(self, play: Play) -> None:
        async with play(Raw(raw(self.busy, framed=False))) as played:
            assert isinstance(await played.store.put("key", b"body", ABSENT), Applied)
            assert played.wire == [self.write] * 2

    async def test_a_read_that_never_succeeds_raises(self, play: Play) -> None:
        async with play(*[Reply(500)] * 50) as played:
            with pytest.raises(StoreUnavailable, match="500"):
                await played.store.list("")
            assert played.wire == ["GET"] * ATTEMPTS

    async def test_a_condition_that_does_not_hold_is_a_refusal(self, play: Play, refused: tuple[Reply, When]) -> None:
        reply, when = refused
        async with play(reply) as played:
            outcome = await played.store.put("key", b"body", when)

            assert isinstance(outcome, PreconditionFailed)
            assert outcome.version is None
            assert played.wire == [self.write]

    async def test_unchanged_and_missing_are_distinguished(self, play: Play) -> None:
        async with play() as played:
            outcome = await played.store.put("key", b"one", ABSENT)
            assert isinstance(outcome, Applied)
            assert isinstance(await played.store.get("key", outcome.version), Unchanged)
            assert isinstance(await played.store.get("other", outcome.version), Missing)

    async def test_calls_in_turn_share_a_connection(self, play: Play) -> None:
        async with play() as played:
            for number in range(3):
                await played.store.put("key", b"%d" % number, ANY)
                await played.store.get("key")

            assert len(played.server.connections) == 1

    async def test_a_denial_is_reported_at_once(self, play: Play, denial: Reply) -> None:
        await self._fails_at_once(play, denial, StoreDenied, "")

    async def test_a_bucket_that_is_not_there_is_named(self, play: Play, nowhere: Reply) -> None:
        await self._fails_at_once(play, nowhere, StoreError, "(bucket|container) '(bucket|container)' does not exist")

    async def test_a_missing_page_is_not_a_missing_object(self, play: Play) -> None:
        await self._fails_at_once(play, Reply(404, text="<html>"), StoreError, "404")

    @pytest.mark.parametrize("status", [301, 302, 307, 308])
    async def test_a_redirect_is_reported_and_not_followed(self, play: Play, status: int) -> None:
        elsewhere = Reply(status, headers={"Location": "http://127.0.0.1:9/elsewhere"})
        await self._fails_at_once(play, elsewhere, StoreError, str(status))

    async def _fails_at_once(self, play: Play, reply: Reply, error: type[StoreError], report: str) -> None:
        async with play(*[reply] * len(CALLS)) as played:
            for call in CALLS:
                with pytest.raises(error, match=report or None) as raised:
                    await call(played.store)
                assert not isinstance(raised.value, StoreUnavailable)
                assert error is StoreDenied or not isinstance(raised.value, StoreDenied)
            assert len(played.wire) == len(CALLS)

    async def test_an_answer_without_a_version_is_ambiguous(self, play: Play) -> None:
        async with play(self.unversioned, Reply(200, text="body")) as played:
            assert isinstance(await played.store.put("key", b"", ABSENT), Unknown)
            with pytest.raises(StoreError, match="no version"):
                await played.store.get("key")

    async def test_a_success_with_a_status_of_another_call_is_unknown(self, play: Play) -> None:
        for status in (202, 204, 206):
            async with play(Reply(status, headers={"etag": '"1"'})) as played:
                assert isinstance(await played.store.put("key", b"body", ABSENT), Unknown)
        for status in (201, 206):
            async with play(Reply(status)) as played:
                assert isinstance(await played.store.delete("key"), Unknown)

    @pytest.mark.parametrize("step", [Drop(applied=False), Drop(applied=True), Truncate(), Raw(b"HTTP/1.1 20")])
    async def test_a_write_whose_answer_is_lost_is_unknown_and_was_sent_once(self, play: Play, step: Step) -> None:
        async with play(step, step) as played:
            assert isinstance(await played.store.put("key", b"body", ABSENT), Unknown)
            assert played.wire == [self.write]
            assert isinstance(await played.store.delete("key"), Unknown)
            assert played.wire == [self.write, "DELETE"]
            assert played.pauses == []

    async def test_a_write_on_a_connection_that_worked_before_is_sent_once_too(self, play: Play) -> None:
        async with play(Serve(), Drop(applied=True)) as played:
            await played.store.put("key", b"one", ANY)
            assert isinstance(await played.store.put("key", b"two", ANY), Unknown)

            assert played.wire == [self.write] * 2
            assert len(played.server.connections) == 1
            assert [*played.server.landed.values()] == [b"two"]

    async def test_a_refusal_may_be_the_echo_of_a_write_that_landed(self, play: Play) -> None:
        async with play(Drop(applied=True)) as played:
            assert isinstance(await played.store.put("key", b"ours", ABSENT), Unknown)
            assert isinstance(await played.store.put("key", b"ours", ABSENT), PreconditionFailed)
            assert played.wire == [self.write] * 2

    async def test_a_write_that_never_left_has_not_landed(self, play: Play) -> None:
        async with play(Drop(applied=False, last=True)) as played:
            await played.store.put("key", b"body", ABSENT)  # there is no listener from now on
            sent = len(played.wire)

            with pytest.raises(StoreUnavailable):
                await played.store.put("key", b"body", ABSENT)
            with pytest.raises(StoreUnavailable):
                await played.store.get("key")

            assert len(played.wire) == sent
            assert len(played.pauses) == 2 * (ATTEMPTS - 1)

    async def test_a_write_that_is_cut_off_is_unknown_and_its_connection_is_not_used_again(
        self, play: Play, leap: Callable[[float], None]
    ) -> None:
        async with play(Hang()) as played:
            hurried = RequestStore(played.store, lambda: 5_000)
            write = asyncio.create_task(hurried.put("key", b"body", ABSENT))
            await played.server.hanging.acquire()
            leap(5)

            assert await write == Unknown("the request's deadline has passed")
            assert isinstance(await played.store.get("key"), Missing)
            assert played.wire == [self.write, "GET"]
            assert len(played.server.connections) == 2

    @pytest.mark.parametrize(("step", "body"), [(Hang(), b"body"), (Deaf(), LONG)], ids=["hang", "deaf"])
    async def test_silence_leaves_a_write_unknown(self, play: Play, step: Step, body: bytes) -> None:
        async with play(step) as played:
            hurried = played.another(idle_timeout_s=0.5, connect_timeout_s=0.5, exchange_timeout_s=2.0)
            assert isinstance(await hurried.put("key", body, ABSENT), Unknown)
            assert isinstance(await played.store.get("key"), Missing)

    async def test_silence_lets_a_read_be_tried_again(self, play: Play) -> None:
        async with play(Hang()) as played:
            assert isinstance(await played.another(idle_timeout_s=0.5).get("key"), Missing)
            assert played.wire[:2] == ["GET", "GET"]

    @pytest.mark.parametrize("step", TRICKLES)
    async def test_an_answer_that_trickles_has_an_end(self, play: Play, step: Step) -> None:
        async with play(step, step) as played:
            hurried = played.another(exchange_timeout_s=1.0)
            assert isinstance(await hurried.put("key", b"body", ABSENT), Unknown)
            assert isinstance(await hurried.get("key"), Missing)
            assert played.wire[:3] == [self.write, "GET", "GET"]

    async def test_a_write_that_is_answered_before_it_was_sent_whole_keeps_no_other_waiting(
        self, play: Play, denial: Reply
    ) -> None:
        async with play(Early(denial)) as played:
            store = played.another(idle_timeout_s=2.0, connect_timeout_s=2.0)
            try:
                outcome: object = await store.put("key", LONG, ABSENT)
            except StoreDenied as error:
                outcome = error

            # What reads the answer only after it has sent the request does not see it.
            assert isinstance(outcome, StoreDenied | Unknown)
            assert isinstance(await store.get("key"), Missing)
            assert len(played.server.connections) == 1  # of the request that was read whole

    @pytest.mark.parametrize("framed", [True, False])
    async def test_an_answer_that_is_too_large_is_not_retried(self, play: Play, framed: bool) -> None:
        huge = Reply(200, text="x" * 2_000, headers={"ETag": '"1"', "x-goog-generation": "1"})
        step: Step = huge if framed else Raw(raw(huge, framed=False))
        async with play(step, step) as played:
            store = played.another(max_answer_bytes=1_000)
            with pytest.raises(StoreError, match="1,000 bytes") as raised:
                await store.get("key")
            assert not isinstance(raised.value, StoreUnavailable)
            assert isinstance(await store.put("key", b"", ANY), Unknown)
            assert played.wire == ["GET", self.write]

    async def test_headers_that_are_too_long_are_no_answer(self, play: Play) -> None:
        long = Raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * (2 * MAX_HEAD_BYTES) + b"\r\nContent-Length: 0\r\n\r\n")
        async with play(*[long] * (ATTEMPTS + 1)) as played:
            assert isinstance(await played.store.put("key", b"", ANY), Unknown)
            assert played.wire == [self.write]
            with pytest.raises(StoreError):
                await played.store.get("key")

    async def test_an_address_without_an_answer_does_not_block_the_next(
        self, play: Play, half_dead_host: Callable[[int], str]
    ) -> None:
        async with play() as played:
            port = int(played.server.endpoint.rpartition(":")[2])
            address = f"http://{half_dead_host(port)}:{port}"
            store = played.another(connect_timeout_s=2.0, **{self.endpoint: address})
            assert isinstance(await store.put("key", b"body", ABSENT), Applied)
            assert played.wire == [self.write]


def with_headers(reply: Reply, headers: dict[str, str]) -> Reply:
    """The answer with more headers."""
    return replace(reply, headers={**reply.headers, **headers})


def varied(answers: Sequence[object]) -> Any:
    """A fixture of one parameter an answer."""

    @pytest.fixture(params=answers, ids=[_name(answer) for answer in answers])
    def answer(self: object, request: pytest.FixtureRequest) -> Any:
        return request.param

    return answer


def _name(answer: object) -> str:
    match answer:
        case Reply(status, code, text):
            return f"{status} {code or ''.join(REASON.findall(text))}".strip()
        case (reply, when):
            return f"{_name(reply)} {type(when).__name__}"
    return repr(answer)
