"""The S3 of `make bench-peers` keeps the contract of every store, so that what is measured over it is honest."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from storage_backends.s3.store import S3Store
from tests.storage_backends.contract import StoreContract
from tools.bench.peers.objects import unchunked
from tools.bench.peers.servers import ours
from tools.support.s3_servers import S3Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with ours("tools.bench.peers.slow_s3", Path(tmp_path_factory.mktemp("objects")), "0") as server:
        yield S3Server(server.uri)


class TestObjects(StoreContract):
    @pytest.fixture
    async def store(self, server: S3Server, request: pytest.FixtureRequest) -> AsyncIterator[S3Store]:
        bucket = f"bucket-{abs(hash(request.node.nodeid))}"
        server.make_bucket(bucket)
        store = S3Store(bucket, config=server.config)
        yield store
        await store.close()


def test_a_body_in_chunks_is_what_the_chunks_hold() -> None:
    assert unchunked(b"3;chunk-signature=0\r\nabc\r\n2\r\n\r\n\r\n0\r\nx-amz-checksum-crc32:AA==\r\n\r\n") == b"abc\r\n"
