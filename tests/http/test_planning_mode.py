"""Who should plan the scans of a table, as clients read it."""

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tests.support.http_service import HttpService
from tests.support.realm_service import MANAGEMENT, RealmApp, on_catalog, table_request
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import set_property

TABLE = "/v1/wh/namespaces/db/tables/t"
MODE = "scan-planning-mode"


def config(answer: Answer) -> JsonValue:
    assert answer.status == 200, answer.body
    return answer.json["config"]


async def set_on_table(client: Client, name: str, value: str) -> None:
    assert (await client.post(TABLE, set_property(name, value))).status == 200


async def test_without_a_setting_clients_decide(client: Client) -> None:
    assert config(await client.get(TABLE)) == {}
    assert (await client.get("/v1/config?warehouse=wh")).json["defaults"] == {}


async def test_the_catalogs_mode_is_in_its_configuration_and_in_loads(service: HttpService) -> None:
    client = service.serve(scan_planning="server")
    assert config(await client.get(TABLE)) == {MODE: "server"}
    assert (await client.get("/v1/config?warehouse=wh")).json["defaults"] == {MODE: "server"}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (MODE, "client", {MODE: "client"}),
        (MODE, "SERVER", {MODE: "server"}),
        (MODE, "sometimes", {MODE: "server"}),
        ("note", MODE, {MODE: "server"}),
        ("encryption.key-id", "k", {MODE: "client"}),
    ],
)
async def test_a_tables_own_mode_has_precedence(
    service: HttpService, name: str, value: str, expected: JsonObject
) -> None:
    client = service.serve(scan_planning="server")
    await set_on_table(client, name, value)
    for _ in range(2):
        assert config(await client.get(TABLE)) == expected


async def test_a_table_may_have_a_mode_where_the_catalog_has_none(client: Client) -> None:
    await set_on_table(client, MODE, "server")
    assert config(await client.get(TABLE)) == {MODE: "server"}
    await set_on_table(client, MODE, "no")
    assert config(await client.get(TABLE)) == {}


async def test_a_client_with_another_mode_gets_no_304(service: HttpService) -> None:
    tags = [(await service.serve(scan_planning=mode).get(TABLE)).headers["ETag"] for mode in (None, "client", "server")]
    assert len({*tags}) == 3
    again = await service.serve(scan_planning="server").get(TABLE, If_None_Match=tags[2])
    assert again.status == 304


async def test_a_catalog_of_a_realm_has_a_mode_of_its_own() -> None:
    app = await RealmApp().start()
    await app.catalog()
    manager = await app.principal("manager", on_catalog("CATALOG_MANAGE_CONTENT"))
    assert (await manager.post("/v1/lake/namespaces", {"namespace": ["db"]})).status == 200
    assert (await manager.post("/v1/lake/namespaces/db/tables", table_request("t"))).status == 200
    assert config(await manager.get("/v1/lake/namespaces/db/tables/t")) == {}
    found = (await app.root.get(f"{MANAGEMENT}/catalogs/lake")).json
    properties = found["properties"]
    assert isinstance(properties, dict)
    change = {
        "currentEntityVersion": found["entityVersion"],
        "properties": {**properties, MODE: "server"},
        "storageConfigInfo": found["storageConfigInfo"],
    }
    assert (await app.root.put(f"{MANAGEMENT}/catalogs/lake", change)).status == 200
    assert config(await manager.get("/v1/lake/namespaces/db/tables/t")) == {MODE: "server"}
    assert (await manager.get("/v1/config?warehouse=lake")).json["defaults"] == {MODE: "server"}
