"""What pages cost: the calls to the store of all requests that a page sends, of a catalog that was opened before. The
scenarios in Chromium check that the pages send these requests (console/browser/budgets.json)."""

import json

import pytest

from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.fields import objects
from arco_catalog.state.spilling import Limits
from storage_backends.memory import MemoryStore
from tests.support.realm_service import RealmApp, on_catalog, table_request
from tools.support.asgi_client import Client
from tools.support.environment import PROJECT
from tools.support.request_bodies import set_property
from tools.support.wrapped_stores import CountingStore

BUDGETS = json.loads((PROJECT / "console" / "browser" / "budgets.json").read_text())
NAMESPACES = "/v1/arco/namespaces"
TABLES = f"{NAMESPACES}/sales/tables"
SMALL, SPILLED = Settings("-"), Settings("-", spill=Limits(embedded=300, segment=700))


class CountedLake:
    """A realm with a catalog of many commits, a table of many versions, and tasks, over a store that counts calls."""

    def __init__(self, settings: Settings) -> None:
        self.app = RealmApp(settings=settings)
        self.memory = MemoryStore(now_ms=self.app.clock.now_ms)
        self.store = CountingStore(self.memory)

    async def start(self) -> "CountedLake":
        self.app.store = self.memory
        await self.app.start()
        await self.app.catalog("arco")
        writer = await self.app.principal("writer", on_catalog("CATALOG_MANAGE_CONTENT"), catalog="arco")
        assert (await writer.post(NAMESPACES, {"namespace": ["sales"]})).status == 200
        for name in ("orders", *(f"t{number:02}" for number in range(20))):
            assert (await writer.post(TABLES, table_request(name))).status == 200
        for number in range(40):
            assert (await writer.post(f"{TABLES}/orders", set_property("a", str(number)))).status == 200
        for name in ("t01", "t02", "t03"):
            assert (await writer.delete(f"{TABLES}/{name}?purgeRequested=true")).status == 204
        self.app.store = self.store
        return self

    async def opened(self) -> Client:
        """A client of a fresh server that has opened the catalog, as the first page does once, and has read the key
        that signs the tokens of all pages."""
        client = self.app.client("root", app=self.app.serve())
        for once in ("config?warehouse=arco", "arco/history?pageSize=1"):
            assert (await client.get(f"/v1/{once}")).status == 200
        return client

    async def calls(self, client: Client, page: str) -> int:
        """The calls to the store that all requests of a page make, one after another."""
        with self.store.measure() as measured:
            for request in BUDGETS[page]["requests"]:
                answer = await client.get(f"/{request}")
                assert answer.status == 200, (request, answer.body)
        return measured.calls


@pytest.mark.parametrize("page", BUDGETS)
async def test_a_page_keeps_to_its_budget(page: str) -> None:
    lake = await CountedLake(SMALL).start()

    assert 0 < await lake.calls(await lake.opened(), page) <= BUDGETS[page]["calls"]


@pytest.mark.parametrize("page", BUDGETS)
async def test_a_page_of_a_spilled_catalog_keeps_to_it_once_its_segments_are_in_memory(page: str) -> None:
    lake = await CountedLake(SPILLED).start()
    client = await lake.opened()
    await lake.calls(client, page)

    assert 0 < await lake.calls(client, page) <= BUDGETS[page]["calls"]


@pytest.mark.parametrize("settings", [SMALL, SPILLED])
async def test_home_has_as_many_changes_as_it_requests(settings: Settings) -> None:
    lake = await CountedLake(settings).start()
    (history,) = (each for each in BUDGETS["catalogs"]["requests"] if "history" in each)

    answer = await (await lake.opened()).get(f"/{history}")

    assert [each["kind"] for each in objects(answer.json, "operations")] == ["drop-table"] * 3
