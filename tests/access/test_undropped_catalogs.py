"""A catalog that was dropped is brought back under a name, with its roles, grants and dropped tables."""

import pytest

from arco_catalog.http.realms import catalog_of
from arco_catalog.iceberg.errors import (
    AlreadyExists,
    BadRequest,
    CatalogChanged,
    CommitFailed,
    CommitStateUnknown,
    NotFound,
)
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.management import catalog_drops
from arco_catalog.operations.management.catalog_drops import end_catalog, remove_catalog
from arco_catalog.operations.management.catalog_undrop import UndropResult
from arco_catalog.operations.management.catalogs import find_entry
from arco_catalog.operations.realms import Realm
from arco_catalog.operations.stray_catalogs import UndropRequest, find_stray, stray_catalogs, undrop_catalog
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.realm import CatalogEntry
from storage_backends import StoreUnavailable
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import RealmApp, on_catalog, table_request
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, anything, put
from tools.support.asgi_client import Client

HOUR_MS = 3_600_000


class Lake:
    """A realm with a catalog `lake`, in which `ann` may do everything."""

    def __init__(self) -> None:
        self.clock = FakeRuntime()
        self.store = ScriptedStore(self.clock.now_ms)
        self.app = RealmApp(clock=self.clock, store=self.store)
        self.ann: Client

    async def start(self) -> "Lake":
        await self.app.start()
        await self.app.catalog("lake")
        self.ann = await self.app.principal("ann", on_catalog("CATALOG_MANAGE_CONTENT"))
        return self

    @property
    def realm(self) -> Realm:
        """The realm as a fresh process opens it."""
        return self.app.realms()["r"]

    @property
    def session(self) -> Session:
        return self.app.session(self.realm)

    async def entry(self, name: str = "lake") -> CatalogEntry:
        return await find_entry(self.session, name)

    async def drop_table(self, name: str, *, purge: bool) -> None:
        """Makes a table, and drops it with its namespace."""
        namespace: JsonObject = {"namespace": ["db"], "properties": {}}
        assert (await self.ann.post("/v1/lake/namespaces", namespace)).status == 200
        assert (await self.ann.post("/v1/lake/namespaces/db/tables", table_request(name))).status == 200
        target = f"/v1/lake/namespaces/db/tables/{name}?purgeRequested={str(purge).lower()}"
        assert (await self.ann.send("DELETE", target, b"", {})).status == 204
        assert (await self.ann.send("DELETE", "/v1/lake/namespaces/db", b"", {})).status == 204

    async def drop(self, *, cancel_purges: bool = False) -> str:
        """Drops the catalog. Returns its folder."""
        root = (await self.entry()).root
        if cancel_purges:
            realm = self.realm
            catalog = await catalog_of(realm, realm.lookups(), "lake", identity=None)
            await end_catalog(catalog.session(self.session.request, ALLOW_ALL), await self.entry(), cancel_purges=True)
        assert (await self.app.manage("DELETE", "catalogs/lake")).status == 204
        return root

    async def restore(
        self, root: str, name: str = "lake", properties: JsonObject | None = None, storage: JsonObject | None = None
    ) -> UndropResult:
        realm = self.realm
        session = self.app.session(realm)
        request = UndropRequest(name, None, properties or {}, storage or {})
        return await undrop_catalog(realm, session, await find_stray(realm, session, root), request)


@pytest.fixture
async def lake() -> Lake:
    return await Lake().start()


async def test_a_restored_catalog_has_its_roles_and_its_dropped_tables(lake: Lake) -> None:
    await lake.drop_table("t", purge=False)
    before = await lake.entry()
    root = await lake.drop()
    assert (await lake.ann.get("/v1/lake/namespaces")).status == 404
    await lake.restore(root)
    after = await lake.entry()
    assert (after.properties, after.storage, after.root) == (before.properties, before.storage, root)
    assert after.entity != before.entity
    assert (await lake.ann.post("/v1/lake/namespaces", {"namespace": ["db"], "properties": {}})).status == 200
    listed = await lake.ann.get("/v1/lake/namespaces/db/tables?deleted=true")
    assert listed.status == 200, listed.body


