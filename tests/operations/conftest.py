import pytest

from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import ScriptedStore
from tools.support.catalog_fixture import CatalogFixture, CountingFixture
from tools.support.wrapped_stores import CountingStore, DelayingStore


@pytest.fixture
async def fixture() -> CatalogFixture:
    """A catalog in memory, with the namespace `db`."""
    made = CatalogFixture(ScriptedStore())
    await made.namespace("db")
    return made


@pytest.fixture
async def counted() -> CountingFixture:
    """A catalog in memory that counts calls, with the namespace `db`. Each call takes the same time, so that calls
    beside each other are seen as such."""
    clock = FakeRuntime()
    made = CountingFixture(CountingStore(DelayingStore(MemoryStore(clock.now_ms), 0.004)), clock)
    await made.namespace("db")
    return made
