"""A realm is dropped when it has no catalogs, and refuses everybody until it is made anew."""

import pytest

from arco_catalog.authentication.secrets import Secrets
from arco_catalog.iceberg.errors import AlreadyExists, CommitFailed, Forbidden
from arco_catalog.operations.catalogs import realm_exists, realm_was_dropped
from arco_catalog.operations.management.bootstrap import bootstrap
from arco_catalog.operations.management.catalogs import CatalogRequest
from arco_catalog.operations.management.principals import NewCredentials, principal_of_client
from arco_catalog.operations.management.realm_drop import drop_realm, realms_in
from arco_catalog.operations.realms import make_catalog
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.registry import RegistryState
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.fsck.realm import check_realm
from arco_catalog.upkeep.recovery.restore import Choices, restore
from storage_backends import Found, StoreUnavailable
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import RealmApp
from tests.support.registry_versions import raise_version
from tests.support.scripted_store import Rule, ScriptedStore, lost, put, swap


@pytest.fixture
async def app() -> RealmApp:
    clock = FakeRuntime()
    return await RealmApp(clock=clock, store=ScriptedStore(clock.now_ms)).start()


def session(app: RealmApp, name: str = "r") -> Session:
    return app.session(app.realms()[name])


async def credentials(app: RealmApp) -> NewCredentials:
    return NewCredentials("again", await Secrets(app.entropy).keep("secret"))


async def test_a_realm_with_a_catalog_is_not_dropped(app: RealmApp) -> None:
    await app.catalog("lake")
    with pytest.raises(CommitFailed, match="lake"):
        await drop_realm(session(app))
    assert (await app.manage("GET", "catalogs/lake")).status == 200


async def test_a_dropped_realm_refuses_every_principal(app: RealmApp) -> None:
    await app.principal("ann")
    assert await drop_realm(session(app))
    for principal in ("root", "ann"):
        answer = await app.manage("GET", "catalogs", client=app.client(principal))
        assert answer.status == 401, answer.body
    assert not await drop_realm(session(app))


async def test_the_drop_of_a_realm_whose_answer_was_lost_is_made_by_this_call(app: RealmApp) -> None:
    assert isinstance(app.store, ScriptedStore)
    app.store.rules = [Rule(swap("manifest.json"), answers=lost, times=1)]
    assert await drop_realm(session(app))
    assert not await drop_realm(session(app))
    assert await realm_was_dropped(app.realms()["r"])


async def test_a_dropped_realm_still_exists_and_takes_no_change(app: RealmApp) -> None:
    await drop_realm(session(app))
    realm = app.realms()["r"]
    assert await realm_exists(realm)
    assert await realm_was_dropped(realm)
    base = "memory:///lake"
    request = CatalogRequest("lake", "INTERNAL", {"default-base-location": base}, {"storageType": "FILE"})
    with pytest.raises(Forbidden, match="--reopen"):
        await make_catalog(realm, session(app), request)


async def test_a_dropped_realm_is_made_anew_only_on_request(app: RealmApp) -> None:
    await drop_realm(session(app))
    with pytest.raises(CommitFailed, match="--reopen"):
        await bootstrap(session(app), await credentials(app))
    await bootstrap(session(app), await credentials(app), reopen=True)
    root = await principal_of_client(session(app), "again")
    assert root is not None
    assert root.entity != app.ids["r", "root"]
    assert (await app.manage("GET", "catalogs")).status == 401  # the token of the root that is gone
    app.ids["r", "root"] = root.entity
    assert (await app.manage("GET", "catalogs", client=app.client("root"))).status == 200


async def test_a_realm_whose_key_of_page_tokens_cannot_be_written_is_made(app: RealmApp) -> None:
    """Its root has the credentials that the operator gets: the first page that may write makes the key."""
    assert isinstance(app.store, ScriptedStore)
    await drop_realm(session(app))
    path = session(app).state.paths.page_key
    await app.store.delete(path)
    app.store.rules = [Rule(put(path), fails=StoreUnavailable("down"), times=1)]
    await bootstrap(session(app), await credentials(app), reopen=True)
    assert await principal_of_client(session(app), "again") is not None
    assert await session(app).state.page_key()


async def test_a_restored_head_has_no_principal_of_a_realm_that_was_dropped_before(app: RealmApp) -> None:
    await app.principal("ann")
    state = session(app).state
    await raise_version(state)
    await drop_realm(session(app))
    await bootstrap(session(app), await credentials(app), reopen=True)
    before = await state.store.get(state.paths.manifest)
    assert isinstance(before, Found)
    assert [each async for each in check_realm(Examination(session(app)))] == []
    head = RegistryState.parse(before.body, None, "HEAD")
    assert head.ancestor is not None
    await state.store.delete(state.paths.manifest)
    await restore(session(app), Choices(head=head.id), dry=False)
    after = await state.store.get(state.paths.manifest)
    assert isinstance(after, Found)
    assert after.body == before.body
    for principal in ("root", "ann"):
        assert (await app.manage("GET", "catalogs", client=app.client(principal))).status == 401


async def test_a_realm_that_exists_is_not_reopened(app: RealmApp) -> None:
    with pytest.raises(AlreadyExists):
        await bootstrap(session(app), await credentials(app), reopen=True)


async def test_a_catalog_that_is_made_at_the_same_time_prevents_the_drop(app: RealmApp) -> None:
    assert isinstance(app.store, ScriptedStore)
    app.store.rules = [Rule(put("_realm/core/manifest.json", b"drop-realm"), first=app.catalog, times=1)]
    with pytest.raises(CommitFailed, match="lake"):
        await drop_realm(session(app))
    assert (await app.manage("GET", "catalogs/lake")).status == 200


async def test_the_realms_of_a_store_are_listed(app: RealmApp) -> None:
    [found] = await realms_in(session(app))
    assert (found.prefix, found.is_dropped, found.principals, found.principal_roles) == ("", False, 1, 1)
    several = await RealmApp(names=("a", "b")).start()
    await drop_realm(session(several, "b"))
    listed = await realms_in(session(several, "a"))
    assert [(each.prefix, each.is_dropped) for each in listed] == [("a", False), ("b", True)]
