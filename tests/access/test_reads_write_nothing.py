"""Reads of a catalog in a realm write nothing: they work for a process that may only read the store."""

import pytest

from storage_backends import StoreDenied
from tests.access.lake import DB, NAMESPACES
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import RealmApp, on_catalog, table_request
from tests.support.registry_versions import raise_version
from tests.support.scripted_store import Call, Rule, ScriptedStore
from tools.support.asgi_client import Client


def writes(call: Call) -> bool:
    return call.method in ("put", "delete")


@pytest.fixture
async def reader() -> Client:
    """A client of a server that may only read, over a realm with a catalog whose registries have version 2."""
    clock = FakeRuntime()
    store = ScriptedStore(clock.now_ms)
    app = await RealmApp(clock=clock, store=store).start()
    await raise_version(app.session(app.realms()["r"]).state)
    await app.catalog()
    manager = await app.principal("manager", on_catalog("CATALOG_MANAGE_CONTENT"))
    for number in range(3):
        assert (await manager.post(NAMESPACES, {"namespace": [f"db{number}"]})).status == 200
    assert (await manager.post(NAMESPACES, {"namespace": ["db"]})).status == 200
    for name in ("t", "u", "v"):
        assert (await manager.post(f"{DB}/tables", table_request(name))).status == 200
    store.rules = [Rule(writes, fails=StoreDenied("writes are not allowed"))]
    return app.client("manager", app=app.serve())


@pytest.mark.parametrize("listing", [f"{DB}/tables", NAMESPACES])
async def test_a_listing_of_several_pages_writes_nothing(reader: Client, listing: str) -> None:
    token: object = ""
    pages = 0
    while True:
        answer = await reader.get(f"{listing}?pageSize=1&pageToken={token}")
        assert answer.status == 200, answer.body
        pages += 1
        token = answer.json.get("next-page-token")
        if token is None:
            break
    assert pages >= 3
