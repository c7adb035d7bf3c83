"""What S3's answers mean, on a server that gives them one by one; and how often a request goes over the wire."""

from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

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
    Version,
)
from storage_backends.backoff import ATTEMPTS
from storage_backends.s3.config import S3Config
from storage_backends.s3.store import S3Store
from storage_backends.wire.client import Pauses
from tests.storage_backends.answers import CALLS, AnswersContract, OpenStore, Play, PlayedScript, Sleep, playing, varied
from tests.storage_backends.s3.scripted_s3 import (
    DATE_MS,
    Reply,
    ScriptedS3,
    Serve,
    Step,
    scripted_s3,
)
from tools.support.s3_servers import S3Server

STALE = Matches(Version('"0123"'))
AGAIN = [
    Reply(409, "ConditionalRequestConflict"),
    Reply(409, "ExistingObjectIsDirectory"),
    Reply(409, "OperationAborted"),
    Reply(503, "SlowDown"),
    Reply(429, "TooManyRequests"),
    Reply(429),
    Reply(400, "RequestTimeout"),
]
FAILURES = [Reply(500, "InternalError"), Reply(502), Reply(503, "ServiceUnavailable"), Reply(503), Reply(504)]


@pytest.fixture(params=["wire", "sdk"])
def carrier(request: pytest.FixtureRequest) -> str:
    """What carries requests: what answers mean is the same."""
    name: str = request.param
    return name


@pytest.fixture
def play(carrier: str) -> Play:
    @asynccontextmanager
    async def run(*script: Step, **environment: str) -> AsyncIterator[PlayedScript]:
        async with scripted_s3(script) as s3, playing(s3, opener(s3, ARCO_S3_CLIENT=carrier, **environment)) as played:
            yield played

    return run


def opener(s3: ScriptedS3, **environment: str) -> OpenStore:
    config = S3Config.from_environment({**S3Server(s3.endpoint).environment, **environment})

    def open_store(sleep: Sleep, **settings: Any) -> S3Store:
        changed = replace(config, **settings)
        return S3Store("bucket", "some/prefix", config=changed, pauses=Pauses(sleep, lambda: 1.0))

    return open_store


class TestAnswers(AnswersContract):
    """What is the same for all vendors."""

    busy, throttled = Reply(503, "SlowDown"), "SlowDown"
    unversioned = Reply(200)
    again = varied(AGAIN)
    failure = varied(FAILURES)
    denial = varied([Reply(403, "AccessDenied"), Reply(403), Reply(400, "ExpiredToken"), Reply(401)])
    nowhere = varied([Reply(404, "NoSuchBucket")])
    refused = varied(
        [
            (Reply(412, "PreconditionFailed"), ABSENT),
            (Reply(412, "PreconditionFailed"), STALE),
            (Reply(304), ABSENT),  # some compatible stores answer a create-only PUT so
            (Reply(404, "NoSuchKey"), STALE),
        ]
    )


async def test_a_put_is_one_plain_request(play: Play) -> None:
    async with play() as played:
        outcome = await played.store.put("a key/é", b"body", ABSENT)

        [request] = played.server.requests
        assert isinstance(outcome, Applied)
        assert request.rel_url.raw_path == "/bucket/some/prefix/a%20key/%C3%A9"
        assert request.headers["If-None-Match"] == "*"
        assert request.headers["Content-Length"] == "4"
        assert not [name for name in request.headers if "trailer" in name.lower()]
        assert request.headers["x-amz-checksum-sha256"] == b64encode(sha256(b"body").digest()).decode()
        assert played.server.bodies == [b"body"]


async def test_a_custom_endpoint_has_the_bucket_in_its_path() -> None:
    async with scripted_s3([]) as s3:
        named = {"AWS_ENDPOINT_URL_S3": "", "AWS_ENDPOINT_URL": s3.endpoint.replace("127.0.0.1", "localhost")}
        played = PlayedScript(s3, opener(s3, **named))
        await played.store.put("key", b"", ANY)
        await played.store.close()

        [request] = played.server.requests
        assert request.headers["Host"].startswith("localhost:")
        assert request.rel_url.raw_path == "/bucket/some/prefix/key"


