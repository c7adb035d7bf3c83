from collections.abc import AsyncIterator

import pytest

from storage_backends.s3 import S3Store
from tests.storage_backends.contract import StoreContract


class TestS3Store(StoreContract):
    @pytest.fixture
    async def store(self, s3_bucket: str) -> AsyncIterator[S3Store]:
        store = S3Store(s3_bucket)
        yield store
        await store.close()
