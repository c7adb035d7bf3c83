"""The contract on a fake of ours that speaks GCS's protocol, and on fake-gcs-server, by both transports."""

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from storage_backends import ABSENT, Found, ObjectStore
from storage_backends.gcs.config import GcsClient
from storage_backends.gcs.store import GcsStore
from storage_backends.validation import PAGE_SIZE
from tests.storage_backends.contract import SHORT_PAGE, EveryVersionIsNew, StoreContract, WriteContract, applied
from tests.support.gcs_protocol_fake import gcs_protocol_fake
from tools.support.gcs_servers import GcsServer, fake_gcs_server

_buckets = itertools.count(1)


@pytest.fixture(scope="module")
def our_fake() -> Iterator[GcsServer]:
    with gcs_protocol_fake() as server:
        yield server


@pytest.fixture(scope="module")
def their_fake() -> Iterator[GcsServer]:
    with fake_gcs_server() as server:
        yield server


async def opened(server: GcsServer, client: GcsClient, page_size: int = SHORT_PAGE) -> AsyncIterator[GcsStore]:
    bucket = f"bucket-{next(_buckets)}"
    server.make_bucket(bucket)
    store = GcsStore(bucket, config=server.config(client))
    store.page_size = page_size
    yield store
    await store.close()


class OnOurFake(StoreContract, EveryVersionIsNew):
    CLIENT: GcsClient

    @pytest.fixture
    async def store(self, our_fake: GcsServer) -> AsyncIterator[GcsStore]:
        async for store in opened(our_fake, self.CLIENT):
            yield store


class TestWireOnOurProtocolFake(OnOurFake):
    CLIENT = GcsClient.WIRE


class TestSdkOnOurProtocolFake(OnOurFake):
    CLIENT = GcsClient.SDK


class OnFakeGcsServer(WriteContract):
    """It ignores the preconditions of reads and deletions: only what its uploads show is to be trusted."""

    CLIENT: GcsClient
    PAGE_SIZE = SHORT_PAGE

    @pytest.fixture
    async def store(self, their_fake: GcsServer) -> AsyncIterator[GcsStore]:
        async for store in opened(their_fake, self.CLIENT, self.PAGE_SIZE):
            yield store

    async def test_a_get_of_what_one_holds_is_unchanged(self, store: ObjectStore) -> None:
        version = applied(await store.put("key", b"one", ABSENT))

        assert isinstance(await store.get("key", version), Found)


@pytest.mark.needs("go")
class TestWireOnFakeGcsServer(OnFakeGcsServer):
    CLIENT = GcsClient.WIRE
    PAGE_SIZE = PAGE_SIZE


@pytest.mark.needs("go")
class TestSdkOnFakeGcsServer(OnFakeGcsServer):
    CLIENT = GcsClient.SDK
