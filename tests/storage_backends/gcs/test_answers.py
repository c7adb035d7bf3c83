"""What GCS's answers mean, on a server that gives them one by one, and how often a request goes over the wire: by both
transports."""

import json
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

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
    Unknown,
    Version,
)
from storage_backends.backoff import ATTEMPTS
from storage_backends.gcs.config import AccessToken, GcsClient, GcsConfig
from storage_backends.gcs.store import GcsStore
from tests.storage_backends.answers import CALLS, AnswersContract, Play, PlayedScript, varied
from tests.storage_backends.gcs.scripted_gcs import ScriptedGcs, playing_gcs, refusal
from tests.storage_backends.s3.scripted_s3 import Reply, Step

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


@pytest.fixture(params=list(GcsClient))
def play(request: pytest.FixtureRequest) -> Play:
    client: GcsClient = request.param

    def run(*script: Step, **variables: str) -> AbstractAsyncContextManager[PlayedScript]:
        return playing_gcs(script, client, None, **variables)

    return run


class TestAnswers(AnswersContract):
    """What is the same for all vendors."""

    write = "POST"
    endpoint = "endpoint"
    busy, throttled = refusal(429, "rateLimitExceeded"), "rateLimitExceeded"
    unversioned = Reply(200, text="{}")
    again = varied(AGAIN)
    failure = varied(FAILURES)
    denial = varied([refusal(403, "forbidden"), refusal(403), refusal(401, "authError")])
    nowhere = varied([NO_BUCKET, Reply(404, text="The specified bucket does not exist.")])
    refused = varied([(refusal(412, "conditionNotMet"), when) for when in (ABSENT, STALE)])


async def test_a_put_is_one_plain_upload(play: Play) -> None:
    async with play() as played:
        outcome = await played.store.put("a key/é", b"body", ABSENT)

        [request] = played.server.requests
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
        assert played.server.bodies == [b"body"]


async def test_an_empty_upload_has_a_content_length(play: Play) -> None:
    async with play() as played:
        await played.store.put("key", b"", ANY)

        [request] = played.server.requests
        assert request.headers["Content-Length"] == "0"


async def test_versions_go_over_the_wire_as_generations(play: Play) -> None:
    async with play() as played:
        first = await played.store.put("key", b"one", ABSENT)
        assert isinstance(first, Applied)
        assert isinstance(await played.store.put("key", b"two", Matches(first.version)), Applied)
        assert isinstance(await played.store.get("key", first.version), Found)
        assert isinstance(await played.store.delete("key", STALE), PreconditionFailed)

        names = ("ifGenerationMatch", "ifGenerationNotMatch")
        sent = [tuple(request.query.get(name) for name in names) for request in played.server.requests]
        assert sent == [("0", None), (first.version, None), (None, first.version), ("123", None)]
        assert {request.rel_url.raw_path for request in played.server.requests[2:]} == {
            "/storage/v1/b/bucket/o/some%2Fprefix%2Fkey"
        }


@pytest.mark.parametrize("version", ["0", "00", "-1", '"etag"', "1\r\nx: y", "٣", str(2**63)])
async def test_what_is_no_generation_matches_nothing(play: Play, version: str) -> None:
    async with play() as played:
        assert isinstance(await played.store.put("key", b"", Matches(Version(version))), PreconditionFailed)
        assert isinstance(await played.store.delete("key", Matches(Version(version))), PreconditionFailed)
        assert isinstance(await played.store.get("key", Version(version)), Missing)
        assert played.server.landed == {}


async def test_each_request_names_the_billed_project(play: Play) -> None:
    async with play(GOOGLE_CLOUD_QUOTA_PROJECT="payer") as played:
        for call in CALLS:
            await call(played.store)

        assert [request.query["userProject"] for request in played.server.requests] == ["payer"] * len(CALLS)


async def test_not_found_is_a_missing_object_to_an_emulator_only(play: Play) -> None:
    async with play(Reply(404, text="Not Found")) as played:
        assert isinstance(await played.store.get("key"), Missing)
    async with play(Reply(404, text="Not Found")) as played:
        store = GcsStore("bucket", config=with_token(played.server.endpoint))
        with pytest.raises(StoreError, match="404"):
            await store.get("key")
        await store.close()


def with_token(endpoint: str) -> GcsConfig:
    return GcsConfig(AccessToken("token"), endpoint)


async def test_a_token_goes_with_each_request(play: Play) -> None:
    async with play() as played:
        assert isinstance(played.server, ScriptedGcs)
        played.server.fake.token = "token"
        with pytest.raises(StoreDenied, match="Invalid Credentials"):
            await played.store.get("key")
        for client in GcsClient:
            store = GcsStore("bucket", config=replace(with_token(played.server.endpoint), client=client))
            assert isinstance(await store.get("key"), Missing)
            await store.close()


async def test_an_upload_that_finds_no_api_is_no_refusal(play: Play) -> None:
    async with play(*[refusal(404, "notFound", "Not Found")] * 2) as played:
        with pytest.raises(StoreError, match="404"):
            await played.store.put("key", b"", STALE)
        assert isinstance(await played.store.delete("key", STALE), PreconditionFailed)


async def test_an_answer_without_a_generation_is_ambiguous(play: Play) -> None:
    for text in ("", "{}", "[]", '{"generation": 1}'):
        async with play(Reply(200, text=text), Reply(200, text="body")) as played:
            assert isinstance(await played.store.put("key", b"", ABSENT), Unknown)
            with pytest.raises(StoreError, match="no version"):
                await played.store.get("key")


@pytest.mark.parametrize(
    "text",
    [
        "<not json",
        "{}",
        '{"kind": "storage#objects", "items": {}}',
        '{"kind": "storage#objects", "items": [1]}',
        '{"kind": "storage#objects", "items": [{"name": "some/prefix/k"}]}',
        '{"error": {"code": 500}}',
    ],
)
async def test_what_is_no_whole_listing_is_no_listing(play: Play, text: str) -> None:
    async with play(*[Reply(200, text=text)] * ATTEMPTS) as played:
        with pytest.raises(StoreUnavailable, match="cannot be parsed"):
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
        assert first.others == ("", "a//b", "folder/")
        queries = [dict(request.query) for request in played.server.requests]
        assert queries[0]["prefix"] == "some/prefix/x y"
        assert queries[1] == {**queries[0], "pageToken": "on+/="}


async def test_a_client_that_cannot_be_made_is_reported_at_each_call(play: Play) -> None:
    async with play(STORAGE_EMULATOR_HOST="ftp://nowhere") as played:
        for _ in range(2):
            with pytest.raises(StoreError, match="no GCS client"):
                await played.store.get("key")
        assert played.wire == []