async def test_versions_go_over_the_wire_as_they_came(play: Play) -> None:
    async with play() as played:
        first = await played.store.put("key", b"one", ABSENT)
        assert isinstance(first, Applied)
        assert isinstance(await played.store.put("key", b"two", Matches(first.version)), Applied)
        assert isinstance(await played.store.get("key", first.version), Found)
        assert isinstance(await played.store.delete("key", STALE), PreconditionFailed)

        sent = [
            (request.headers.get("If-Match"), request.headers.get("If-None-Match"))
            for request in played.server.requests
        ]
        assert sent == [(None, "*"), (first.version, None), (None, first.version), (STALE.version, None)]


async def test_the_stores_clock_is_the_one_reported(play: Play) -> None:
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


async def test_only_what_must_match_can_be_not_found(play: Play) -> None:
    async with play(Reply(404, "NoSuchKey"), Reply(404, "NoSuchKey"), Reply(404, "NoSuchKey")) as played:
        with pytest.raises(StoreError, match="404"):
            await played.store.put("key", b"body", ABSENT)
        assert isinstance(await played.store.delete("key", STALE), PreconditionFailed)
        assert isinstance(await played.store.delete("key"), Applied)


async def test_a_header_that_the_store_does_not_know_is_a_definite_failure(play: Play) -> None:
    async with play(Reply(501, "NotImplemented")) as played:
        with pytest.raises(StoreError, match="NotImplemented"):
            await played.store.put("key", b"", ABSENT)


async def test_a_listing_that_cannot_be_read_is_no_empty_listing(play: Play) -> None:
    async with play(*[Reply(200, text="<not xml")] * ATTEMPTS) as played:
        with pytest.raises(StoreUnavailable):
            await played.store.list("")


