"""Generic tables over HTTP: another kind of thing that a name can mean."""

import pytest

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.history import history
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.operations.properties import MAX_PROPERTIES_BYTES, MAX_VALUE_BYTES
from storage_backends import Found
from tests.support.http_service import POLARIS_DB, HttpService
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import renaming, schema, set_property, view_request

GENERIC = f"{POLARIS_DB}/generic-tables"
DB = "/v1/wh/namespaces/db"
BASE = "memory:///wh/warehouse/db/delta-one"
SECRET = "correct horse battery staple"


async def made(client: Client, name: str = "g", **more: object) -> Answer:
    answer = await client.post(GENERIC, {"name": name, "format": "delta", **more})
    assert answer.status == 200, answer.body
    return answer


async def test_a_generic_table_comes_back_as_it_was_created(service: HttpService) -> None:
    created_body: JsonObject = {
        "name": "g",
        "format": "delta",
        "base-location": BASE,
        "doc": "what it is",
        "properties": {"a": "b"},
    }

    created = await service.client.post(GENERIC, created_body)
    loaded = await service.client.get(f"{GENERIC}/g")
    elsewhere = await service.serve().get(f"{GENERIC}/g")

    assert (created.status, created.json) == (200, {"table": created_body})
    assert (loaded.status, loaded.json) == (elsewhere.status, elsewhere.json) == (200, {"table": created_body})


async def test_only_name_and_format_are_required(client: Client) -> None:
    created = await made(client)

    assert created.json == {"table": {"name": "g", "format": "delta", "properties": {}}}
    for body in ({"name": "h"}, {"format": "csv"}, {"name": "h", "format": ""}, {"name": "", "format": "csv"}):
        assert (await client.post(GENERIC, body)).status == 400


async def test_generic_tables_are_listed_apart_and_in_pages(client: Client) -> None:
    for name in ("g", "h", "i"):
        await made(client, name)

    listed = await client.get(GENERIC)
    first = await client.get(f"{GENERIC}?pageSize=2&pageToken=")
    rest = await client.get(f"{GENERIC}?pageSize=2&pageToken={first.json['next-page-token']}")

    names = [{"namespace": ["db"], "name": name} for name in ("g", "h", "i")]
    assert listed.json == {"identifiers": names, "next-page-token": None}
    assert (first.json["identifiers"], rest.json["identifiers"]) == (names[:2], names[2:])
    assert (await client.get(f"{DB}/tables")).json["identifiers"] == [{"namespace": ["db"], "name": "t"}]
    assert (await client.get(f"{DB}/views")).json["identifiers"] == []


async def test_a_name_means_one_thing(service: HttpService) -> None:
    client = service.client
    await made(client)
    await service.view("v")
    table: JsonObject = {"name": "g", "schema": schema("x")}

    over = [
        await client.post(GENERIC, {"name": "g", "format": "csv"}),
        await client.post(GENERIC, {"name": "t", "format": "csv"}),
        await client.post(GENERIC, {"name": "v", "format": "csv"}),
        await client.post(f"{DB}/tables", table),
        await client.post(f"{DB}/tables", {**table, "stage-create": True}),
        await client.post(f"{DB}/views", view_request("g")),
        await client.post("/v1/wh/tables/rename", renaming("t", "g")),
        await client.post("/v1/wh/views/rename", renaming("v", "g")),
    ]

    assert [(answer.status, answer.error_type) for answer in over] == [(409, "AlreadyExistsException")] * len(over)
    assert [answer.message for answer in over[:4]] == [
        "Generic table already exists: db.g",
        "Table with same name already exists: db.t",
        "View with same name already exists: db.v",
        "Generic table with same name already exists: db.g",
    ]


async def test_iceberg_routes_do_not_find_it_and_say_what_it_is(client: Client) -> None:
    await made(client)
    changes: JsonObject = {"identifier": {"namespace": ["db"], "name": "g"}, **set_property("a", "b")}

    missed = [
        await client.get(f"{DB}/tables/g"),
        await client.post(f"{DB}/tables/g", set_property("a", "b")),
        await client.delete(f"{DB}/tables/g"),
        await client.delete(f"{DB}/tables/g?purgeRequested=true"),
        await client.post(f"{DB}/tables/g/unregister", {}),
        await client.post("/v1/wh/tables/rename", renaming("g", "h")),
        await client.post("/v1/wh/transactions/commit", {"table-changes": [changes]}),
    ]

    assert {(answer.status, answer.error_type) for answer in missed} == {(404, "NoSuchTableException")}
    assert {"is a generic table" in answer.message for answer in missed} == {True}
    assert (await client.head(f"{DB}/tables/g")).status == 404
    assert (await client.get(f"{DB}/views/g")).message == "View does not exist: db.g"
    assert (await client.get(f"{GENERIC}/g")).status == 200


