"""A catalog whose time can be moved, and what its collector finds."""

from contextlib import suppress
from itertools import count

import pytest

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.collection import Kind
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.paths import Paths
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.collection.stats import CollectionStats
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import StoreError
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import DOWN, Match, Rule, ScriptedStore, swap
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property

PATHS = Paths("wh")


class Collections:
    """A catalog, its time, and collections of it."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.runtime = FakeRuntime()
        self.store = ScriptedStore(self.runtime.now_ms)
        self.fixture = CatalogFixture(self.store, self.runtime, settings or Settings("wh"))

    def days(self, number: float) -> None:
        """Lets time pass."""
        self.runtime.ms += round(number * DAY_MS)

    async def collect(self, *, delete: bool = True, steps: int | None = None) -> CollectionStats:
        """What a collector elsewhere does, which is stopped after so many steps."""
        requests = count()
        session = self.fixture.another().session(deadline_ms=DAY_MS)
        return await collect(session, delete=delete, should_stop=lambda: steps is not None and next(requests) >= steps)

    async def collected(self, *, delete: bool = True) -> dict[Kind, int]:
        """The counts of a collection."""
        return {kind: each.count for kind, each in (await self.collect(delete=delete)).kinds.items()}

    async def commit(self, name: str = "t", key: str | None = None) -> TableState:
        return await self.fixture.commit(set_property("n", self.runtime.ulid()), name, key)

    async def dies(self, match: Match, name: str = "t", key: str | None = None) -> None:
        """A commit that gets no further than this call."""
        self.store.rules = [Rule(match, fails=DOWN)]
        with suppress(CatalogError, StoreError):
            await self.fixture.another().commit(set_property("lost", "yes"), name, key)
        self.store.rules = []

    async def lost_try(self, name: str = "t", key: str | None = None) -> list[str]:
        """A commit that dies before its swap. Returns the keys that it left."""
        before = {*self.listed()}
        await self.dies(swap("/iceberg_pointers/"), name, key)
        return [each for each in self.listed() if each not in before]

    async def reconcile(self) -> None:
        await reconcile(self.fixture.another().session(deadline_ms=DAY_MS))

    def listed(self, prefix: str = "") -> list[str]:
        return [*self.store.keys(prefix)]

    async def codes(self) -> list[str]:
        """What `arco fsck` finds."""
        session = self.fixture.another().session(deadline_ms=DAY_MS)
        return [finding.code.value async for finding in check(Examination(session))]


@pytest.fixture
async def collections() -> Collections:
    made = Collections()
    await made.fixture.namespace("db")
    await made.fixture.table("t")
    return made


PROPERTIES: JsonObject = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}
"""Of tables that have their old metadata files removed."""