async def test_without_credentials_nothing_is_sent(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**S3Server("").environment, "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}.items():
        monkeypatch.setenv(name, value)  # botocore looks there
    async with play(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="") as played:
        with pytest.raises(StoreDenied):
            await played.store.put("key", b"", ANY)
        assert played.wire == []


async def test_a_client_that_cannot_be_made_is_reported_at_each_call(play: Play) -> None:
    async with play(AWS_ENDPOINT_URL_S3="no url") as played:
        for _ in range(2):
            with pytest.raises(StoreError, match="no S3 client"):
                await played.store.get("key")


async def test_a_client_that_cannot_be_made_is_made_when_it_can(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = tmp_path / "config"
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(profiles))
    async with play(AWS_REGION="", AWS_DEFAULT_REGION="") as played:
        with pytest.raises(StoreError, match="no S3 client"):
            await played.store.get("key")
        profiles.write_text("[default]\nregion = eu-south-2\n")
        assert isinstance(await played.store.get("key"), Missing)


REDIRECTED = [
    Reply(301, "PermanentRedirect", headers={"x-amz-bucket-region": "eu-central-1"}),
    Reply(307, "TemporaryRedirect", headers={"x-amz-bucket-region": "eu-central-1", "Location": "http://nowhere/"}),
    Reply(400, text="<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-central-1</Region></Error>"),
]


@pytest.mark.parametrize("reply", REDIRECTED)
async def test_a_bucket_elsewhere_is_reported_with_its_region_and_not_followed(play: Play, reply: Reply) -> None:
    async with play(*[reply] * len(CALLS)) as played:
        for call in CALLS:
            with pytest.raises(StoreError, match="'bucket' is in another place: region 'eu-central-1'") as raised:
                await call(played.store)
            assert not isinstance(raised.value, StoreUnavailable | StoreDenied)
        assert len(played.wire) == len(CALLS)


SKEWED = Reply(403, "RequestTimeTooSkewed", headers={"Date": "Fri, 01 Jan 2038 00:00:00 GMT"})


@pytest.mark.parametrize("carrier", ["wire"])  # the SDK signs by this machine's clock alone
async def test_a_request_signed_by_a_wrong_clock_is_signed_again_by_the_stores(play: Play) -> None:
    async with play(SKEWED) as played:
        assert isinstance(await played.store.put("key", b"body", ABSENT), Applied)
        assert isinstance(await played.store.get("key"), Found)

        stamps = [request.headers["x-amz-date"][:11] for request in played.server.requests]
        assert played.wire == ["PUT", "PUT", "GET"]
        assert stamps[0] != "20380101T00"
        assert stamps[1:] == ["20380101T00"] * 2
        assert played.pauses == []


MINUTE_MS = 60_000


@pytest.mark.parametrize("carrier", ["wire"])
async def test_equal_reads_within_a_minute_have_one_signature(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([MINUTE_MS, 2 * MINUTE_MS - 1, 2 * MINUTE_MS, 2 * MINUTE_MS + 999, 2 * MINUTE_MS + 1_000])
    monkeypatch.setattr("storage_backends.s3.transport.system_now_ms", lambda: next(times))
    async with play() as played:
        for version in (None, None, None, Version('"v"')):
            await played.store.get("key", version)
        await played.store.put("key", b"body", ABSENT)

        reads, [write] = played.server.requests[:-1], played.server.requests[-1:]
        stamps = [request.headers["x-amz-date"] for request in reads]
        assert stamps == ["19700101T000100Z", "19700101T000100Z", "19700101T000200Z", "19700101T000200Z"]
        signatures = [request.headers["authorization"] for request in reads]
        assert signatures[0] == signatures[1]
        assert len({*signatures}) == 3
        assert write.headers["x-amz-date"] == "19700101T000201Z"


@pytest.mark.parametrize("carrier", ["wire"])
async def test_an_observer_gets_the_answer_to_the_request_that_was_signed_again(play: Play) -> None:
    async with play(SKEWED) as played:
        statuses: list[int] = []
        assert isinstance(played.store, S3Store)
        played.store.observe(lambda response: statuses.append(response.status))
        await played.store.put("key", b"body", ABSENT)
        assert statuses == [403, 200]


async def test_an_unusable_clock_is_a_denial(play: Play) -> None:
    async with play(SKEWED, SKEWED) as played:
        with pytest.raises(StoreDenied, match="RequestTimeTooSkewed"):
            await played.store.put("key", b"body", ABSENT)
        assert played.wire == ["PUT", "PUT"]


async def test_a_version_that_would_be_a_header_of_its_own_is_not_sent(play: Play) -> None:
    async with play() as played:
        with pytest.raises(StoreError, match="printable ASCII"):
            await played.store.put("key", b"", Matches(Version('"0"\r\nx-amz-acl: public-read')))
        assert played.wire == []


async def test_an_error_has_the_ids_that_support_needs(play: Play) -> None:
    named = {"x-amz-request-id": "4442587FB7D0A2F9", "x-amz-id-2": "vlR7PnpV2Ce81l0PRw6jlUpck7Jo5ZsQ"}
    async with play(Reply(403, "AccessDenied", headers=named), Reply(404, "NoSuchBucket", headers=named)) as played:
        for _ in range(2):
            with pytest.raises(StoreError, match=r"\(request id 4442587FB7D0A2F9, vlR7PnpV2Ce81l0PRw6jlUpck7Jo5ZsQ\)"):
                await played.store.get("key")


SETTINGS = {
    "ARCO_S3_ENCRYPTION": "aws:kms:dsse",
    "ARCO_S3_KMS_KEY_ID": "arn:aws:kms:eu-west-1:111122223333:key/1234abcd",
    "ARCO_S3_BUCKET_OWNER": "111122223333",
    "ARCO_S3_REQUESTER_PAYS": "true",
}


async def test_settings_of_the_bucket_are_sent_with_requests_and_encryption_with_objects(
    play: Play,
) -> None:
    listing = Reply(200, text="<ListBucketResult></ListBucketResult>")
    async with play(*[Serve()] * 4, listing, **SETTINGS) as played:
        for call in [CALLS[2], CALLS[0], CALLS[1], CALLS[3], CALLS[4]]:
            await call(played.store)

        assert played.wire == ["PUT", "GET", "GET", "DELETE", "GET"]
        for request in played.server.requests:
            assert request.headers["x-amz-expected-bucket-owner"] == "111122223333"
            assert request.headers["x-amz-request-payer"] == "requester"
            assert ("x-amz-server-side-encryption" in request.headers) == (request.method == "PUT")
        put = played.server.requests[0].headers
        assert put["x-amz-server-side-encryption"] == "aws:kms:dsse"
        assert put["x-amz-server-side-encryption-aws-kms-key-id"] == SETTINGS["ARCO_S3_KMS_KEY_ID"]


async def test_a_configured_key_is_sent_for_encryption(play: Play) -> None:
    async with play(ARCO_S3_KMS_KEY_ID="alias/tables") as played:
        await played.store.put("key", b"", ANY)
        assert played.server.requests[0].headers["x-amz-server-side-encryption"] == "aws:kms"


async def test_a_store_that_knows_no_checksums_is_sent_none(play: Play) -> None:
    async with play(AWS_REQUEST_CHECKSUM_CALCULATION="when_required") as played:
        await played.store.put("key", b"body", ANY)
        assert not [name for name in played.server.requests[0].headers if "checksum" in name.lower()]


async def test_a_body_that_looks_like_an_error_is_a_body(play: Play) -> None:
    body = b"<Error><Code>RequestTimeTooSkewed</Code></Error>"
    async with play() as played:
        await played.store.put("key", body, ANY)
        found = await played.store.get("key")
        assert isinstance(found, Found)
        assert found.body == body


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<Error><Code>InternalError</Code></Error>",
        "<ListBucketResult><Contents><Key>k</Key></Contents></ListBucketResult>",
    ],
)
async def test_what_is_no_whole_listing_is_no_listing(play: Play, text: str) -> None:
    async with play(*[Reply(200, text=text)] * ATTEMPTS) as played:
        with pytest.raises(StoreUnavailable, match="cannot be parsed"):
            await played.store.list("")


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
        assert page.others == ("", "a//b", "folder/")
        assert page.after is None


