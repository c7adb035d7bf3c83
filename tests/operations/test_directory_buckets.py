"""Nothing relies on the order of a listing, or lists what is no folder: the directory buckets of S3 Express list in no
order, and only prefixes that end in a slash (docs/design/store.md#rule-4)."""

import pytest

from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import Cursor, Page, StoreError
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
