"""Whatever goes over a deployment goes over each of its catalogs, in one realm, in several, and where there is none."""

import json
from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.errors import BadRequest, InternalError, NotFound
from arco_catalog.operations.catalogs import DeployedCatalog, deployed_catalogs, take_inventory
from arco_catalog.operations.open import build_catalog
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.protocol.catalog import Catalog, Session, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.upkeep.jobs import Workplace, run_job
from arco_catalog.upkeep.reconcile import reconcile
from arco_catalog.upkeep.reconcile_all import reconcile_all
from storage_backends import ANY
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import RealmApp
from tools.support.request_bodies import schema, set_property
from tools.support.wrapped_stores import CountingStore

URL = "memory:///"


def catalog_over(app: RealmApp) -> Catalog:
    assert app.store is not None
    return build_catalog(Settings("wh"), app.store, URL, (), app.clock)


async def deployed(app: RealmApp, *realms: str) -> Sequence[DeployedCatalog]:
    return await deployed_catalogs(catalog_over(app), URL, realms)


async def commit_a_table(app: RealmApp, catalog: str) -> None:
    base = f"/v1/{catalog}/namespaces"
    await app.principal(f"owner-{catalog}", {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}, catalog=catalog)
    client = app.client(f"owner-{catalog}")
    assert (await client.post(base, {"namespace": ["db"]})).status == 200
    assert (await client.post(f"{base}/db/tables", {"name": "t", "schema": schema("a")})).status == 200
    assert (await client.post(f"{base}/db/tables/t", set_property("p", "1"))).status == 200


@pytest.fixture
async def app() -> RealmApp:
    """A realm with two catalogs, with a commit in each."""
    made = await RealmApp().start()
    for name in ("lake", "pond"):
        await made.catalog(name)
        await commit_a_table(made, name)
    return made


def request_until(app: RealmApp, ms: int) -> OperationRequest:
    return OperationRequest("SCHEDULE", "", "", None, "reconciler", {"kind": "Reconciler"}, app.clock.now_ms() + ms)


async def test_a_realm_s_catalogs_are_all_of_its_own(app: RealmApp) -> None:
    found = await deployed(app)

    assert [(catalog.name, catalog.realm) for catalog in found] == [("lake", "default"), ("pond", "default")]
    roots = {catalog.open().paths.root for catalog in found}
    assert len(roots) == 2


async def test_one_call_lists_the_catalogs_of_a_realm(app: RealmApp) -> None:
    assert app.store is not None
    app.store = counting = CountingStore(app.store)
    with counting.measure() as measured:
        await deployed(app)
    assert measured.calls == 1


async def test_a_store_without_a_realm_has_the_one_catalog() -> None:
    catalog = build_catalog(Settings("wh"), MemoryStore(), URL, (), FakeRuntime())

    [found] = await deployed_catalogs(catalog, URL)

    assert (found.name, found.realm) == ("wh", None)
    assert found.open() is catalog


async def test_the_catalogs_of_several_realms_have_the_names_of_their_realms() -> None:
    app = await RealmApp(("r", "s")).start()
    base = app.base("lake")
    await app.catalog("lake", base=base)

    assert [(catalog.realm, catalog.name) for catalog in await deployed(app, "s", "r")] == [("r", "lake")]
    with pytest.raises(NotFound, match="Realm t does not exist in memory:///"):
        await deployed(app, "r", "t")


async def test_each_catalog_is_walked_and_has_its_share_of_the_time(app: RealmApp) -> None:
    assert app.store is not None
    lost = [entry.key for entry in (await app.store.list("")).entries if "/iceberg/committed/" in entry.key]
    assert len(lost) == 4
    for key in lost:
        await app.store.delete(key)
    shares: list[int] = []

    async def walk(session: Session) -> ReconcileStats:
        shares.append(session.request.deadline_ms - app.clock.now_ms())
        return await reconcile(session)

    request = request_until(app, 60_000)
    walked = [(each.name, stats) async for each, stats in reconcile_all(await deployed(app), request, app.clock, walk)]

    assert [(name, stats.written, stats.stopped) for name, stats in walked] == [("lake", 2, False), ("pond", 2, False)]
    assert shares[0] == 30_000
    assert 55_000 < shares[1] <= 60_000


