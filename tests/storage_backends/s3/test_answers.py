"""What S3's answers mean, on a server that gives them one by one; and how often a request goes over the wire."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
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
from storage_backends.s3.config import S3Config
from storage_backends.s3.store import S3Store
from storage_backends.wrappers.request import RequestStore
from tests.storage_backends.s3.scripted_s3 import (
    DATE,
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
from tools.support.s3_servers import S3Server

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

    def __init__(self, s3: ScriptedS3, environment: Mapping[str, str]) -> None:
        self.s3 = s3
        self.pauses: list[float] = []
        self._config = S3Config.from_environment({**S3Server(s3.endpoint).environment, **environment})
        self.store = self._made(self._config)

    def configure(self, *, max_answer_bytes: int) -> None:
        """Another store, before the first call."""
        self.store = self._made(replace(self._config, max_answer_bytes=max_answer_bytes))

    def _made(self, config: S3Config) -> S3Store:
        return S3Store("bucket", "some/prefix", config=config, sleep=self._sleep, random=lambda: 1.0)

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    @property
    def wire(self) -> list[str]:
        return [request.method for request in self.s3.requests]


Play: TypeAlias = Callable[..., AbstractAsyncContextManager[Played]]


@pytest.fixture(params=["wire", "sdk"])
def carrier(request: pytest.FixtureRequest) -> str:
    """What carries requests: what answers mean is the same."""
    name: str = request.param
    return name


@pytest.fixture
def play(carrier: str) -> Play:
    @asynccontextmanager
    async def run(*script: Step, **environment: str) -> AsyncIterator[Played]:
        async with scripted_s3(script) as s3:
            played = Played(s3, {"ARCO_S3_CLIENT": carrier, **environment})
            try:
                yield played
            finally:
                await played.store.close()

    return run


@pytest.fixture
def leap(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the event loop's clock on: who waits for so long has waited, however fast this machine is."""

    def forward(seconds: float) -> None:
        loop = asyncio.get_running_loop()
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + seconds)

    return forward


async def test_a_put_is_one_plain_request(play: Play) -> None:
    async with play() as played:
        outcome = await played.store.put("a key/é", b"body", ABSENT)

        [request] = played.s3.requests
        assert isinstance(outcome, Applied)
        assert request.rel_url.raw_path == "/bucket/some/prefix/a%20key/%C3%A9"
        assert request.headers["If-None-Match"] == "*"
        assert request.headers["Content-Length"] == "4"
        assert not [name for name in request.headers if "trailer" in name.lower()]
        assert request.headers["x-amz-checksum-sha256"] == b64encode(sha256(b"body").digest()).decode()
        assert played.s3.bodies == [b"body"]


async def test_a_custom_endpoint_has_the_bucket_in_its_path() -> None:
    async with scripted_s3([]) as s3:
        named = {"AWS_ENDPOINT_URL_S3": "", "AWS_ENDPOINT_URL": s3.endpoint.replace("127.0.0.1", "localhost")}
        played = Played(s3, named)
        await played.store.put("key", b"", ANY)
        await played.store.close()

        [request] = played.s3.requests
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
        assert isinstance(await played.store.delete("key", STALE), PreconditionFailed)
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

        assert isinstance(outcome, PreconditionFailed)
        assert outcome.version is None
        assert played.wire == ["PUT"]


async def test_only_what_must_match_can_be_not_found(play: Play) -> None:
    async with play(Reply(404, "NoSuchKey"), Reply(404, "NoSuchKey"), Reply(404, "NoSuchKey")) as played:
        with pytest.raises(StoreError, match="404"):
            await played.store.put("key", b"body", ABSENT)
        assert isinstance(await played.store.delete("key", STALE), PreconditionFailed)
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
            with pytest.raises(StoreError, match="bucket 'bucket' does not exist"):
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