async def test_a_drop_that_closed_the_catalog_and_failed_then_has_an_unknown_outcome(lake: Lake) -> None:
    async def realm_fails() -> None:
        lake.store.rules = [Rule(anything("_realm/core/"), fails=DOWN)]

    lake.store.rules = [Rule(put("manifest.json", b"end-catalog"), then=realm_fails)]
    failed = await lake.app.manage("DELETE", "catalogs/lake")
    lake.store.rules = []

    assert (failed.status, failed.error_type) == (500, "CommitStateUnknownException")
    assert "drop it again" in failed.message
    assert (await lake.app.manage("DELETE", "catalogs/lake")).status == 204


async def test_a_catalog_is_restored_under_another_name(lake: Lake) -> None:
    root = await lake.drop()
    await lake.app.catalog("lake", base="memory:///elsewhere")
    with pytest.raises(AlreadyExists, match="another name"):
        await lake.restore(root)
    await lake.restore(root, "old")
    assert (await lake.entry("old")).root == root
    assert (await lake.ann.get("/v1/old/namespaces")).status == 200


async def test_a_catalog_whose_location_was_taken_is_refused_with_the_name_of_the_other(lake: Lake) -> None:
    root = await lake.drop()
    await lake.app.catalog("other", base="memory:///lake/inside")
    with pytest.raises(BadRequest, match=r"location of catalog other\. Drop that catalog"):
        await lake.restore(root)
    with pytest.raises(NotFound):
        await lake.entry()
    elsewhere: JsonObject = {"default-base-location": "memory:///free"}
    await lake.restore(root, properties=elsewhere, storage={"allowedLocations": ["memory:///free"]})
    assert (await lake.entry()).properties == elsewhere


