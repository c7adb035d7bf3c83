"""A check of a realm's own registry, and of the roles and grants in that of a catalog."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.operations.catalogs import deployed_catalogs
from arco_catalog.operations.management.catalog_drops import end_catalog
from arco_catalog.operations.management.catalogs import list_catalogs
from arco_catalog.operations.open import build_catalog
from arco_catalog.operations.realms import Realm, realm_beside
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.fields import mapping
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.realm import check_realm
from storage_backends import ABSENT, ANY, Found
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import RealmApp
from tools.support.request_bodies import schema

HOUR_MS = 3_600_000
STATE = "_realm/"


class CheckedRealm:
    """A realm with a catalog, a principal with roles, and a table."""

    def __init__(self, app: RealmApp) -> None:
        assert isinstance(app.store, MemoryStore)
        assert isinstance(app.clock, FakeRuntime)
        self.store, self.clock = app.store, app.clock

    def _catalog(self) -> Catalog:
        return build_catalog(Settings("wh"), self.store, "memory:///", (), self.clock)

    def realm(self) -> Realm:
        return realm_beside(self._catalog(), "memory:///", None)

    def request(self) -> OperationRequest:
        return OperationRequest("CLI", "fsck", "", None, "operator", {"kind": "Cli"}, self.clock.ms + HOUR_MS)

    async def found(self) -> list[Finding]:
        """What is wrong with the realm itself."""
        session = self.realm().registry.session(self.request(), ALLOW_ALL)
        return [each async for each in check_realm(Examination(session))]

    async def found_in_catalogs(self) -> list[Finding]:
        """What is wrong with its catalogs."""
        found: list[Finding] = []
        for each in await deployed_catalogs(self._catalog(), "memory:///"):
            found += [one async for one in check(Examination(each.open().session(self.request(), ALLOW_ALL)))]
        return found

    async def codes(self) -> Sequence[Code]:
        return [each.code for each in await self.found()]

    async def edit(self, root: str, key_part: str, changes: JsonObject | None, name: str | None = None) -> str:
        """Changes the first entry whose key holds this, in HEAD of a registry, or takes it away; or adds the same under
        another key. Returns the key."""
        head = f"{root}core/manifest.json"
        found = await self.store.get(head)
        assert isinstance(found, Found)
        document = loads(found.body)
        assert isinstance(document, dict)
        entries = mapping(mapping(document, "index"), "embedded")
        key = next(key for key in sorted(entries) if key_part in key)
        left: JsonObject = {each: entry for each, entry in entries.items() if each != key or name is not None}
        if changes is not None:
            left[name or key] = {**mapping(entries, key), **changes}
        changed = dumps({**document, "index": {"embedded": left}})
        await self.store.put(head, changed, ANY)
        await self.store.put(f"{root}core/commits/{document['id']}.json", changed, ANY)
        return key

    def root_of_catalog(self) -> str:
        """The folder of the catalog's state."""
        head = next(key for key in self.store.keys(f"{STATE}catalogs/") if key.endswith("/core/manifest.json"))
        return head.removesuffix("core/manifest.json")


@pytest.fixture
async def realm() -> CheckedRealm:
    app = await RealmApp().start()
    await app.catalog("lake")
    await app.principal("ada", {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}, catalog="lake")
    client = app.client("ada")
    for name in ("db", "further"):
        assert (await client.post("/v1/lake/namespaces", {"namespace": [name]})).status == 200
    table = {"name": "t", "schema": schema("a")}
    assert (await client.post("/v1/lake/namespaces/db/tables", table)).status == 200
    assert (await client.get("/v1/lake/namespaces?pageSize=1&pageToken=")).status == 200
    checked = CheckedRealm(app)
    checked.clock.ms += HOUR_MS
    return checked


async def test_nothing_is_wrong_with_a_sound_realm_and_its_catalogs(realm: CheckedRealm) -> None:
    assert await realm.found() == []
    assert await realm.found_in_catalogs() == []


async def test_the_history_of_a_realm_is_read_as_that_of_a_catalog(realm: CheckedRealm) -> None:
    head = f"{STATE}core/manifest.json"
    commit = realm.store.keys(f"{STATE}core/commits/")[1]
    await realm.store.delete(commit)
    assert await realm.codes() == [Code.COMMIT_MISSING]
    await realm.store.put(head, b"{", ANY)
    assert await realm.codes() == [Code.MANIFEST_UNREADABLE]
    await realm.store.delete(head)
    assert await realm.codes() == [Code.MANIFEST_MISSING]


@pytest.mark.parametrize(
    "part", ["has-role\n", "member\n", "principal-id\n", "client\n", "principal\n", "principal-role\n"]
)
async def test_a_relation_of_principals_with_one_of_two_entries_is_found(realm: CheckedRealm, part: str) -> None:
    await realm.edit(STATE, part, None)

    assert set(await realm.codes()) == {Code.ROLE_MISFIT}


