from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage_backends.local import LocalStore
from tests.storage_backends.contract import EveryVersionIsNew, StoreContract


class TestLocalStore(StoreContract, EveryVersionIsNew):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[LocalStore]:
        store = LocalStore(tmp_path / "root")
        yield store
        await store.close()
