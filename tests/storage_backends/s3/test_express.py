"""Directory buckets (S3 Express One Zone) by Amazon's SDK: sessions, conditions, listings, and answers that fail, on a
fake of ours that speaks their protocol."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from storage_backends import (
    ABSENT,
    Applied,
    Found,
    Matches,
    ObjectStore,
    PreconditionFailed,
    StoreDenied,
    StoreError,
    StoreUnavailable,
    Unknown,
)
from storage_backends.s3.signature import Credentials
from storage_backends.s3.store import S3Store
from storage_backends.wire.client import Pauses
from tests.storage_backends.contract import SHORT_PAGE, EveryVersionIsNew, StoreContract
from tests.storage_backends.s3.express_protocol_fake import ExpressProtocolFake, RequestRefused
from tests.storage_backends.s3.scripted_s3 import Drop, Reply, Step, scripted_s3
from tests.support.stub_server import stub_server
from tools.support.s3_servers import S3Server

BUCKET = "bucket--use1-az4--x-s3"


async def no_pause(_seconds: float) -> None:
    return


@pytest.fixture
def express() -> ExpressProtocolFake:
    server = S3Server("")
    return ExpressProtocolFake(BUCKET, Credentials(server.access_key, server.secret_key))


@pytest.fixture
async def store(express: ExpressProtocolFake) -> AsyncIterator[ObjectStore]:
    async with stub_server(express.handle) as server:
        store = S3Store(BUCKET, "a/prefix", config=S3Server(server.uri).config, pauses=Pauses(no_pause))
        store.page_size = SHORT_PAGE
        yield store
        await store.close()


class TestDirectoryBucketOnOurProtocolFake(StoreContract, EveryVersionIsNew):
    """The protocol fake, since these tests can't run on Amazon's own service."""


async def test_calls_beside_each_other_share_a_session(store: ObjectStore, express: ExpressProtocolFake) -> None:
    await asyncio.gather(*(store.put(f"key-{number}", b"body", ABSENT) for number in range(20)))
    await store.list("")

    assert express.made_sessions == 1
    assert len(express.objects) == 20


@pytest.mark.parametrize("left_s", [5.0, 30.0])  # the SDK renews 45 s before the end, and must in the last 10
async def test_a_session_is_renewed_before_its_end(
    store: ObjectStore, express: ExpressProtocolFake, left_s: float
) -> None:
    express.session_s = left_s
    await store.put("key", b"one", ABSENT)
    made = express.made_sessions
    express.session_s = 300.0
    await store.get("key")
    await store.get("key")
    await store.get("key")

    assert express.made_sessions == made + 1


async def test_a_session_near_its_end_serves_while_no_other_is_to_be_had(
    store: ObjectStore, express: ExpressProtocolFake
) -> None:
    express.session_s = 30.0
    await store.put("key", b"one", ABSENT)
    express.session_refusals = [RequestRefused(503, "ServiceUnavailable")]

    assert isinstance(await store.get("key"), Found)
    assert not express.session_refusals


async def test_a_session_that_the_server_takes_for_over_is_a_denial_and_nothing_is_written(
    store: ObjectStore, express: ExpressProtocolFake
) -> None:
    await store.put("key", b"one", ABSENT)
    express.sessions.clear()

    with pytest.raises(StoreDenied, match="ExpiredToken"):
        await store.put("other", b"two", ABSENT)
    assert len(express.objects) == 1


async def test_a_session_that_is_over_by_this_machines_clock_is_a_failure_in_words(
    store: ObjectStore, express: ExpressProtocolFake
) -> None:
    express.session_s = -60.0

    with pytest.raises(StoreError, match="expired"):
        await store.put("key", b"one", ABSENT)
    assert express.requests == []


@pytest.mark.parametrize("status", [500, 503])
async def test_a_write_waits_for_a_session_and_is_then_sent_once(
    store: ObjectStore, express: ExpressProtocolFake, status: int
) -> None:
    """A bucket without requests for 90 days answers 503 for minutes."""
    express.session_refusals = [RequestRefused(status, "ServiceUnavailable")]

    assert isinstance(await store.put("key", b"one", ABSENT), Applied)
    assert express.requests == ["PUT"]


async def test_without_a_session_a_write_has_not_landed(store: ObjectStore, express: ExpressProtocolFake) -> None:
    express.session_refusals = [RequestRefused(503, "ServiceUnavailable")] * 100

    with pytest.raises(StoreUnavailable, match="session"):
        await store.put("key", b"one", ABSENT)
    assert express.requests == []


async def test_a_session_whose_answer_is_lost_is_created_again() -> None:
    dropped: list[Step] = [Drop(applied=False), Reply(403, "AccessDenied")]
    async with scripted_s3(dropped) as s3:
        store = S3Store(BUCKET, config=S3Server(s3.endpoint).config, pauses=Pauses(no_pause))
        with pytest.raises(StoreDenied, match="AccessDenied"):
            await store.put("key", b"one", ABSENT)
        await store.close()

    assert [request.query_string for request in s3.requests] == ["session", "session"]


@pytest.mark.parametrize("code", ["SlowDown", "ConditionalRequestConflict"])
async def test_a_write_that_did_not_land_is_sent_again(
    store: ObjectStore, express: ExpressProtocolFake, code: str
) -> None:
    express.refusals = [RequestRefused(409 if code.startswith("Cond") else 503, code)]

    assert isinstance(await store.put("key", b"one", ABSENT), Applied)
    assert express.requests == ["PUT", "PUT"]


@pytest.mark.parametrize("status", [500, 503])
async def test_a_write_that_may_have_landed_is_unknown_and_not_sent_again(
    store: ObjectStore, express: ExpressProtocolFake, status: int
) -> None:
    express.refusals = [RequestRefused(status, "InternalError")]

    assert isinstance(await store.put("key", b"one", ABSENT), Unknown)
    assert express.requests == ["PUT"]


async def test_a_deletion_may_be_of_one_version_alone(store: ObjectStore) -> None:
    first = await store.put("key", b"one", ABSENT)
    assert isinstance(first, Applied)
    second = await store.put("key", b"two", Matches(first.version))
    assert isinstance(second, Applied)

    assert isinstance(await store.delete("key", Matches(first.version)), PreconditionFailed)
    assert isinstance(await store.delete("key", Matches(second.version)), Applied)


async def test_a_listing_is_made_by_folder(store: ObjectStore, express: ExpressProtocolFake) -> None:
    """The fake refuses a prefix that ends elsewhere, as the documents say that Amazon does."""
    for key in ("folder/one", "folder/other", "folders"):
        await store.put(key, b"", ABSENT)

    assert {entry.key for entry in (await store.list("folder/o")).entries} == {"folder/one", "folder/other"}
    assert {entry.key for entry in (await store.list("fold")).entries} == {"folder/one", "folder/other", "folders"}


async def test_objects_that_are_no_keys_are_listed_below_the_prefix_alone(
    store: ObjectStore, express: ExpressProtocolFake
) -> None:
    await store.put("folder/key", b"", ABSENT)
    for name in ("one//a", "other//b"):
        express.objects[f"a/prefix/folder/{name}"] = express.objects["a/prefix/folder/key"]

    assert (await store.list("folder/on")).others == ("folder/one//a",)
