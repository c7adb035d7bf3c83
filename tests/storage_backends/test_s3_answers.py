"""What S3's answers mean, on a server that gives them one by one; and how often a request goes over the wire."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

import pytest

from storage_backends import (
    ABSENT,
    ANY,
    Applied,
    Found,
    Matches,
    Missing,
    Refused,
    StoreDenied,
    StoreError,
    StoreUnavailable,
    Unchanged,
    Unknown,
    Version,
    s3_client,
)
from storage_backends.backoff import ATTEMPTS, full_jitter
from storage_backends.s3 import S3Store
from tests.servers import S3Server
from tests.storage_backends.scripted_s3 import (
    DATE_MS,
    Drop,
    Hang,
    Reply,
    ScriptedS3,
    Serve,
    Step,
    Truncate,
    scripted_s3,
)

STALE = Matches(Version('"0123"'))
AGAIN = [
    Reply(409, "ConditionalRequestConflict"),
    Reply(409, "OperationAborted"),
    Reply(503, "SlowDown"),
    Reply(429, "TooManyRequests"),
    Reply(429),
    Reply(400, "RequestTimeout"),
]
FAILURES = [Reply(500, "InternalError"), Reply(502), Reply(503, "ServiceUnavailable"), Reply(503), Reply(504)]


class Played:
    """A store on a scripted server, and the pauses that it made."""

    def __init__(self, s3: ScriptedS3) -> None:
        self.s3 = s3
        self.pauses: list[float] = []
        self.store = S3Store("bucket", "some/prefix", sleep=self._sleep, random=lambda: 1.0)

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    @property
    def wire(self) -> list[str]:
        return [request.method for request in self.s3.requests]


Play: TypeAlias = Callable[..., AbstractAsyncContextManager[Played]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    @asynccontextmanager
    async def run(*script: Step) -> AsyncIterator[Played]:
        async with scripted_s3(script) as s3:
            for name, value in S3Server(s3.endpoint).environment.items():
                monkeypatch.setenv(name, value)
            played = Played(s3)
            try:
                yield played
            finally:
                await played.store.close()

    return run


async def test_a_put_is_one_plain_request(play: Play) -> None:
    async with play() as played:
        outcome = await played.store.put("a key/é", b"body", ABSENT)

        [request] = played.s3.requests
        assert isinstance(outcome, Applied)
        assert request.rel_url.raw_path == "/bucket/some/prefix/a%20key/%C3%A9"
        assert request.headers["If-None-Match"] == "*"
        assert request.headers["Content-Length"] == "4"
        assert not [name for name in request.headers if "checksum" in name.lower() or "trailer" in name.lower()]
        assert played.s3.bodies == [b"body"]


async def test_a_custom_endpoint_has_the_bucket_in_its_path(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async with play() as played:
        monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
        monkeypatch.setenv("AWS_ENDPOINT_URL", played.s3.endpoint.replace("127.0.0.1", "localhost"))
        await played.store.put("key", b"", ANY)

        [request] = played.s3.requests
        assert request.headers["Host"].startswith("localhost:")
        assert request.rel_url.raw_path == "/bucket/some/prefix/key"


async def test_versions_go_over_the_wire_as_they_came(play: Play) -> None:
    async with play() as played:
        first = await played.store.put("key", b"one", ABSENT)
        assert isinstance(first, Applied)
        assert isinstance(await played.store.put("key", b"two", Matches(first.version)), Applied)
        assert isinstance(await played.store.get("key", first.version), Found)
        assert isinstance(await played.store.delete("key", STALE), Refused)

        sent = [
            (request.headers.get("If-Match"), request.headers.get("If-None-Match")) for request in played.s3.requests
        ]
        assert sent == [(None, "*"), (first.version, None), (None, first.version), (STALE.version, None)]


async def test_the_stores_clock_is_the_one_told(play: Play) -> None:
    async with play() as played:
        outcome = await played.store.put("key", b"one", ABSENT)
        assert isinstance(outcome, Applied)
        found = await played.store.get("key")
        unchanged = await played.store.get("key", outcome.version)
        missing = await played.store.get("other")

        assert isinstance(found, Found)
        assert (found.written_ms, found.now_ms) == (DATE_MS - 60_000, DATE_MS)
        assert unchanged == Unchanged(DATE_MS)
        assert missing == Missing(DATE_MS)
        assert outcome.now_ms == DATE_MS


async def test_calls_in_turn_share_a_connection(play: Play) -> None:
    async with play() as played:
        for number in range(3):
            await played.store.put("key", b"%d" % number, ANY)
            await played.store.get("key")

        assert len(played.s3.connections) == 1


@pytest.mark.parametrize("reply", AGAIN)
async def test_a_write_that_did_not_land_is_sent_again(play: Play, reply: Reply) -> None:
    async with play(reply, reply) as played:
        assert isinstance(await played.store.put("key", b"body", ABSENT), Applied)
        assert played.wire == ["PUT"] * 3
        assert played.pauses == [0.05, 0.1]


@pytest.mark.parametrize("reply", AGAIN)
async def test_a_deletion_that_did_not_land_is_sent_again(play: Play, reply: Reply) -> None:
    async with play(reply) as played:
        assert isinstance(await played.store.delete("key", STALE), Refused)
        assert played.wire == ["DELETE"] * 2


async def test_patience_ends_and_nothing_has_landed(play: Play) -> None:
    async with play(*[Reply(503, "SlowDown")] * 50) as played:
        with pytest.raises(StoreUnavailable, match="SlowDown"):
            await played.store.put("key", b"body", ABSENT)

        assert played.wire == ["PUT"] * ATTEMPTS
        assert played.pauses == list(full_jitter(lambda: 1.0))[1:]
        assert sum(played.pauses) < 15


@pytest.mark.parametrize("reply", FAILURES)
async def test_a_write_that_may_have_landed_is_unknown_and_not_sent_again(play: Play, reply: Reply) -> None:
    async with play(reply, reply) as played:
        assert isinstance(await played.store.put("key", b"body", ABSENT), Unknown)
        assert isinstance(await played.store.delete("key"), Unknown)
        assert played.wire == ["PUT", "DELETE"]
        assert played.pauses == []


@pytest.mark.parametrize("step", [*AGAIN, *FAILURES, Truncate(), Drop(applied=False)])
async def test_a_read_is_sent_again(play: Play, step: Step) -> None:
    async with play(Serve(), step, step) as played:
        await played.store.put("key", b"body", ABSENT)

        found = await played.store.get("key")

        assert isinstance(found, Found)
        assert found.body == b"body"


async def test_a_read_that_never_succeeds_raises(play: Play) -> None:
    async with play(*[Reply(500, "InternalError")] * 50) as played:
        with pytest.raises(StoreUnavailable, match="InternalError"):
            await played.store.list("")
        assert played.wire == ["GET"] * ATTEMPTS


@pytest.mark.parametrize(
    ("reply", "when"),
    [
        (Reply(412, "PreconditionFailed"), ABSENT),
        (Reply(412, "PreconditionFailed"), STALE),
        (Reply(304), ABSENT),  # some compatible stores answer a create-only PUT so
        (Reply(404, "NoSuchKey"), STALE),
    ],
)
async def test_a_condition_that_does_not_hold_is_a_refusal(play: Play, reply: Reply, when: Matches) -> None:
    async with play(reply) as played:
        outcome = await played.store.put("key", b"body", when)

        assert isinstance(outcome, Refused)
        assert outcome.version is None
        assert played.wire == ["PUT"]


async def test_only_what_must_match_can_be_not_found(play: Play) -> None:
    async with play(Reply(404, "NoSuchKey"), Reply(404, "NoSuchKey"), Reply(404, "NoSuchKey")) as played:
        with pytest.raises(StoreError, match="404"):
            await played.store.put("key", b"body", ABSENT)
        assert isinstance(await played.store.delete("key", STALE), Refused)
        assert isinstance(await played.store.delete("key"), Applied)


CALLS: list[Callable[[S3Store], Awaitable[object]]] = [
    lambda store: store.get("key"),
    lambda store: store.get_range("key", 0, 1),
    lambda store: store.put("key", b"", ANY),
    lambda store: store.delete("key"),
    lambda store: store.list(""),
]


@pytest.mark.parametrize("reply", [Reply(403, "AccessDenied"), Reply(403), Reply(400, "ExpiredToken"), Reply(401)])
async def test_a_denial_is_told_at_once(play: Play, reply: Reply) -> None:
    async with play(*[reply] * len(CALLS)) as played:
        for call in CALLS:
            with pytest.raises(StoreDenied):
                await call(played.store)
        assert len(played.wire) == len(CALLS)


async def test_a_bucket_that_is_not_there_is_named(play: Play) -> None:
    async with play(*[Reply(404, "NoSuchBucket")] * len(CALLS)) as played:
        for call in CALLS:
            with pytest.raises(StoreError, match="no bucket 'bucket'"):
                await call(played.store)


async def test_a_header_that_the_store_does_not_know_is_a_definite_failure(play: Play) -> None:
    async with play(Reply(501, "NotImplemented")) as played:
        with pytest.raises(StoreError, match="NotImplemented"):
            await played.store.put("key", b"", ABSENT)


async def test_a_missing_page_is_not_a_missing_object(play: Play) -> None:
    async with play(*[Reply(404)] * len(CALLS), Reply(404, "NoSuchKey")) as played:
        for call in CALLS:
            with pytest.raises(StoreError, match="404"):
                await call(played.store)
        with pytest.raises(StoreError, match="404"):
            await played.store.list("")


async def test_an_answer_that_tells_no_version_is_no_answer(play: Play) -> None:
    async with play(Reply(200), Reply(200, text="body")) as played:
        assert isinstance(await played.store.put("key", b"", ABSENT), Unknown)
        with pytest.raises(StoreError, match="no version"):
            await played.store.get("key")


async def test_a_listing_that_cannot_be_read_is_no_empty_listing(play: Play) -> None:
    async with play(*[Reply(200, text="<not xml")] * ATTEMPTS) as played:
        with pytest.raises(StoreUnavailable):
            await played.store.list("")


async def test_aiohttp_sends_a_write_once_more_by_itself(play: Play) -> None:
    async with play(Drop(applied=False), Drop(applied=False)) as played:
        assert isinstance(await played.store.put("key", b"body", ABSENT), Unknown)
        assert played.wire == ["PUT", "PUT"]
        assert played.pauses == []


async def test_a_refusal_may_be_the_echo_of_a_write_that_landed(play: Play) -> None:
    async with play(Drop(applied=True)) as played:
        outcome = await played.store.put("key", b"ours", ABSENT)

        assert isinstance(outcome, Refused)
        assert played.wire == ["PUT", "PUT"]
        found = await played.store.get("key")
        assert isinstance(found, Found)
        assert found.body == b"ours"


@pytest.mark.parametrize("second", [Reply(503, "SlowDown"), Reply(403, "AccessDenied"), Reply(400, "InvalidRequest")])
async def test_a_failed_resending_does_not_deny_the_first_sending(play: Play, second: Reply) -> None:
    async with play(Drop(applied=True), *[second] * 50) as played:
        assert isinstance(await played.store.put("key", b"ours", ABSENT), Unknown)
        assert played.s3.objects == {"/bucket/some/prefix/key": b"ours"}


async def test_a_resending_that_cannot_connect_does_not_deny_the_first_sending(play: Play) -> None:
    async with play(Drop(applied=True, last=True)) as played:
        assert isinstance(await played.store.put("key", b"ours", ABSENT), Unknown)
        assert played.s3.objects == {"/bucket/some/prefix/key": b"ours"}


async def test_a_write_that_never_left_has_not_landed(play: Play) -> None:
    async with play(Drop(applied=False, last=True)) as played:
        await played.store.put("key", b"body", ABSENT)  # nobody listens from now on
        sent = len(played.wire)

        with pytest.raises(StoreUnavailable):
            await played.store.put("key", b"body", ABSENT)
        with pytest.raises(StoreUnavailable):
            await played.store.get("key")

        assert len(played.wire) == sent
        assert len(played.pauses) == 2 * (ATTEMPTS - 1)


async def test_silence_leaves_a_write_unknown_and_a_read_tried_again(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "READ_TIMEOUT_S", 0.1)
    async with play(Hang(), Serve(), Hang()) as played:
        assert isinstance(await played.store.put("key", b"body", ABSENT), Unknown)
        assert played.wire == ["PUT"]
        await played.store.put("key", b"body", ABSENT)
        assert isinstance(await played.store.get("key"), Found)
        assert played.wire == ["PUT", "PUT", "GET", "GET"]


async def test_without_credentials_nothing_is_sent(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async with play() as played:
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        with pytest.raises(StoreDenied):
            await played.store.put("key", b"", ANY)
        assert played.wire == []


async def test_a_client_that_cannot_be_made_is_told_and_made_later(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async with play() as played:
        endpoint = played.s3.endpoint
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "no url")
        with pytest.raises(StoreError, match="no S3 client"):
            await played.store.get("key")
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        assert isinstance(await played.store.get("key"), Missing)


async def test_objects_that_are_no_keys_are_not_listed(play: Play) -> None:
    names = ["some/prefix/", "some/prefix/a//b", "some/prefix/key", "some/prefix/folder/"]
    contents = "".join(
        f"<Contents><Key>{name}</Key><ETag>&quot;1&quot;</ETag><Size>1</Size>"
        "<LastModified>2026-11-21T12:00:00.000Z</LastModified></Contents>"
        for name in names
    )
    async with play(Reply(200, text=f"<ListBucketResult>{contents}</ListBucketResult>")) as played:
        page = await played.store.list("")

        assert [(entry.key, entry.version, entry.written_ms) for entry in page.entries] == [("key", '"1"', DATE_MS)]
        assert page.after is None