@pytest.mark.parametrize(
    ("encoding", "keys"),
    [("<EncodingType>url</EncodingType>", ["a b+c", "é/%"]), ("", ["a+b%2Bc", "%C3%A9/%25"])],
)
async def test_names_in_a_listing_are_read_as_they_were_written(play: Play, encoding: str, keys: list[str]) -> None:
    contents = "".join(
        f"<Contents><Key>some/prefix/{name}</Key><ETag>&quot;1&quot;</ETag><Size>1</Size>"
        "<LastModified>2026-11-21T12:00:00.000Z</LastModified></Contents>"
        for name in ("a+b%2Bc", "%C3%A9/%25")
    )
    more = "<IsTruncated>true</IsTruncated><NextContinuationToken>on+/=</NextContinuationToken>"
    namespace = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
    text = f"<ListBucketResult {namespace}>{encoding}{more}{contents}</ListBucketResult>"
    async with play(Reply(200, text=text), Reply(200, text=text)) as played:
        page = await played.store.list("x y")
        await played.store.list("x y", page.after)

        assert [entry.key for entry in page.entries] == keys
        query = {"list-type": "2", "encoding-type": "url", "max-keys": "1000", "prefix": "some/prefix/x y"}
        queries = [dict(request.query) for request in played.server.requests]
        assert queries == [query, {**query, "continuation-token": "on+/="}]