async def test_purges_that_an_earlier_version_left_become_plain_drops(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lake.drop_table("t", purge=True)
    with monkeypatch.context() as earlier:
        earlier.setattr(catalog_drops, "unfinished_purges", lambda index: [])
        root = await lake.drop()
    restored = await lake.restore(root)
    assert restored.cancelled_purges == ("db.t",)


async def test_purges_that_the_drop_cancelled_stay_cancelled(lake: Lake) -> None:
    await lake.drop_table("t", purge=True)
    root = await lake.drop(cancel_purges=True)
    assert (await lake.restore(root)).cancelled_purges == ("db.t",)


async def test_a_catalog_that_was_not_dropped_is_refused(lake: Lake) -> None:
    root = (await lake.entry()).root
    for name in ("lake", "again"):
        with pytest.raises(BadRequest, match="which exists"):
            await lake.restore(root, name)


async def test_a_folder_outside_of_the_realms_catalogs_is_refused(lake: Lake) -> None:
    with pytest.raises(BadRequest, match="can't be the state of a catalog"):
        await lake.restore("other/_realm/catalogs/x")
    with pytest.raises(NotFound, match="list --dropped"):
        await lake.restore("nothing")


@pytest.mark.parametrize("commit", [b"undrop-catalog", b"reopen-catalog"])
async def test_a_restore_that_died_is_finished_by_another(lake: Lake, commit: bytes) -> None:
    root = await lake.drop()
    lake.store.rules = [Rule(put("manifest.json", commit), fails=StoreUnavailable("down"))]
    with pytest.raises(CommitStateUnknown):
        await lake.restore(root)
    lake.store.rules = []
    await lake.restore(root)
    assert (await lake.ann.post("/v1/lake/namespaces", {"namespace": ["db"], "properties": {}})).status == 200


async def test_a_restore_that_failed_after_it_named_the_catalog_has_an_unknown_outcome(lake: Lake) -> None:
    root = await lake.drop()

    async def catalog_fails() -> None:
        lake.store.rules = [Rule(anything(f"{root}/"), fails=DOWN)]

    lake.store.rules = [Rule(put("manifest.json", b"undrop-catalog"), then=catalog_fails)]
    with pytest.raises(CommitStateUnknown, match="has its name, but is still closed: undrop it again"):
        await lake.restore(root)
    lake.store.rules = []

    await lake.restore(root)
    assert (await lake.ann.post("/v1/lake/namespaces", {"namespace": ["db"], "properties": {}})).status == 200


async def test_a_drop_that_died_before_it_took_the_name_is_undone(lake: Lake) -> None:
    lake.store.rules = [Rule(put("manifest.json", b"drop-catalog"), fails=StoreUnavailable("down"))]
    root = (await lake.entry()).root
    assert (await lake.app.manage("DELETE", "catalogs/lake")).status == 500
    lake.store.rules = []
    await lake.restore(root)
    assert (await lake.ann.post("/v1/lake/namespaces", {"namespace": ["db"], "properties": {}})).status == 200


async def test_a_slow_drop_of_the_catalog_leaves_the_restored_one_alone(lake: Lake) -> None:
    realm, before = lake.realm, await lake.entry()
    slow = (await catalog_of(realm, realm.lookups(), "lake", identity=None)).session(lake.session.request, ALLOW_ALL)
    root = await lake.drop()
    await lake.restore(root)
    with pytest.raises(CatalogChanged):
        await end_catalog(slow, before)
    assert (await lake.ann.post("/v1/lake/namespaces", {"namespace": ["db"], "properties": {}})).status == 200


async def test_a_catalog_that_is_dropped_again_before_it_was_opened_stays_closed(lake: Lake) -> None:
    root = await lake.drop()
    lake.store.rules = [Rule(put("/core/commits/", b"reopen-catalog"), first=lake.drop, times=1)]
    with pytest.raises(CommitFailed, match="dropped again"):
        await lake.restore(root)
    with pytest.raises(NotFound):
        await lake.entry()
    await lake.restore(root)
    assert (await lake.ann.post("/v1/lake/namespaces", {"namespace": ["db"], "properties": {}})).status == 200


async def test_of_two_undrops_at_once_the_later_one_counts(lake: Lake) -> None:
    root = await lake.drop()
    lake.store.rules = [Rule(put("/core/commits/", b"reopen-catalog"), first=lambda: lake.restore(root), times=1)]
    with pytest.raises(CommitFailed, match="Another command"):
        await lake.restore(root)
    assert (await lake.ann.post("/v1/lake/namespaces", {"namespace": ["db"], "properties": {}})).status == 200
    assert (await lake.entry()).root == root


async def test_a_restored_catalog_is_dropped_and_restored_once_more(lake: Lake) -> None:
    root = await lake.drop()
    await lake.restore(root)
    assert await lake.drop() == root
    await lake.restore(root)
    assert (await lake.entry()).root == root


async def test_an_open_folder_whose_name_was_lost_is_restored_with_its_tables(lake: Lake) -> None:
    """An earlier version took the name of a catalog's successor."""
    assert (await lake.ann.post("/v1/lake/namespaces", {"namespace": ["db"], "properties": {}})).status == 200
    realm, entry = lake.realm, await lake.entry()
    await remove_catalog(lake.app.session(realm), entry)
    base: JsonObject = {"default-base-location": "memory:///lake"}
    with pytest.raises(BadRequest, match="ten minutes"):
        await lake.restore(entry.root, properties=base, storage={"storageType": "FILE"})
    lake.clock.ms += HOUR_MS
    await lake.restore(entry.root, properties=base, storage={"storageType": "FILE"})
    assert (await lake.ann.get("/v1/lake/namespaces/db")).status == 200


async def test_an_open_folder_is_changed_only_if_it_can_have_the_name(lake: Lake) -> None:
    await lake.drop_table("t", purge=True)
    realm, entry = lake.realm, await lake.entry()
    await remove_catalog(lake.app.session(realm), entry)
    await lake.app.catalog("taken", base="memory:///elsewhere")
    lake.clock.ms += HOUR_MS
    base: JsonObject = {"default-base-location": "memory:///lake"}
    before = lake.store.keys(entry.root)

    with pytest.raises(AlreadyExists, match="another name"):
        await lake.restore(entry.root, "taken", properties=base, storage={"storageType": "FILE"})
    assert lake.store.keys(entry.root) == before

    async def realm_fails() -> None:
        lake.store.rules = [Rule(anything("_realm/core/"), fails=DOWN)]

    lake.store.rules = [Rule(put("manifest.json", b"reopen-catalog"), then=realm_fails)]
    with pytest.raises(CommitStateUnknown, match="the catalog still has no name: undrop it again"):
        await lake.restore(entry.root, properties=base, storage={"storageType": "FILE"})
    lake.store.rules = []
    lake.clock.ms += HOUR_MS
    await lake.restore(entry.root, properties=base, storage={"storageType": "FILE"})


async def test_dropped_catalogs_are_listed_by_folder_and_name(lake: Lake) -> None:
    root = await lake.drop()
    await lake.app.catalog("lake")
    assert [(each.root, each.name) for each in (await stray_catalogs(lake.realm, lake.session)).found] == [
        (root, "lake")
    ]
