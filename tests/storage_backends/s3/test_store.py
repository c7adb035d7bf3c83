"""The contract on S3 as moto emulates it, and as servers that check signatures serve it."""

import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from storage_backends.s3.config import Carrier
from storage_backends.s3.store import S3Store
from tests.storage_backends.contract import SHORT_PAGE, StoreContract, WriteContract
from tools.support.s3_servers import S3Server, versitygw

_buckets = itertools.count(1)


CARRIERS = [Carrier.WIRE, Carrier.SDK]


class TestS3Store(StoreContract):
    @pytest.fixture(params=CARRIERS)
    async def store(
        self, s3_server: S3Server, s3_bucket: str, request: pytest.FixtureRequest
    ) -> AsyncIterator[S3Store]:
        store = S3Store(s3_bucket, config=replace(s3_server.config, carrier=request.param))
        store.page_size = SHORT_PAGE
        yield store
        await store.close()


@pytest.fixture(scope="module")
def gateway() -> Iterator[S3Server]:
    with versitygw() as server:
        yield server


@pytest.mark.needs("go")
class TestS3StoreOnVersityGateway(WriteContract):
    """It checks the condition of a DELETE, but not in one step with the deletion."""

    EARLY_MS = 2_000  # it writes the time, in seconds, once a second

    # The SDK keeps the contract on moto each time, and the wire client has its signatures checked here.
    @pytest.fixture(params=[Carrier.WIRE, pytest.param(Carrier.SDK, marks=pytest.mark.slow)])
    async def store(self, gateway: S3Server, request: pytest.FixtureRequest) -> AsyncIterator[S3Store]:
        bucket = f"bucket-{next(_buckets)}"
        gateway.make_bucket(bucket)
        store = S3Store(bucket, config=replace(gateway.config, carrier=request.param, checksum=True))
        if request.param is Carrier.SDK:
            store.page_size = SHORT_PAGE
        yield store
        await store.close()
