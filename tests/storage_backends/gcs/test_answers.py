"""What GCS's answers mean, on a server that gives them one by one, and how often a request goes over the wire: by both
transports."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TypeAlias

import pytest

from storage_backends import (
    ABSENT,
    ANY,
    Applied,
    Found,
    Matches,
    Missing,
    PreconditionFailed,
    StoreDenied,
    StoreError,
    StoreUnavailable,
    Unchanged,
    Unknown,
    Version,
)
from storage_backends.backoff import ATTEMPTS, full_jitter
from storage_backends.gcs.config import AccessToken, Anonymous, GcsClient, GcsConfig
from storage_backends.gcs.store import GcsStore
from storage_backends.wrappers.request import RequestStore
from tests.storage_backends.gcs.scripted_gcs import Played, playing, refusal
from tests.storage_backends.s3.scripted_s3 import Drop, Hang, Reply, Serve, Step, Truncate

STALE = Matches(Version("123"))
AGAIN = [
    refusal(429, "rateLimitExceeded"),
    refusal(429),
    refusal(408),
    refusal(403, "userRateLimitExceeded"),
    refusal(403, "rateLimitExceeded"),
]
FAILURES = [refusal(500, "backendError"), refusal(502), refusal(503, "backendError"), refusal(503), refusal(504)]
NO_BUCKET = refusal(404, "notFound", "The specified bucket does not exist.")
Play: TypeAlias = Callable[..., AbstractAsyncContextManager[Played]]


@pytest.fixture(params=list(GcsClient))
def play(request: pytest.FixtureRequest) -> Play:
    client: GcsClient = request.param

    def run(*script: Step, **variables: str) -> AbstractAsyncContextManager[Played]:
        return playing(script, client, **variables)

    return run


async def test_a_put_is_one_plain_upload(play: Play) -> None:
    async with play() as played:
        outcome = await played.store.put("a key/é", b"body", ABSENT)

        [request] = played.gcs.requests
        assert isinstance(outcome, Applied)
        assert request.rel_url.raw_path == "/upload/storage/v1/b/bucket/o"
        assert dict(request.query) == {
            "uploadType": "media",
            "name": "some/prefix/a key/é",
            "ifGenerationMatch": "0",
            "fields": "generation",
        }
        assert request.headers["Content-Length"] == "4"
        assert request.headers["Content-Type"] == "application/octet-stream"
        assert "Authorization" not in request.headers
        assert played.gcs.bodies == [b"body"]


async def test_an_empty_upload_says_that_it_is_empty(play: Play) -> None:
    async with play() as played:
        await played.store.put("key", b"", ANY)

        [request] = played.gcs.requests
        assert request.headers["Content-Length"] == "0"


async def test_versions_go_over_the_wire_as_generations(play: Play) -> None:
    async with play() as played:
        first = await played.store.put("key", b"one", ABSENT)
        assert isinstance(first, Applied)
        assert isinstance(await played.store.put("key", b"two", Matches(first.version)), Applied)
        assert isinstance(await played.store.get("key", first.version), Found)
        assert isinstance(await played.store.delete("key", STALE), PreconditionFailed)

        names = ("ifGenerationMatch", "ifGenerationNotMatch")
        sent = [tuple(request.query.get(name) for name in names) for request in played.gcs.requests]
        assert sent == [("0", None), (first.version, None), (None, first.version), ("123", None)]
        assert {request.rel_url.raw_path for request in played.gcs.requests[2:]} == {
            "/storage/v1/b/bucket/o/some%2Fprefix%2Fkey"
        }


@pytest.mark.parametrize("version", ["0", "00", "-1", '"etag"', "1\r\nx: y", "٣", str(2**63)])
async def test_what_is_no_generation_matches_nothing(play: Play, version: str) -> None:
    async with play() as played:
        assert isinstance(await played.store.put("key", b"", Matches(Version(version))), PreconditionFailed)
        assert isinstance(await played.store.delete("key", Matches(Version(version))), PreconditionFailed)
        assert isinstance(await played.store.get("key", Version(version)), Missing)
        assert played.gcs.landed == {}


async def test_who_is_billed_is_told_with_each_request(play: Play) -> None:
    async with play(GOOGLE_CLOUD_QUOTA_PROJECT="payer") as played:
        for call in CALLS:
            await call(played.store)

        assert [request.query["userProject"] for request in played.gcs.requests] == ["payer"] * len(CALLS)


async def test_unchanged_and_missing_are_told_apart(play: Play) -> None:
    async with play() as played:
        outcome = await played.store.put("key", b"one", ABSENT)
        assert isinstance(outcome, Applied)
        assert isinstance(await played.store.get("key", outcome.version), Unchanged)
        assert isinstance(await played.store.get("other", outcome.version), Missing)


@pytest.mark.parametrize("reply", AGAIN)
async def test_a_write_that_did_not_land_is_sent_again(play: Play, reply: Reply) -> None:
    async with play(reply, reply) as played:
        assert isinstance(await played.store.put("key", b"body", ABSENT), Applied)
        assert played.wire == ["POST"] * 3
        assert played.pauses == [0.05, 0.1]


@pytest.mark.parametrize("reply", AGAIN)
async def test_a_deletion_that_did_not_land_is_sent_again(play: Play, reply: Reply) -> None:
    async with play(reply) as played:
        assert isinstance(await played.store.delete("key", STALE), PreconditionFailed)
        assert played.wire == ["DELETE"] * 2


async def test_patience_ends_and_nothing_has_landed(play: Play) -> None:
    async with play(*[refusal(429, "rateLimitExceeded")] * 50) as played:
        with pytest.raises(StoreUnavailable, match="rateLimitExceeded"):
            await played.store.put("key", b"body", ABSENT)

        assert played.wire == ["POST"] * ATTEMPTS
        assert played.pauses == list(full_jitter(lambda: 1.0))[1:]


@pytest.mark.parametrize("reply", FAILURES)
async def test_a_write_that_may_have_landed_is_unknown_and_not_sent_again(play: Play, reply: Reply) -> None:
    async with play(reply, reply) as played:
        assert isinstance(await played.store.put("key", b"body", ABSENT), Unknown)
        assert isinstance(await played.store.delete("key"), Unknown)
        assert played.wire == ["POST", "DELETE"]
        assert played.pauses == []


@pytest.mark.parametrize("step", [*AGAIN, *FAILURES, Truncate(), Drop(applied=False)])
async def test_a_read_is_sent_again(play: Play, step: Step) -> None:
    async with play(Serve(), step, step) as played:
        await played.store.put("key", b"body", ABSENT)

        found = await played.store.get("key")

        assert isinstance(found, Found)
        assert found.body == b"body"
        assert played.wire == ["POST", "GET", "GET", "GET"]


async def test_a_read_that_never_succeeds_raises(play: Play) -> None:
    async with play(*[refusal(503, "backendError")] * 50) as played:
        with pytest.raises(StoreUnavailable, match="backendError"):
            await played.store.list("")
        assert played.wire == ["GET"] * ATTEMPTS


@pytest.mark.parametrize("when", [ABSENT, STALE])
async def test_a_condition_that_does_not_hold_is_a_refusal(play: Play, when: Matches) -> None:
    async with play(refusal(412, "conditionNotMet")) as played:
        assert isinstance(await played.store.put("key", b"body", when), PreconditionFailed)
        assert played.wire == ["POST"]


CALLS: list[Callable[[GcsStore], Awaitable[object]]] = [
    lambda store: store.get("key"),
    lambda store: store.get_range("key", 0, 1),
    lambda store: store.put("key", b"", ANY),
    lambda store: store.delete("key"),
    lambda store: store.list(""),
]


@pytest.mark.parametrize("reply", [refusal(403, "forbidden"), refusal(403), refusal(401, "authError")])
async def test_a_denial_is_told_at_once(play: Play, reply: Reply) -> None:
    async with play(*[reply] * len(CALLS)) as played:
        for call in CALLS:
            with pytest.raises(StoreDenied):
                await call(played.store)
        assert len(played.wire) == len(CALLS)


@pytest.mark.parametrize("reply", [NO_BUCKET, Reply(404, text="The specified bucket does not exist.")])
async def test_a_bucket_that_is_not_there_is_named(play: Play, reply: Reply) -> None:
    async with play(*[reply] * len(CALLS)) as played:
        for call in CALLS:
            with pytest.raises(StoreError, match="bucket 'bucket' does not exist"):
                await call(played.store)


async def test_a_missing_page_is_not_a_missing_object(play: Play) -> None:
    async with play(*[refusal(404)] * len(CALLS)) as played:
        for call in CALLS:
            with pytest.raises(StoreError, match="404"):
                await call(played.store)


async def test_not_found_is_a_missing_object_to_an_emulator_only(play: Play) -> None:
    async with play(Reply(404, text="Not Found")) as played:
        assert isinstance(await played.store.get("key"), Missing)
    async with play(Reply(404, text="Not Found")) as played:
        store = GcsStore("bucket", config=with_token(played.gcs.endpoint))
        with pytest.raises(StoreError, match="404"):
            await store.get("key")
        await store.close()


def with_token(endpoint: str) -> GcsConfig:
    return GcsConfig(AccessToken("token"), endpoint)


async def test_a_token_goes_with_each_request(play: Play) -> None:
    async with play() as played:
        played.gcs.fake.token = "token"
        with pytest.raises(StoreDenied, match="Invalid Credentials"):
            await played.store.get("key")
        for client in GcsClient:
            store = GcsStore("bucket", config=replace(with_token(played.gcs.endpoint), client=client))
            assert isinstance(await store.get("key"), Missing)
            await store.close()


async def test_an_upload_that_finds_no_api_is_no_refusal(play: Play) -> None:
    async with play(*[refusal(404, "notFound", "Not Found")] * 2) as played:
        with pytest.raises(StoreError, match="404"):
            await played.store.put("key", b"", STALE)
        assert isinstance(await played.store.delete("key", STALE), PreconditionFailed)


async def test_an_answer_that_tells_no_generation_is_no_answer(play: Play) -> None:
    for text in ("", "{}", "[]", '{"generation": 1}'):
        async with play(Reply(200, text=text), Reply(200, text="body")) as played:
            assert isinstance(await played.store.put("key", b"", ABSENT), Unknown)
            with pytest.raises(StoreError, match="no version"):
                await played.store.get("key")


@pytest.mark.parametrize("step", [Drop(applied=False), Drop(applied=True), Truncate()])
async def test_a_write_whose_answer_is_lost_is_unknown_and_was_sent_once(play: Play, step: Step) -> None:
    async with play(step, step) as played:
        assert isinstance(await played.store.put("key", b"body", ABSENT), Unknown)
        assert played.wire == ["POST"]
        assert isinstance(await played.store.delete("key"), Unknown)
        assert played.wire == ["POST", "DELETE"]
        assert played.pauses == []


async def test_a_write_on_a_connection_that_worked_before_is_sent_once_too(play: Play) -> None:
    async with play(Serve(), Drop(applied=True)) as played:
        first = await played.store.put("key", b"one", ABSENT)
        assert isinstance(first, Applied)
        assert isinstance(await played.store.put("key", b"two", Matches(first.version)), Unknown)

        assert played.wire == ["POST", "POST"]
        assert len(played.gcs.connections) == 1
        assert played.gcs.landed == {"some/prefix/key": b"two"}


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


async def test_a_write_that_is_cut_off_is_unknown_and_its_connection_is_not_used_again(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with play(Hang()) as played:
        hurried = RequestStore(played.store, 5_000, lambda: 0)
        write = asyncio.create_task(hurried.put("key", b"body", ABSENT))
        await played.gcs.hanging.acquire()
        loop = asyncio.get_running_loop()
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + 5)

        assert await write == Unknown("the request's deadline has passed")
        assert isinstance(await played.store.get("key"), Missing)
        assert played.wire == ["POST", "GET"]
        assert len(played.gcs.connections) == 2


@pytest.mark.parametrize("client", list(GcsClient))
async def test_silence_leaves_a_write_unknown_and_a_read_tried_again(client: GcsClient) -> None:
    async with playing([Hang(), Serve(), Hang()], client) as played:
        config = GcsConfig(Anonymous(), played.gcs.endpoint, client=client, idle_timeout_s=0.5)
        store = GcsStore("bucket", config=config, sleep=asyncio.sleep, random=lambda: 0.0)
        assert isinstance(await store.put("key", b"body", ABSENT), Unknown)
        assert played.wire == ["POST"]
        assert isinstance(await store.put("key", b"body", ABSENT), Applied)
        assert isinstance(await store.get("key"), Found)
        assert played.wire == ["POST", "POST", "GET", "GET"]
        await store.close()


@pytest.mark.parametrize("status", [301, 307, 308])
async def test_a_redirect_is_told_and_not_followed(play: Play, status: int) -> None:
    elsewhere = Reply(status, headers={"Location": "http://127.0.0.1:9/elsewhere"})
    async with play(*[elsewhere] * len(CALLS)) as played:
        for call in CALLS:
            with pytest.raises(StoreError, match=r"in another place: http://127\.0\.0\.1:9/elsewhere"):
                await call(played.store)
        assert len(played.wire) == len(CALLS)


@pytest.mark.parametrize(
    "text",
    [
        "<not json",
        "{}",
        '{"kind": "storage#objects", "items": {}}',
        '{"kind": "storage#objects", "items": [{"name": "some/prefix/k"}]}',
        '{"error": {"code": 500}}',
    ],
)
async def test_what_is_no_whole_listing_is_no_listing(play: Play, text: str) -> None:
    async with play(*[Reply(200, text=text)] * ATTEMPTS) as played:
        with pytest.raises(StoreUnavailable, match="cannot be read"):
            await played.store.list("")


async def test_objects_that_are_no_keys_are_not_listed_and_pages_go_on(play: Play) -> None:
    names = ["some/prefix/", "some/prefix/a//b", "some/prefix/key", "some/prefix/folder/"]
    item = {"generation": "7", "size": "1", "timeCreated": "2026-11-21T12:00:00.250Z"}
    page = {"kind": "storage#objects", "nextPageToken": "on+/=", "items": [{"name": name, **item} for name in names]}
    reply = Reply(200, text=json.dumps(page))
    async with play(reply, reply) as played:
        first = await played.store.list("x y")
        await played.store.list("x y", first.after)

        assert [(entry.key, entry.version, entry.written_ms) for entry in first.entries] == [
            ("key", "7", 1_795_262_400_250)
        ]
        asked = [dict(request.query) for request in played.gcs.requests]
        assert asked[0]["prefix"] == "some/prefix/x y"
        assert asked[1] == {**asked[0], "pageToken": "on+/="}


async def test_a_client_that_cannot_be_made_is_told_at_each_call(play: Play) -> None:
    async with play(STORAGE_EMULATOR_HOST="ftp://nowhere") as played:
        for _ in range(2):
            with pytest.raises(StoreError, match="no GCS client"):
                await played.store.get("key")
        assert played.wire == []
