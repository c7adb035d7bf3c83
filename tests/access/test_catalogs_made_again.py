"""Requests whose catalog is dropped and made again meanwhile: they never change the new one by rights on the old."""

from collections.abc import Awaitable, Callable

import pytest

from arco_catalog.iceberg.json import JsonObject
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import RealmApp, on_catalog, table_request
from tests.support.scripted_store import Rule, ScriptedStore, put
from tools.support.asgi_client import Client


class Servers:
    """Two servers of one realm with a catalog `lake`; `other` is a client of the second."""

    def __init__(self) -> None:
        clock = FakeRuntime()
        self.store = ScriptedStore(clock.now_ms)
        self.realm = RealmApp(clock=clock, store=self.store)
        self.other: Client

    async def start(self) -> "Servers":
        await self.realm.start()
        self.other = self.realm.client("root", app=self.realm.serve())
        await self.realm.catalog("lake")
        return self

    async def make_again(self) -> None:
        """Drops the catalog, and makes another of its name elsewhere."""
        assert (await self.realm.manage("DELETE", "catalogs/lake", client=self.other)).status == 204
        await self.realm.catalog("lake", client=self.other, base="memory:///lake2")
        await self.realm.ok(
            "PUT",
            "catalogs/lake/catalog-roles/catalog_admin/grants",
            {"grant": on_catalog("CATALOG_MANAGE_CONTENT")},
            client=self.other,
        )
        made = await self.other.post("/v1/lake/namespaces", {"namespace": ["db"], "properties": {}})
        assert made.status == 200

    def before(self, commit: bytes, meanwhile: Callable[[], Awaitable[None]]) -> None:
        """Lets this happen before the first commit of the realm with these bytes."""
        self.store.rules = [Rule(put("_realm/core/commits/", commit), first=meanwhile, times=1)]


@pytest.fixture
async def servers() -> Servers:
    return await Servers().start()


async def test_a_creation_is_answered_with_the_catalog_that_it_made(servers: Servers) -> None:
    assert (await servers.realm.manage("DELETE", "catalogs/lake")).status == 204

    async def change() -> None:
        properties: JsonObject = {"default-base-location": "memory:///lake", "owner": "another"}
        await servers.realm.ok("PUT", "catalogs/lake", {"properties": properties}, client=servers.other)

    made = [Rule(put("_realm/core/manifest.json", b"create-catalog"), then=change, times=1)]
    servers.store.rules = made
    storage: JsonObject = {"storageType": "FILE", "allowedLocations": ["memory:///lake"]}
    catalog: JsonObject = {
        "name": "lake",
        "type": "INTERNAL",
        "properties": {"default-base-location": "memory:///lake"},
        "storageConfigInfo": storage,
    }
    answer = await servers.realm.ok("POST", "catalogs", {"catalog": catalog})
    assert (answer["entityVersion"], answer["properties"]) == (2, catalog["properties"])


async def test_a_drop_is_refused_while_purges_are_yet_to_begin(servers: Servers) -> None:
    await servers.realm.ok(
        "PUT",
        "catalogs/lake/catalog-roles/catalog_admin/grants",
        {"grant": on_catalog("CATALOG_MANAGE_CONTENT")},
    )
    root = servers.realm.root
    assert (await root.post("/v1/lake/namespaces", {"namespace": ["db"], "properties": {}})).status == 200
    assert (await root.post("/v1/lake/namespaces/db/tables", table_request("t"))).status == 200
    assert (await root.send("DELETE", "/v1/lake/namespaces/db/tables/t?purgeRequested=true", b"", {})).status == 204
    assert (await root.send("DELETE", "/v1/lake/namespaces/db", b"", {})).status == 204
    answer = await servers.realm.manage("DELETE", "catalogs/lake")
    assert answer.status == 409
    assert b"db.t is purged by task" in answer.body
    assert (await servers.realm.manage("GET", "catalogs/lake")).status == 200


async def test_a_drop_leaves_the_catalog_alone_that_was_made_under_the_name_since(servers: Servers) -> None:
    servers.before(b"drop-catalog", servers.make_again)
    assert (await servers.realm.manage("DELETE", "catalogs/lake")).status == 204
    assert (await servers.other.get("/v1/lake/namespaces/db")).status == 200


async def test_a_drop_that_another_server_has_finished_is_done(servers: Servers) -> None:
    async def drop() -> None:
        assert (await servers.realm.manage("DELETE", "catalogs/lake", client=servers.other)).status == 204

    servers.before(b"drop-catalog", drop)
    assert (await servers.realm.manage("DELETE", "catalogs/lake")).status == 204
    assert (await servers.realm.ok("GET", "catalogs"))["catalogs"] == []


async def test_a_change_needs_rights_on_the_catalog_that_has_the_name(servers: Servers) -> None:
    ann = await servers.realm.principal("ann", on_catalog("CATALOG_MANAGE_METADATA"))
    servers.before(b"update-catalog", servers.make_again)
    body: JsonObject = {
        "currentEntityVersion": 1,
        "properties": {"default-base-location": "memory:///lake", "owner": "ann"},
    }
    assert (await servers.realm.manage("PUT", "catalogs/lake", body, client=ann)).status == 403
    properties = (await servers.realm.ok("GET", "catalogs/lake"))["properties"]
    assert properties == {"default-base-location": "memory:///lake2"}
