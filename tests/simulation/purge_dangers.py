"""What endangers a purge, one thing at a time: commits that were on their way, a store whose clock is set back, clients
who name the place or its files, and clients who may still write there (docs/design/purge.md)."""

from collections.abc import Awaitable, Iterable
from dataclasses import replace

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import Drop
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.kinds import TABLES
from arco_catalog.planning.registry_change import Change
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.state.needs import Steps
from storage_backends import ANY, ObjectStore, Outcome, When
from tests.simulation.purging import AT_ONCE, FILES, MINUTE, PLACE, POLICIES, SHORT, Purging, scenario
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, set_property
from tools.support.wrapped_stores import DelayingStore

WHOLE = Settings("wh", purge=PurgeSettings(undrop_window_ms=0, whole_location=True, vended_ms=MINUTE))
TRUSTING = Settings("wh", purge=PurgeSettings(undrop_window_ms=0, trust_locations=True))


class UnmarkedDrop(Drop):
    """A drop whose process dies behind its registry commit: nobody marks the pointer."""

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        change = yield from super().change(read_set, attempt)
        return replace(change, marks=())


class SlowFiles(DelayingStore):
    """A store to which metadata files take their time, and nothing else does."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner, 0.0)
        self._files = DelayingStore(inner, 9.0)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        to = self._files if key.endswith(".metadata.json") else self._inner
        return await to.put(key, body, when)


def place(purging: Purging) -> str:
    """Where the table lies."""
    return purging.file.partition("/metadata/")[0]


@scenario(AT_ONCE, drops=False)
def a_purge_and_a_commit_that_was_on_its_way(purging: Purging) -> Iterable[Awaitable[object]]:
    async def drop(fixture: CatalogFixture) -> object:
        return await run(fixture.session(), UnmarkedDrop(fixture.session(), TABLES, NS, "t", purge=True))

    async def commit(fixture: CatalogFixture) -> object:
        slow = CatalogFixture(SlowFiles(fixture.store), fixture.runtime, fixture.settings)
        return await commit_table(slow.session(), NS, "t", set_property("a", "1"))

    return [
        purging.client("c1", 0.3, commit),
        purging.client("d1", 2, drop),
        purging.worker("w1", busy_s=15, pause_s=0.2),
    ]


@scenario(AT_ONCE, SHORT)
def a_purge_and_a_store_whose_clock_is_set_back(purging: Purging) -> Iterable[Awaitable[object]]:
    async def set_back() -> None:
        world = purging.world
        await world.runtime.sleep(60 + 2 * world.runtime.random())
        world.set_store_clock(-30_000)
        await world.runtime.sleep(40)
        world.set_store_clock(0)

    async def later(name: str) -> None:
        await purging.world.runtime.sleep(60)
        await purging.worker(name, pause_s=0.5, busy_s=5)

    return [later("w1"), later("w2"), set_back()]


@scenario(WHOLE)
def a_purge_and_a_create_that_is_staged_at_its_place(purging: Purging) -> Iterable[Awaitable[object]]:
    async def stage(fixture: CatalogFixture) -> object:
        body: JsonObject = {"name": "u", "schema": schema("x"), "stage-create": True, "location": place(purging)}
        answer = await create_table(fixture.session(body), NS, body)
        key = f"{place(purging).removeprefix('memory:///')}/data/staged.parquet"
        purging.auditor.kept.add(key)
        await fixture.store.put(key, b"new", ANY)
        return answer

    return [purging.worker("w1", pause_s=2), purging.worker("w2"), purging.client("c1", 3, stage, tries=3)]


@scenario(WHOLE, location=PLACE)
def a_purge_of_a_place_that_a_client_chose(purging: Purging) -> Iterable[Awaitable[object]]:
    async def write(fixture: CatalogFixture) -> object:
        key = f"{FILES}place/somebody-elses.parquet"
        purging.auditor.kept.add(key)
        return await fixture.store.put(key, b"not the table's", ANY)

    return [purging.client("c1", 0, write), purging.worker("w1", pause_s=2)]


@scenario(WHOLE, vends=True)
def a_purge_and_a_client_that_still_has_credentials(purging: Purging) -> Iterable[Awaitable[object]]:
    async def write(fixture: CatalogFixture) -> object:
        key = f"{place(purging).removeprefix('memory:///')}/data/late.parquet"
        return await fixture.store.put(key, b"late", ANY)

    return [purging.worker("w1", pause_s=2), purging.worker("w2"), purging.client("c1", 60, write)]


@scenario(TRUSTING, POLICIES)
def a_purge_and_a_commit_that_takes_a_manifest_list_of_it(purging: Purging) -> Iterable[Awaitable[object]]:
    key = min(key for key in purging.world.keys(FILES) if "/metadata/snap-" in key)

    async def take(fixture: CatalogFixture) -> object:
        await fixture.table("u")
        snapshot: JsonObject = {
            "snapshot-id": 1,
            "sequence-number": 1,
            "timestamp-ms": fixture.runtime.now_ms(),
            "manifest-list": f"memory:///{key}",
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        body: JsonObject = {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": snapshot}]}
        answer = await commit_table(fixture.session(body), NS, "u", body)
        if purging.world.peek(key) is not None:  # else it was taken after the purge
            purging.auditor.kept.add(key)
        return answer

    return [purging.client("c1", 2, take), purging.worker("w1", pause_s=2), purging.worker("w2")]


DANGERS = [
    a_purge_and_a_commit_that_was_on_its_way,
    a_purge_and_a_store_whose_clock_is_set_back,
    a_purge_and_a_create_that_is_staged_at_its_place,
    a_purge_of_a_place_that_a_client_chose,
    a_purge_and_a_client_that_still_has_credentials,
    a_purge_and_a_commit_that_takes_a_manifest_list_of_it,
]
