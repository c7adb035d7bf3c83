"""Nothing relies on the order of a listing, or lists what is no folder: the directory buckets of S3 Express list in no
order, and only prefixes that end in a slash (docs/design/store.md#rule-4)."""

import pytest

from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.state.first_page import first_entries
from arco_catalog.state.lost_head import MAX_READ_COMMITS, HeadLost
from arco_catalog.state.paths import Paths
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import ABSENT, Cursor, Found, Page, StoreError
from storage_backends.memory import MemoryStore
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property


class DirectoryBucket(MemoryStore):
    """One that lists as they do. Each page comes backwards."""

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        if prefix and not prefix.endswith("/"):
            raise StoreError(f"a directory bucket lists folders only, not {prefix!r}")
        page = await super().list(prefix, after)
        return Page(tuple(reversed(page.entries)), page.after, page.now_ms)


class BeginsWithAnEmptyPage(MemoryStore):
    """As a container of Azure may, which answers with what one of its servers has."""

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        if after is None:
            return Page((), Cursor(prefix), self._now_ms())
        return await super().list(prefix, None if after == prefix else after)


async def test_a_catalog_lists_folders_in_no_order() -> None:
    store = DirectoryBucket()
    fixture = CatalogFixture(store)
    await fixture.namespace("db")
    for name in ("a", "b", "c"):
        await fixture.table(name, key=fixture.key())
        await fixture.commit(set_property("x", name), name, key=fixture.key())

    stats = await reconcile(fixture.another().session())
    found = await inspect_relation(fixture.session(), NS, "b")

    assert (stats.pointers, stats.orphaned, stats.unreadable) == (3, 0, [])
    assert found["all_markers_seen"] is True
    with pytest.raises(StoreError, match="folders only"):
        await store.list("wh/_cat")


@pytest.mark.parametrize("kind", [DirectoryBucket, BeginsWithAnEmptyPage])
async def test_a_lost_head_is_noticed_beside_commits_that_raced_to_be_the_first(kind: type[MemoryStore]) -> None:
    store, paths = kind(), Paths("wh")
    await CatalogFixture(store).namespace("db")
    first = await store.get(next(iter(store.keys(paths.registry_commits))))
    assert isinstance(first, Found)
    for number in range(MAX_READ_COMMITS):
        await store.put(paths.registry_commit(f"00{number}"), first.body, ABSENT)
    await CatalogFixture(store).table("t")
    await store.delete(paths.manifest)

    with pytest.raises(HeadLost):
        await CatalogFixture(store).namespace("another")


async def test_what_exists_is_found_behind_an_empty_page() -> None:
    store = BeginsWithAnEmptyPage()
    await CatalogFixture(store).namespace("db")
    folder = f"{Paths('wh').state}/"
    assert (await first_entries(store, folder))[0].key.startswith(folder)
    assert not await first_entries(store, "another/")
