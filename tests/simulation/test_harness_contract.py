"""Without faults, the simulated store keeps the contract that every store keeps."""

import asyncio
from typing import cast

import pytest

from storage_backends import ABSENT, ANY, Applied, Found, ObjectStore, PreconditionFailed
from tests.simulation.bucket import Versions, digest, generation
from tests.simulation.loop import SimulatedLoop
from tests.simulation.runtime import EPOCH_MS
from tests.simulation.world import World
from tests.storage_backends.contract import EveryVersionIsNew, StoreContract


def store_with(versions: Versions) -> ObjectStore:
    """One process's store in a world of its own, on the loop that runs the test."""
    return World(cast(SimulatedLoop, asyncio.get_running_loop()), versions=versions, page_size=100).handle("p1")


class SimulatedContract(StoreContract):
    faults = ("the store's time",)  # virtual, and far from this machine's

    async def test_every_answer_has_the_time(self, store: ObjectStore) -> None:
        """The store's own: virtual, and in whole seconds."""
        await asyncio.sleep(60)
        written = await store.put("key", b"1", ANY)
        await asyncio.sleep(60)
        page = await store.list("")
        found = await store.get("key")
        refused = await store.put("key", b"2", ABSENT)

        assert isinstance(written, Applied)
        assert isinstance(found, Found)
        assert isinstance(refused, PreconditionFailed)
        assert found.written_ms == page.entries[0].written_ms == written.now_ms
        times = [written.now_ms, page.now_ms, found.now_ms, refused.now_ms]
        assert times == sorted(times)
        assert all(time % 1_000 == 0 for time in times)
        assert 60_000 <= times[0] - EPOCH_MS < 65_000
        assert 119_000 <= times[1] - EPOCH_MS < 130_000


class TestVersionsThatAreDigests(SimulatedContract):
    @pytest.fixture
    async def store(self) -> ObjectStore:
        return store_with(digest)


class TestVersionsThatAreGenerations(SimulatedContract, EveryVersionIsNew):
    @pytest.fixture
    async def store(self) -> ObjectStore:
        return store_with(generation)