async def test_the_margin_of_a_run_leaves_every_catalog_time_to_be_walked(app: RealmApp) -> None:
    worked: list[int] = []

    async def walk(session: Session) -> ReconcileStats:
        worked.append(session.request.deadline_ms - app.clock.now_ms() - 60_000)
        return ReconcileStats()

    request, catalogs = request_until(app, 70_000), await deployed(app)
    every = [*catalogs] * 10  # a fixed clock: no walk takes time
    async for _ in reconcile_all(every, request, app.clock, walk, margin_ms=60_000):
        pass

    assert worked[0] > 400
    assert min(worked) > 0


async def test_a_catalog_that_cannot_be_opened_is_reported_and_holds_up_no_other(app: RealmApp) -> None:
    assert app.store is not None
    catalog = build_catalog(Settings("wh"), app.store, "memory:///pond", (), app.clock)
    found = await deployed_catalogs(catalog, "memory:///pond")

    async def walk(session: Session) -> ReconcileStats:
        return ReconcileStats(walked=1)

    request = request_until(app, 60_000)
    walked = {each.name: stats async for each, stats in reconcile_all(found, request, app.clock, walk)}

    assert (walked["lake"].stopped, walked["lake"].unreadable_count, walked["pond"].walked) == (True, 1, 1)
    assert walked["lake"].unreadable == [
        "catalog lake: The locations of catalog lake are outside those that this server may use: the operator "
        "allows others by --allowed-location of the server or command, or ARCO_ALLOWED_LOCATIONS; where realms share a "
        "store, the operator may allow none inside a catalog's locations"
    ]


async def test_a_queued_job_walks_every_catalog_or_the_one_that_has_the_entity(app: RealmApp) -> None:
    assert app.store is not None
    lost = [entry.key for entry in (await app.store.list("")).entries if "/iceberg/committed/" in entry.key]
    pointers = [entry.key for entry in (await app.store.list("")).entries if "/iceberg_pointers/" in entry.key]
    for key in lost:
        await app.store.delete(key)
    workplace = Workplace(
        await take_inventory(catalog_over(app), URL), request_until(app, 60_000), app.clock, lambda: False
    )

    async def restored() -> list[str]:
        assert app.store is not None
        there = {entry.key for entry in (await app.store.list("")).entries}
        return [key for key in lost if key in there]

    pond = max(pointers)
    message = {"version": 1, "work": "reconcile", "entity": pond.rpartition("/")[2].removesuffix(".json")}
    await run_job(json.dumps(message), workplace)
    assert len(found := await restored()) == 2
    assert {key.partition("/_catalog/")[0] for key in found} == {pond.partition("/_catalog/")[0]}

    await run_job(json.dumps({"version": 1, "work": "reconcile"}), workplace)
    assert await restored() == lost

    with pytest.raises(BadRequest, match="no table or view has the entity id"):
        await run_job(json.dumps({**message, "entity": "01KAN0Y7Q2M3C4D5E6F7G8H9JK"}), workplace)


async def test_a_queued_job_finds_an_entity_behind_a_catalog_with_a_corrupt_head(app: RealmApp) -> None:
    assert app.store is not None
    keys = [entry.key for entry in (await app.store.list("")).entries]
    [pond] = [key for key in keys if "/iceberg_pointers/" in key][-1:]
    [lost] = [key for key in keys if "/iceberg/committed/" in key and key.partition("/_catalog/")[0] in pond][-1:]
    workplace = Workplace(
        await take_inventory(catalog_over(app), URL), request_until(app, 60_000), app.clock, lambda: False
    )
    await app.store.delete(lost)
    heads = [key for key in keys if key.endswith("/core/manifest.json") and key.partition("/_catalog/")[0] not in pond]
    for key in heads:
        if "/_realm/" not in key:
            await app.store.put(key, b"{", ANY)
    message = {"version": 1, "work": "reconcile", "entity": pond.rpartition("/")[2].removesuffix(".json")}

    await run_job(json.dumps(message), workplace)

    assert lost in [entry.key for entry in (await app.store.list("")).entries]
    with pytest.raises(InternalError):
        await run_job(json.dumps({**message, "entity": "01KAN0Y7Q2M3C4D5E6F7G8H9JK"}), workplace)