@pytest.mark.parametrize("step", [Drop(applied=False), Drop(applied=True), Truncate()])
async def test_a_write_whose_answer_is_lost_is_unknown_and_was_sent_once(play: Play, step: Step) -> None:
    async with play(step, step) as played:
        assert isinstance(await played.store.put("key", b"body", ABSENT), Unknown)
        assert played.wire == ["PUT"]
        assert isinstance(await played.store.delete("key"), Unknown)
        assert played.wire == ["PUT", "DELETE"]
        assert played.pauses == []


async def test_a_write_on_a_connection_that_worked_before_is_sent_once_too(play: Play) -> None:
    async with play(Serve(), Drop(applied=True)) as played:
        first = await played.store.put("key", b"one", ABSENT)
        assert isinstance(first, Applied)
        assert isinstance(await played.store.put("key", b"two", Matches(first.version)), Unknown)

        assert played.wire == ["PUT", "PUT"]
        assert len(played.s3.connections) == 1
        assert played.s3.objects == {"/bucket/some/prefix/key": b"two"}


async def test_a_refusal_is_never_the_echo_of_a_write_that_landed(play: Play) -> None:
    async with play(Drop(applied=True)) as played:
        assert isinstance(await played.store.put("key", b"ours", ABSENT), Unknown)
        assert isinstance(await played.store.put("key", b"ours", ABSENT), PreconditionFailed)  # sent by us, who know
        assert played.wire == ["PUT", "PUT"]


async def test_a_write_that_is_cut_off_is_unknown_and_its_connection_is_not_used_again(
    play: Play, leap: Callable[[float], None]
) -> None:
    async with play(Hang()) as played:
        hurried = RequestStore(played.store, 5_000, lambda: 0)
        write = asyncio.create_task(hurried.put("key", b"body", ABSENT))
        await played.s3.hanging.acquire()
        leap(5)

        assert await write == Unknown("the request's deadline has passed")
        assert isinstance(await played.store.get("key"), Missing)
        assert played.wire == ["PUT", "GET"]
        assert len(played.s3.connections) == 2


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


async def test_silence_leaves_a_write_unknown_and_a_read_tried_again(play: Play, leap: Callable[[float], None]) -> None:
    async with play(Hang(), Serve(), Hang()) as played:
        write = asyncio.create_task(played.store.put("key", b"body", ABSENT))
        await played.s3.hanging.acquire()
        leap(S3Config().idle_timeout_s)
        assert isinstance(await write, Unknown)
        assert played.wire == ["PUT"]
        await played.store.put("key", b"body", ABSENT)
        read = asyncio.create_task(played.store.get("key"))
        await played.s3.hanging.acquire()
        leap(S3Config().idle_timeout_s)
        assert isinstance(await read, Found)
        assert played.wire == ["PUT", "PUT", "GET", "GET"]


