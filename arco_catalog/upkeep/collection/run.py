"""The state that all parts of one collection share, and their listing, reading and deleting in bounded batches."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from arco_catalog.iceberg.errors import CatalogError, CommitStateUnknown
from arco_catalog.iceberg.json import MalformedJson
from arco_catalog.planning.collection import Kind, is_older
from arco_catalog.planning.upkeep_settings import Retention
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.deletion import delete_for_certain
from arco_catalog.state.listing import list_pages
from arco_catalog.state.paths import Paths
from arco_catalog.upkeep.collection.stats import CollectionStats
from storage_backends import MAX_DELETED, Found, Listed, StoreError, Unknown

T = TypeVar("T")
S = TypeVar("S")

AT_ONCE = 64
"""Objects that are read concurrently."""
BATCH = 2_000
"""Objects that a part of a run has in memory at a time."""


class Stopped(Exception):
    """`should_stop` returned true between two steps of a collection, which ends before it is done; the next run
    continues."""


@dataclass
class Run:
    """The state of one collection of one catalog, realm's registry or delegation service, with the session and the
    counts. Without `delete`, the collection counts objects and writes nothing."""

    session: Session
    retention: Retention
    delete: bool
    stats: CollectionStats = field(default_factory=CollectionStats)
    progress: Callable[[CollectionStats], None] = lambda stats: None
    should_stop: Callable[[], bool] = lambda: False

    @property
    def paths(self) -> Paths:
        """The paths of the collected catalog's objects in the store."""
        return self.session.state.paths

    def check_may_continue(self) -> None:
        """Calls `progress` with the counts, and checks between two steps whether the run may go on. Raises `Stopped` if
        `should_stop` returns true, and `StoreUnavailable` past the session's deadline."""
        self.progress(self.stats)
        if self.should_stop():
            raise Stopped
        self.check_deadline()

    def check_deadline(self) -> None:
        """Raises `StoreUnavailable` past the deadline: decisions may then be too old to act on
        (docs/design/collection.md#rule-12)."""
        self.session.check_deadline()

    async def read(self, key: str) -> Found | None:
        """Reads the object at a key of the store; None if it does not exist."""
        return await self.session.state.read(key)

    async def exists(self, key: str) -> bool:
        """Whether the store has an object at a key."""
        return isinstance(await self.session.state.store.get_range(key, 0, 1), Found)

    async def pages(self, prefix: str) -> AsyncGenerator[tuple[Sequence[Listed], int], None]:
        """Yields all objects under a prefix, in no order, in pages, each page with the store's time in milliseconds
        since 1970. Raises `Stopped`, and `StoreError`, also past the session's deadline."""
        async with aclosing(list_pages(self.session.state, prefix)) as pages:
            async for page in pages:
                self.stats.listed += len(page.entries)
                self.check_may_continue()
                yield page.entries, page.now_ms

    async def older(self, prefix: str, limit_ms: int) -> AsyncGenerator[Sequence[Listed], None]:
        """Yields the objects under a prefix that are older than `limit_ms` milliseconds by the store's clock, in no
        order, in bounded batches. Raises the errors of `pages`."""
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
        """Calls `look` for each item, a bounded number concurrently. Returns the results in order. Raises the errors of
        `look`, `Stopped` if the run must stop, and `StoreUnavailable` past the session's deadline."""
        results: list[S] = []
        for batch in batches(items, AT_ONCE):
            self.check_may_continue()
            results += await gather(*(look(item) for item in batch))
        return results

    async def unless_unreadable(self, name: str, look: Coroutine[None, None, T]) -> T | None:
        """Returns the result of `look`. If that raises `CatalogError`, `CommitStateUnknown` or `MalformedJson`, counts
        `name` as a record that can't be read and returns None: callers then keep the object."""
        try:
            return await look
        except (CatalogError, CommitStateUnknown, MalformedJson) as error:
            self.stats.fails(f"{name}: {error}" if str(error) else name)
            return None

    async def collect(self, kind: Kind, found: Iterable[Listed]) -> None:
        """Counts these objects of the catalog's state, and deletes them; a dry run only counts them. Raises
        `StoreError`, and `Stopped`."""
        gone = [*found]
        for each in gone:
            self.stats.collects(kind, size=each.size, written_ms=each.written_ms)
        await self.remove([each.key for each in gone])

    async def remove(self, keys: Sequence[str]) -> None:
        """Deletes objects of the catalog's state, and returns when none of them exists; a dry run deletes none. Raises
        `StoreError`, and `Stopped`."""
        if not self.delete:
            return
        state = self.session.state
        for batch in batches(keys, MAX_DELETED):
            self.check_may_continue()
            await delete_for_certain(batch, self._delete, state.pause)

    async def remove_in_order(self, keys: Sequence[str]) -> None:
        """Deletes objects of the catalog's state one after the other; a dry run deletes none. Raises `StoreError`, and
        `Stopped`."""
        for key in keys if self.delete else ():
            await self.remove([key])

    async def _delete(self, keys: Sequence[str]) -> Mapping[str, Unknown | StoreError]:
        """Deletes objects. Returns the ones that may be left, with the reasons."""
        self.check_deadline()  # also before a delete is sent again, after a pause in which the machine may sleep
        return (await self.session.state.store.delete_many(keys)).left
