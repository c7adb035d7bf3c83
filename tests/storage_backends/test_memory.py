import pytest

from storage_backends.memory import MemoryStore
from tests.storage_backends.contract import EveryVersionIsNew, StoreContract


class TestMemoryStore(StoreContract, EveryVersionIsNew):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


async def test_the_clock_is_the_callers() -> None:
    times = iter(range(100, 200))
    store = MemoryStore(lambda: next(times))

    assert [(await store.get("key")).now_ms for _ in range(3)] == [100, 101, 102]
