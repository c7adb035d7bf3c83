"""Days of commits to one table in memory, with a collection at the end of each, on a clock that the test moves."""

import asyncio
from collections import Counter
from contextlib import suppress

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.upkeep_settings import DAY_MS, Retention
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.paths import Paths, record_kind
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import Matches, Outcome, StoreUnavailable, When
from storage_backends.memory import MemoryStore
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property

LOST = 100
"""One commit of this many fails at its swap."""
AFTERWARDS = (8, 8, 90, 8, 8)
"""Days between the collections after a burst: at the last of them all of it is old."""
CLEANED: JsonObject = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}


class ManualRuntime(SystemRuntime):
    """A machine whose clock the test moves, and sleeping."""

    ms = 1_767_225_600_000

    def now_ms(self) -> int:
        """See `Runtime.now_ms`."""
        return self.ms

    def boot_ms(self) -> int:
        """See `Runtime.boot_ms`."""
        return self.ms

    def clocks(self) -> tuple[int, int]:
        """See `Runtime.clocks`."""
        return self.ms, self.ms

    async def sleep(self, seconds: float) -> None:
        """See `Runtime.sleep`."""
        self.ms += round(seconds * 1000)
        await asyncio.sleep(0)


class FailingStore(MemoryStore):
    """A store that fails to swap pointers while `fails` is true."""

    fails = False

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """See `ObjectStore.put`."""
        if self.fails and key.startswith(Paths("wh").pointers) and isinstance(when, Matches):
            raise StoreUnavailable("down")
        return await super().put(key, body, when)


class Month:
    """A catalog with one table, and its days."""

    def __init__(self, receipts_ms: int) -> None:
        self.runtime = ManualRuntime()
        self.store = FailingStore(self.runtime.now_ms)
        settings = Settings("wh", retention=Retention(receipts_ms=receipts_ms))
        self.fixture = CatalogFixture(self.store, self.runtime, settings)

    async def begin(self) -> None:
        """Makes the table."""
        await self.fixture.namespace("db")
        await self.fixture.table("t", None, properties=CLEANED)

    async def day(self, commits: int) -> None:
        """Makes commits, evenly spread over a day, and collects at its end."""
        for number in range(commits):
            self.runtime.ms += DAY_MS // commits
            self.store.fails = number % LOST == LOST - 1
            with suppress(CatalogError):
                await self.fixture.commit(set_property("n", str(number)), key=self.fixture.key())
        self.store.fails = False
        await reconcile(self.fixture.session(deadline_ms=DAY_MS))
        await collect(self.fixture.session(deadline_ms=DAY_MS), delete=True)

    async def burst(self, requests: int) -> None:
        """Makes commits without a pause."""
        for number in range(requests):
            await self.fixture.commit(set_property("n", str(number)), key=self.fixture.key())

    async def pass_days(self, days: int) -> None:
        """Lets days pass without a commit, and collects at their end."""
        self.runtime.ms += days * DAY_MS
        await collect(self.fixture.session(deadline_ms=DAY_MS), delete=True)

    def sizes(self) -> dict[str, tuple[int, int]]:
        """The number of objects of each kind, and their bytes."""
        counts: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for key, size in self.store.sizes():
            kind = record_kind(key)
            counts[kind] += 1
            sizes[kind] += size
        return {kind: (counts[kind], sizes[kind]) for kind in counts}