async def test_what_is_no_generic_table_is_not_found_as_one(service: HttpService) -> None:
    await service.view("v")

    for name in ("t", "v", "nothing"):
        for answer in (await service.client.get(f"{GENERIC}/{name}"), await service.client.delete(f"{GENERIC}/{name}")):
            assert (answer.status, answer.error_type) == (404, "NoSuchTableException")
            assert answer.message == f"Generic table does not exist: db.{name}"
    assert (await service.client.get(GENERIC.replace("db", "nowhere"))).error_type == "NoSuchNamespaceException"
    missing = await service.client.post(GENERIC.replace("db", "nowhere"), {"name": "g", "format": "csv"})
    assert (missing.status, missing.error_type) == (404, "NoSuchNamespaceException")


async def test_a_namespace_with_a_generic_table_in_it_is_not_dropped(service: HttpService) -> None:
    await service.namespace("other", "other")
    other = GENERIC.replace("db", "other")
    assert (await service.client.post(other, {"name": "g", "format": "csv"})).status == 200

    refused = await service.client.delete("/v1/wh/namespaces/other")
    await service.client.delete(f"{other}/g")

    assert (refused.status, refused.error_type) == (409, "NamespaceNotEmptyException")
    assert (await service.client.delete("/v1/wh/namespaces/other")).status == 204


async def test_its_place_is_its_own(client: Client) -> None:
    await made(client, **{"base-location": BASE})

    inside = await client.post(f"{DB}/tables", {"name": "u", "schema": schema("x"), "location": f"{BASE}/inside"})
    around = await client.post(GENERIC, {"name": "h", "format": "csv", "base-location": BASE})
    outside = await client.post(GENERIC, {"name": "h", "format": "csv", "base-location": "memory:///elsewhere/h"})
    folder = await client.post(GENERIC, {"name": "h", "format": "csv", "base-location": "memory:///wh/warehouse/db"})

    assert {answer.status for answer in (inside, around, outside, folder)} == {400}
    assert "overlaps the location of generic table db.g" in inside.message
    assert "outside the allowed locations" in outside.message


async def test_a_dropped_one_can_be_restored_and_gives_its_place_up_until_then(service: HttpService) -> None:
    client = service.client
    await made(client, **{"base-location": BASE, "doc": "what it is"})
    before = await client.get(f"{GENERIC}/g")
    assert (await client.delete(f"{GENERIC}/g")).status == 204
    await made(client, "h", **{"base-location": BASE})

    taken = await client.post(f"{DB}/tables/g/undrop", {})
    assert (await client.delete(f"{GENERIC}/h")).status == 204
    restored = await client.post(f"{DB}/tables/g/undrop", {})

    assert (taken.status, restored.status) == (400, 204), restored.body
    assert (await client.get(f"{GENERIC}/g")).json == before.json


async def test_operators_see_it(service: HttpService) -> None:
    await made(service.client, **{"base-location": BASE})
    shown = await inspect_relation(service.session(), ("db",), "g")
    await service.client.delete(f"{GENERIC}/g")
    dropped = await inspect_relation(service.session(), ("db",), "g")
    entries = [entry async for entry in history(service.session())]

    assert (shown["type"], shown["state"], shown["format"]) == ("generic-table", "live", "delta")
    assert shown["locations"] == [BASE]
    assert dropped["state"] == "dropped"
    assert [entry["kind"] for entry in entries[:2]] == ["drop-generic-table", "create-generic-table"]


async def test_what_users_say_is_kept_out_of_the_registry(service: HttpService) -> None:
    await made(service.client, properties={"password": SECRET}, doc=SECRET)

    holders = []
    for key in [*service.store.keys()]:
        found = await service.store.get(key)
        assert isinstance(found, Found)
        if SECRET.encode() in found.body:
            holders.append(key.rpartition("/")[0])
    assert holders == ["wh/_catalog/core/entities/generic-table"]


@pytest.mark.parametrize(
    "properties", [{"a": "v" * (MAX_VALUE_BYTES + 1)}, {f"k{n}": "v" * (MAX_PROPERTIES_BYTES // 8) for n in range(9)}]
)
async def test_properties_are_bounded(client: Client, properties: JsonObject) -> None:
    refused = await client.post(GENERIC, {"name": "g", "format": "csv", "properties": properties})

    assert refused.status == 400
    assert "generic table db.g" in refused.message


async def test_a_request_for_credentials_is_refused_if_none_are_vended(client: Client) -> None:
    await made(client)
    header = {"polaris-generic-table-access-delegation": "vended-credentials"}

    loaded = await client.send("GET", f"{GENERIC}/g", headers=header)
    created = await client.send("POST", GENERIC, dumps({"name": "h", "format": "csv"}), headers=header)
    other = await client.send("GET", f"{GENERIC}/g", headers={"polaris-generic-table-access-delegation": "keys"})

    assert [answer.status for answer in (loaded, created, other)] == [406, 406, 400]
    assert (await client.get(f"{GENERIC}/h")).status == 404
