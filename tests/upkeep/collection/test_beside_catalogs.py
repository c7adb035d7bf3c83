"""What a collection finds beside catalogs: the registry of a realm, and what the delegation service keeps."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.operations.catalogs import Inventory, Owner, take_inventory
from arco_catalog.operations.open import build_catalog
from arco_catalog.planning.collection import Kind
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Session, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.paths import REALM_FOLDER, SERVICE, Paths
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.spilling import Limits
from arco_catalog.state.task_log import put_hint
from arco_catalog.upkeep.collection.collect import collect, collect_all
from arco_catalog.upkeep.collection.stats import CollectionStats
from arco_catalog.upkeep.fsck.check import check_service
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.fsck.realm import check_realm
from storage_backends import ABSENT
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.foreign_tables import foreign_table
from tests.support.realm_service import RealmApp
from tests.upkeep.delegation_service.conftest import Services
from tools.support.request_bodies import schema

URL = "memory:///"
REALM = Paths("", REALM_FOLDER)


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return Services(tmp_path)


def until(runtime: Runtime) -> OperationRequest:
    return OperationRequest("SCHEDULE", "", "", None, "collector", {"kind": "Collector"}, runtime.now_ms() + DAY_MS)


async def collected(inventory: Inventory, runtime: Runtime) -> Mapping[tuple[Owner, str], Mapping[Kind, int]]:
    """How many objects of each kind a collection of everything deletes, for each that has state."""

    found = collect_all(inventory, until(runtime), runtime, lambda session: collect(session, delete=True))
    return {
        (each.owner, each.name): {kind: of.count for kind, of in stats.kinds.items()} async for each, stats in found
    }


class Realms:
    """A realm whose index does not fit into HEAD, with a catalog."""

    async def start(self) -> "Realms":
        settings = Settings("-", spill=Limits(embedded=1_500, segment=1_500, least=1_000))
        self.app = await RealmApp(settings=settings).start()
        assert isinstance(self.app.store, MemoryStore)
        assert isinstance(self.app.clock, FakeRuntime)
        self.store, self.clock = self.app.store, self.app.clock
        await self.app.catalog("lake")
        return self

    def catalog(self) -> Catalog:
        return build_catalog(Settings("wh"), self.store, URL, (), self.clock)

    async def collect(self) -> Mapping[tuple[Owner, str], Mapping[Kind, int]]:
        return await collected(await take_inventory(self.catalog(), URL), self.clock)

    async def codes(self) -> list[Code]:
        registry = (await take_inventory(self.catalog(), URL)).registries[0].open()
        return [each.code async for each in check_realm(Examination(registry.session(until(self.clock), ALLOW_ALL)))]


async def test_the_registry_of_a_realm_keeps_what_is_current_and_of_its_history_what_is_young() -> None:
    realm = await Realms().start()
    for number in range(12):
        await realm.app.principal(f"p{number}")
    realm.clock.ms += 91 * DAY_MS
    await realm.app.principal("late")
    before = {kind: len(realm.store.keys(kind)) for kind in (REALM.registry_commits, REALM.index_segments)}

    realm.clock.ms += 8 * DAY_MS
    counts = Counter((await realm.collect())[Owner.REALM, REALM.state])
    realm.clock.ms += 9 * DAY_MS
    counts += Counter((await realm.collect())[Owner.REALM, REALM.state])

    assert counts[Kind.REGISTRY_COMMIT] > before[REALM.registry_commits] - 10
    assert counts[Kind.REGISTRY_SEGMENT] > 0
    assert len(realm.store.keys(REALM.registry_commits)) < 10
    assert await realm.codes() == []
    principals = (await realm.app.ok("GET", "principals"))["principals"]
    assert isinstance(principals, list)
    assert len(principals) == 14
    client = await realm.app.principal("later", {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"})
    assert (await client.post("/v1/lake/namespaces", {"namespace": ["db"]})).status == 200
    assert (await client.post("/v1/lake/namespaces/db/tables", {"name": "t", "schema": schema("a")})).status == 200


async def test_folders_of_catalogs_are_no_part_of_their_realm() -> None:
    realm = await Realms().start()
    await realm.app.ok("DELETE", "catalogs/lake")
    folder = realm.store.keys(f"{REALM.state}/catalogs/")
    realm.clock.ms += 400 * DAY_MS
    await realm.collect()
    assert realm.store.keys(f"{REALM.state}/catalogs/") == folder


async def codes_of_service(services: Services) -> list[Code]:
    session = services.service.state.session(until(services.runtime), ALLOW_ALL)
    return [each.code async for each in check_service(Examination(session))]


async def test_tasks_and_markers_of_the_delegation_service_go_by_the_ages_of_a_catalog_s(services: Services) -> None:
    table = foreign_table(services.folder)
    task = await services.submit(table, key=services.key())
    await services.service.ended(task.id)
    inventory = Inventory.of_one(services.ours.another().catalog)
    assert (Owner.SERVICE, SERVICE.state) in await collected(inventory, services.runtime)

    services.runtime.ms += 3 * DAY_MS
    counts = (await collected(inventory, services.runtime))[Owner.SERVICE, SERVICE.state]
    assert counts == {Kind.MARKER: 1}
    assert await codes_of_service(services) == []

    services.runtime.ms += 30 * DAY_MS
    counts = (await collected(inventory, services.runtime))[Owner.SERVICE, SERVICE.state]
    assert counts == {Kind.TASK: 1}
    assert services.store.keys(SERVICE.state) == []
    assert list(await collected(inventory, services.runtime)) == [(Owner.CATALOG, "wh")]


async def test_a_task_of_the_service_that_has_not_ended_stays(services: Services) -> None:
    task = await services.submit(foreign_table(services.folder))
    await services.service.close()
    services.runtime.ms += 400 * DAY_MS
    await collected(Inventory.of_one(services.ours.another().catalog), services.runtime)
    assert services.store.keys(SERVICE.task(task.id)) != []


async def test_what_the_service_does_not_write_at_the_store_s_root_is_reported(services: Services) -> None:
    await services.purge(foreign_table(services.folder))
    assert await codes_of_service(services) == []
    for key in (SERVICE.manifest, SERVICE.pointer("x"), f"{SERVICE.markers}aa/bb/no-slot", f"{SERVICE.tasks}no-task"):
        await services.store.put(key, b"{}", ABSENT)
    assert await codes_of_service(services) == [Code.OBJECT_UNKNOWN] * 4


async def test_a_task_of_the_service_that_waits_without_a_hint_is_reported(services: Services) -> None:
    task = await services.submit(foreign_table(services.folder))
    await services.service.close()
    for key in services.store.keys(SERVICE.open_tasks):
        await services.store.delete(key)
    services.runtime.ms += DAY_MS
    assert await codes_of_service(services) == [Code.HINT_MISSING]
    await put_hint(
        services.service.state.session(until(services.runtime), ALLOW_ALL).state, task.id, services.runtime.ms
    )
    assert await codes_of_service(services) == []


async def test_a_delegation_service_that_cannot_be_collected_is_reported() -> None:
    realm = await Realms().start()
    inventory = await take_inventory(realm.catalog(), URL)

    async def collection(session: Session) -> CollectionStats:
        raise InternalError("HEAD is corrupt")

    found = [each async for each in collect_all(inventory, until(realm.clock), realm.clock, collection)]
    assert [(each.owner, stats.unreadable_count) for each, stats in found][-1] == (Owner.SERVICE, 1)


async def test_the_margin_of_a_run_leaves_every_owner_time_to_be_collected() -> None:
    realm = await Realms().start()
    worked: list[int] = []

    async def collection(session: Session) -> CollectionStats:
        worked.append(session.request.deadline_ms - realm.clock.now_ms() - 60_000)
        return CollectionStats()

    inventory = await take_inventory(realm.catalog(), URL)
    request = replace(until(realm.clock), deadline_ms=realm.clock.now_ms() + 70_000)
    async for _ in collect_all(inventory, request, realm.clock, collection, margin_ms=60_000):
        pass

    assert len(worked) == 3
    assert min(worked) > 0
