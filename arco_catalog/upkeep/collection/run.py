"""What the parts of one collection share: the session, the rules' ages, listing and deleting within bounds."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from arco_catalog.iceberg.errors import CatalogError, CommitStateUnknown
from arco_catalog.iceberg.json import MalformedJson
from arco_catalog.planning.collection import Kind, Retention, is_older
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.deletion import delete_for_certain
from arco_catalog.state.paths import Paths
from arco_catalog.upkeep.collection.stats import CollectionStats
from storage_backends import MAX_DELETED, Cursor, Found, Listed, StoreError, Unknown

T = TypeVar("T")
S = TypeVar("S")

AT_ONCE = 64
"""Objects that are read beside each other."""
BATCH = 2_000
"""Objects that a part of a run holds in memory at a time."""


class Stopped(Exception):
    """The run is to end: what is left is for the next one."""


@dataclass
class Run:
    """One collection of one catalog. With `delete` false it only counts, and writes nothing."""

    session: Session
    retention: Retention
    delete: bool
    stats: CollectionStats = field(default_factory=CollectionStats)
    progress: Callable[[CollectionStats], None] = lambda stats: None
    should_stop: Callable[[], bool] = lambda: False

    @property
    def paths(self) -> Paths:
        return self.session.state.paths

    def go_on(self) -> None:
        """Asked between steps. Raises `Stopped`, and `StoreUnavailable` past the deadline: what was judged long ago is
        not acted on (docs/design/commit.md#rule-5)."""
        self.progress(self.stats)
        if self.should_stop():
            raise Stopped
        self.session.check_deadline()

    async def read(self, key: str) -> Found | None:
        """An object as it is now, None if there is none."""
        found = await self.session.state.store.get(key)
        return found if isinstance(found, Found) else None

    async def exists(self, key: str) -> bool:
        """Whether there is such an object now."""
        return isinstance(await self.session.state.store.get_range(key, 0, 1), Found)

    async def pages(self, prefix: str) -> AsyncGenerator[tuple[Sequence[Listed], int], None]:
        """All objects under a prefix, in no order, a page at a time, each with the store's time of it."""
        after: Cursor | None = None
        while True:
            page = await self.session.state.store.list(prefix, after)
            self.stats.listed += len(page.entries)
            self.go_on()
            yield page.entries, page.now_ms
            after = page.after
            if after is None:
                return

    async def older(self, prefix: str, limit_ms: int) -> AsyncGenerator[Sequence[Listed], None]:
        """The objects under a prefix that are so old, in no order, a bounded number at a time."""
        batch: list[Listed] = []
        async with aclosing(self.pages(prefix)) as pages:
            async for entries, now_ms in pages:
                batch += [each for each in entries if is_older(each.written_ms, now_ms, limit_ms)]
                if len(batch) >= BATCH:
                    yield batch
                    batch = []
        if batch:
            yield batch

    async def each(self, items: Iterable[T], look: Callable[[T], Coroutine[None, None, S]]) -> Sequence[S]:
        """What looking at each of these tells, a bounded number at a time."""
        told: list[S] = []
        for batch in batches(items, AT_ONCE):
            self.go_on()
            told += await gather(*(look(item) for item in batch))
        return told

    async def judged(self, what: str, look: Coroutine[None, None, T]) -> T | None:
        """What looking at one object tells; None, and counted, where something can't be read: it is kept."""
        try:
            return await look
        except (CatalogError, CommitStateUnknown, MalformedJson) as error:
            self.stats.fails(f"{what}: {error}" if str(error) else what)
            return None

    async def collect(self, kind: Kind, found: Iterable[Listed]) -> None:
        """Counts these objects of the catalog's state, and deletes them."""
        gone = [*found]
        for each in gone:
            self.stats.collects(kind, size=each.size, written_ms=each.written_ms)
        await self.remove([each.key for each in gone])

    async def remove(self, keys: Sequence[str]) -> None:
        """Deletes objects of the catalog's state for certain; nothing in a dry run. Raises `StoreError`."""
        if not self.delete:
            return
        state = self.session.state
        for batch in batches(keys, MAX_DELETED):
            self.go_on()
            await delete_for_certain(batch, self._delete, state.pause)

    async def remove_in_order(self, keys: Sequence[str]) -> None:
        """The same, one after the other."""
        for key in keys if self.delete else ():
            await self.remove([key])

    async def _delete(self, keys: Sequence[str]) -> Mapping[str, Unknown | StoreError]:
        return (await self.session.state.store.delete_many(keys)).left
