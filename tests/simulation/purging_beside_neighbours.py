"""Purges beside a table that has taken a file of the purged one, and whose manifests are rewritten while it is asked
(docs/design/purge.md#rule-15) or is restored (docs/design/purge.md#rule-28); and of a table with a manifest that is
damaged (docs/design/purge.md#rule-12)."""

import asyncio
from collections.abc import Awaitable, Iterable

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.load import load_table
from storage_backends import ANY, Found, Missing, ObjectStore
from tests.simulation.purging import AT_ONCE, FILES, IN_A_MINUTE, Purging, scenario
from tests.support.table_files import commit_files
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.wrapped_stores import DelayingStore

REWRITES = 6
RESTORED_AFTER_S = 90.0
"""A minute after the drop its purge begins, and then it waits for a minute at least."""


class SlowLists(DelayingStore):
    """A store from which manifest lists take their time, and nothing else does."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner, 0.0)
        self._lists = DelayingStore(inner, 1.0)

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        to = self._lists if "/snap-" in key else self._inner
        return await to.get_range(key, start, length)


async def rewrite(purging: Purging, fixture: CatalogFixture, file: str) -> None:
    """What an engine does that rewrites the manifests of `u`, and expires what was before."""
    table = await load_table(fixture.session(), NS, "u")
    document = loads(table.metadata)
    assert isinstance(document, dict)
    folder = table.metadata_location.removeprefix("memory:///").rpartition("/")[0]
    before = [entry.key for entry in (await fixture.store.list(f"{folder}/")).entries if entry.key.endswith(".avro")]
    await commit_files(fixture, table, [file], name="u")
    expired: JsonObject = {"action": "remove-snapshots", "snapshot-ids": [document["current-snapshot-id"]]}
    await fixture.commit({"requirements": [], "updates": [expired]}, "u")
    purging.auditor.expired.update(before)
    for key in before:
        await fixture.store.delete(key)


@scenario(AT_ONCE, drops=False)
def a_purge_and_a_neighbour_whose_manifests_are_rewritten(purging: Purging) -> Iterable[Awaitable[object]]:
    key = min(key for key in purging.world.keys(FILES) if key.endswith(".parquet"))
    file = f"memory:///{key}"

    async def rewritten(fixture: CatalogFixture) -> None:
        for _ in range(REWRITES):
            await rewrite(purging, fixture, file)

    async def played() -> None:
        await commit_files(purging.setup, await purging.setup.table("u"), [file], name="u")
        purging.auditor.kept.add(key)
        await purging.drop()
        async with asyncio.TaskGroup() as group:
            group.create_task(purging.worker("w1", pause_s=2, through=SlowLists))
            group.create_task(purging.client("c1", 1, rewritten))

    return [played()]


@scenario(IN_A_MINUTE, drops=False)
def a_purge_and_a_neighbour_whose_manifest_is_restored(purging: Purging) -> Iterable[Awaitable[object]]:
    key = min(key for key in purging.world.keys(FILES) if key.endswith(".parquet"))

    async def played() -> None:
        before = {*purging.world.keys(FILES)}
        await commit_files(purging.setup, await purging.setup.table("u"), [f"memory:///{key}"], name="u")
        purging.auditor.kept.add(key)
        [manifest] = [each for each in purging.world.keys(FILES) if each.endswith("-m0.avro") and each not in before]
        stored = await purging.setup.store.get(manifest)
        assert isinstance(stored, Found)
        purging.auditor.expired.add(manifest)
        await purging.setup.store.delete(manifest)
        await purging.drop()

        async def restored() -> None:
            await purging.world.runtime.sleep(RESTORED_AFTER_S)
            await purging.setup.store.put(manifest, stored.body, ANY)

        async with asyncio.TaskGroup() as group:
            group.create_task(purging.worker("w1", pause_s=2))
            group.create_task(restored())

    return [played()]


@scenario(AT_ONCE, drops=False)
def a_purge_of_a_table_with_a_damaged_manifest(purging: Purging) -> Iterable[Awaitable[object]]:
    async def played() -> None:
        damaged = min(key for key in purging.world.keys(FILES) if key.endswith("-m0.avro"))
        await purging.setup.store.put(damaged, b"damaged", ANY)
        await purging.drop()
        await purging.worker("w1", pause_s=2)

    return [played()]


NEIGHBOURS = [
    a_purge_and_a_neighbour_whose_manifests_are_rewritten,
    a_purge_and_a_neighbour_whose_manifest_is_restored,
    a_purge_of_a_table_with_a_damaged_manifest,
]
