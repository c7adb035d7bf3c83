"""MinIO is served read-write: it has conditional PUT. It has no conditional DELETE, which no protocol needs."""

import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from storage_backends import ObjectStore, StoreError
from storage_backends.probe import honours_conditions
from storage_backends.s3.config import Carrier
from storage_backends.s3.store import S3Store
from tests.cli.process import serving
from tests.serve.test_sigkill import survive
from tests.storage_backends.contract import WriteContract
from tools.support.s3_servers import S3Server

pytestmark = pytest.mark.needs("go")

_buckets = itertools.count(1)


@pytest.fixture(params=[Carrier.WIRE, Carrier.SDK])
async def store(minio_server: S3Server, request: pytest.FixtureRequest) -> AsyncIterator[S3Store]:
    bucket = f"bucket-{next(_buckets)}"
    minio_server.make_bucket(bucket)
    store = S3Store(bucket, config=replace(minio_server.config, carrier=request.param))
    yield store
    await store.close()


class TestS3StoreOnMinio(WriteContract):
    async def test_nothing_is_below_a_prefix_that_no_key_has(self, store: ObjectStore) -> None:
        with pytest.raises(StoreError, match="bad components"):
            await store.list("../")


async def test_the_probe_finds_that_it_may_be_written_and_what_it_lacks(store: S3Store) -> None:
    verdict = await honours_conditions(store, "nonce")

    assert verdict
    assert not verdict.conditional_delete


async def test_it_is_served_and_what_it_lacks_is_said_once(minio_server: S3Server) -> None:
    minio_server.make_bucket("served")
    async with serving("s3://served/catalog", "--workers", "2", **minio_server.environment) as server:
        status, _ = await server.call("POST", "/v1/arco/namespaces", {"namespace": ["db"]})
        ended = await server.stop()

    assert status == 200
    assert "READ-ONLY" not in ended.err
    assert ended.err.count("the store does not support conditional DELETE") == 1


async def test_no_answer_is_a_lie_when_servers_over_it_are_killed(minio_server: S3Server, tmp_path: Path) -> None:
    minio_server.make_bucket("lake")
    await survive("s3://lake/catalog", tmp_path, writers=6, kills=3, seed=4, takeovers=0)