async def test_without_credentials_nothing_is_sent(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**S3Server("").environment, "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}.items():
        monkeypatch.setenv(name, value)  # botocore looks there
    async with play(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="") as played:
        with pytest.raises(StoreDenied):
            await played.store.put("key", b"", ANY)
        assert played.wire == []


async def test_a_client_that_cannot_be_made_is_told_at_each_call(play: Play) -> None:
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
async def test_a_bucket_elsewhere_is_told_with_its_region_and_not_followed(play: Play, reply: Reply) -> None:
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

        stamps = [request.headers["x-amz-date"][:11] for request in played.s3.requests]
        assert played.wire == ["PUT", "PUT", "GET"]
        assert stamps[0] != "20380101T00"
        assert stamps[1:] == ["20380101T00"] * 2
        assert played.pauses == []


async def test_a_clock_that_nobody_can_set_is_a_denial(play: Play) -> None:
    async with play(SKEWED, SKEWED) as played:
        with pytest.raises(StoreDenied, match="RequestTimeTooSkewed"):
            await played.store.put("key", b"body", ABSENT)
        assert played.wire == ["PUT", "PUT"]


async def test_a_version_that_would_be_a_header_of_its_own_is_not_sent(play: Play) -> None:
    async with play() as played:
        with pytest.raises(StoreError, match="printable ASCII"):
            await played.store.put("key", b"", Matches(Version('"0"\r\nx-amz-acl: public-read')))
        assert played.wire == []


async def test_an_error_has_the_ids_that_support_asks_for(play: Play) -> None:
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


async def test_settings_of_the_bucket_are_said_with_each_request_and_of_encryption_with_each_object(play: Play) -> None:
    listing = Reply(200, text="<ListBucketResult></ListBucketResult>")
    async with play(*[Serve()] * 4, listing, **SETTINGS) as played:
        for call in [CALLS[2], CALLS[0], CALLS[1], CALLS[3], CALLS[4]]:
            await call(played.store)

        assert played.wire == ["PUT", "GET", "GET", "DELETE", "GET"]
        for request in played.s3.requests:
            assert request.headers["x-amz-expected-bucket-owner"] == "111122223333"
            assert request.headers["x-amz-request-payer"] == "requester"
            assert ("x-amz-server-side-encryption" in request.headers) == (request.method == "PUT")
        put = played.s3.requests[0].headers
        assert put["x-amz-server-side-encryption"] == "aws:kms:dsse"
        assert put["x-amz-server-side-encryption-aws-kms-key-id"] == SETTINGS["ARCO_S3_KMS_KEY_ID"]


async def test_a_key_asks_for_encryption_by_it(play: Play) -> None:
    async with play(ARCO_S3_KMS_KEY_ID="alias/tables") as played:
        await played.store.put("key", b"", ANY)
        assert played.s3.requests[0].headers["x-amz-server-side-encryption"] == "aws:kms"


async def test_a_store_that_knows_no_checksums_is_sent_none(play: Play) -> None:
    async with play(AWS_REQUEST_CHECKSUM_CALCULATION="when_required") as played:
        await played.store.put("key", b"body", ANY)
        assert not [name for name in played.s3.requests[0].headers if "checksum" in name.lower()]


@pytest.mark.parametrize("asked", ["7", "Sat, 21 Nov 2026 12:00:07 GMT"])
async def test_a_store_that_asks_for_time_is_given_it(play: Play, asked: str) -> None:
    later = Reply(503, "SlowDown", headers={"Retry-After": asked, "Date": DATE})
    async with play(later, later) as played:
        assert isinstance(await played.store.put("key", b"body", ABSENT), Applied)
        assert played.pauses == [7, 7]


async def test_a_store_that_asks_for_more_time_than_there_is_is_not_asked_again(play: Play) -> None:
    async with play(Reply(503, "SlowDown", headers={"Retry-After": "60"})) as played:
        with pytest.raises(StoreUnavailable, match="SlowDown"):
            await played.store.put("key", b"body", ABSENT)
        assert (played.wire, played.pauses) == (["PUT"], [])


async def test_an_answer_that_is_too_large_is_not_asked_for_again(play: Play) -> None:
    huge = Reply(200, text="x" * 2_000, headers={"ETag": '"1"'})
    async with play(huge, huge) as played:
        played.configure(max_answer_bytes=1_000)
        with pytest.raises(StoreError, match="longer than 1,000 bytes") as raised:
            await played.store.get("key")
        assert not isinstance(raised.value, StoreUnavailable)
        assert isinstance(await played.store.put("key", b"", ANY), Unknown)
        assert played.wire == ["GET", "PUT"]


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
        with pytest.raises(StoreUnavailable, match="cannot be read"):
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
        asked = {"list-type": "2", "encoding-type": "url", "max-keys": "1000", "prefix": "some/prefix/x y"}
        queries = [dict(request.query) for request in played.s3.requests]
        assert queries == [asked, {**asked, "continuation-token": "on+/="}]