async def test_a_client_id_that_leads_to_another_principal_is_found(realm: CheckedRealm) -> None:
    await realm.edit(STATE, "client\n", {"name": "other"})

    [finding] = await realm.found()
    assert finding.code is Code.ROLE_MISFIT
    assert "does not refer to its principal" in finding.found


@pytest.mark.parametrize("part", ["grant\n", "granted\n", "usage\n", "assignee\n", "catalog-role\n"])
async def test_a_grant_with_one_of_two_entries_is_found(realm: CheckedRealm, part: str) -> None:
    await realm.edit(realm.root_of_catalog(), part, None)

    assert {each.code for each in await realm.found_in_catalogs()} == {Code.ROLE_MISFIT}


async def test_a_grant_whose_sides_name_other_privileges_is_found(realm: CheckedRealm) -> None:
    await realm.edit(realm.root_of_catalog(), "grant\n", {"privileges": ["TABLE_DROP"]})

    [finding] = await realm.found_in_catalogs()
    assert "have different privileges" in finding.found


async def test_a_principal_that_lacks_something_is_found(realm: CheckedRealm) -> None:
    await realm.edit(STATE, "principal\n", {"client_id": 7})

    assert await realm.codes() == [Code.ENTRY_UNREADABLE]


async def test_a_folder_whose_catalog_has_an_unreadable_entry_is_not_stray(realm: CheckedRealm) -> None:
    await realm.edit(STATE, "catalog\n", {"root": 7})
    realm.clock.ms += HOUR_MS

    assert await realm.codes() == [Code.ENTRY_UNREADABLE]


async def test_a_folder_of_a_catalog_without_a_name_is_a_note_once_it_is_old(realm: CheckedRealm) -> None:
    await realm.store.put(f"{STATE}catalogs/01KAN0Y7Q2M3C4D5E6F7G8H9JK/_catalog/core/manifest.json", b"{}", ABSENT)
    assert await realm.codes() == []
    realm.clock.ms += HOUR_MS

    [finding] = await realm.found()
    assert (finding.code, finding.where) == (Code.CATALOG_STRAY, f"{STATE}catalogs/01KAN0Y7Q2M3C4D5E6F7G8H9JK")


async def test_a_catalog_whose_drop_ended_half_way_is_found_ten_minutes_later() -> None:
    app = await RealmApp().start()
    await app.catalog("lake")
    checked = CheckedRealm(app)
    realm = checked.realm()
    [entry] = await list_catalogs(realm.registry.session(checked.request(), ALLOW_ALL))
    await end_catalog(realm.catalog(entry).session(checked.request(), ALLOW_ALL), entry)
    assert await checked.found_in_catalogs() == []
    checked.clock.ms += HOUR_MS

    [finding] = await checked.found_in_catalogs()
    assert (finding.code, finding.where) == (Code.CATALOG_CLOSED, entry.root)
    assert finding.found == "catalog lake is closed, and still has its name: a drop or an undrop did not finish"


async def test_a_page_key_that_is_damaged_is_found(realm: CheckedRealm) -> None:
    keys = [key for key in realm.store.keys("") if key.endswith("/page_key.json")]
    for key in keys:
        await realm.store.put(key, b'{"version":1}', ANY)

    report = [*await realm.found(), *await realm.found_in_catalogs()]
    assert [each.where for each in report if each.code is Code.PAGE_KEY_UNREADABLE] == keys
    assert keys


async def test_what_a_realm_never_writes_is_found(realm: CheckedRealm) -> None:
    await realm.store.put(f"{STATE}stray", b"x", ABSENT)
    await realm.store.put(f"{STATE}core/else.json", b"x", ABSENT)

    assert await realm.codes() == [Code.OBJECT_UNKNOWN, Code.OBJECT_UNKNOWN]


@pytest.mark.parametrize("way", ["gone", "cut"])
async def test_every_object_of_a_realm_that_is_damaged_is_reported(realm: CheckedRealm, way: str) -> None:
    """A page key that is gone is made again."""
    objects = [key for key in realm.store.keys(STATE) if not key.startswith(f"{STATE}catalogs/")]
    unnoticed = []
    for key in objects:
        found = await realm.store.get(key)
        assert isinstance(found, Found)
        if way == "gone":
            await realm.store.delete(key)
        else:
            await realm.store.put(key, found.body[: len(found.body) // 2], ANY)
        unnoticed += [] if await realm.codes() else [key.removeprefix(STATE)]
        await realm.store.put(key, found.body, ANY)

    assert len(objects) > 5
    assert unnoticed == (["core/page_key.json"] if way == "gone" else [])
