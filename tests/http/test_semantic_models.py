"""Semantic models over HTTP: documents that say what tables mean, each version under a name of its own."""

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.operations.history import history
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.planning.semantic_models import MAX_MODEL_BYTES, MAX_SOURCES, parse_document
from storage_backends import Found
from tests.support.http_service import POLARIS_DB, HttpService
from tests.support.realm_service import RealmApp, on_catalog, on_namespace, on_table, table_request
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import renaming, schema, set_property, view_request

MODELS = f"{POLARIS_DB}/semantic-models"
DB = "/v1/wh/namespaces/db"


def document(*sources: str, note: str = "") -> JsonObject:
    """A document of one model, whose data sets have these sources."""
    datasets: list[JsonValue] = [{"name": f"d{place}", "source": source} for place, source in enumerate(sources)]
    model = dumps([{"name": "m", "description": note, "datasets": datasets}]).decode()
    return {"version": "0.1.1", "semantic_model": model}


async def made(client: Client, name: str = "m", *sources: str) -> str:
    """Makes a model, and returns its version."""
    answer = await client.post(MODELS, {"name": name, "document": document(*sources)})
    assert answer.status == 200, answer.body
    return str(answer.json["entity-version"])


async def replace(client: Client, version: str, sent: JsonObject, name: str = "m") -> Answer:
    return await client.put(f"{MODELS}/{name}", {"entity-version": version, "document": sent})


async def test_a_model_comes_back_as_it_was_created(service: HttpService) -> None:
    document_sent = document("db.t", note="what it is")

    created = await service.client.post(MODELS, {"name": "m", "document": {**document_sent, "more": 1}})
    loaded = await service.client.get(f"{MODELS}/m")
    elsewhere = await service.serve().get(f"{MODELS}/m")

    assert (created.status, created.json["document"]) == (200, document_sent)
    assert (loaded.status, loaded.json) == (elsewhere.status, elsewhere.json) == (200, created.json)
    assert 0 < len(str(created.json["entity-version"])) <= 255


async def test_every_replacement_is_a_version_of_its_own(client: Client) -> None:
    first = await made(client, "m", "db.t")

    second = await replace(client, first, document(note="new"))
    late = await replace(client, first, document(note="late"))
    same = await replace(client, str(second.json["entity-version"]), document(note="new"))

    assert (second.status, second.json["document"]) == (200, document(note="new"))
    assert (late.status, late.error_type) == (409, "SemanticModelVersionMismatchException")
    assert same.status == 200
    assert len({first, str(second.json["entity-version"]), str(same.json["entity-version"])}) == 3
    assert (await client.get(f"{MODELS}/m")).json == same.json


async def test_a_version_of_a_dropped_model_is_not_one_of_its_successor(client: Client) -> None:
    first = await made(client)
    assert (await client.delete(f"{MODELS}/m")).status == 204
    await made(client)

    late = await replace(client, first, document(note="late"))

    assert (late.status, late.error_type) == (409, "SemanticModelVersionMismatchException")


async def test_models_are_listed_apart_and_in_pages(client: Client) -> None:
    for name in ("m", "n", "o"):
        await made(client, name)

    listed = await client.get(MODELS)
    first = await client.get(f"{MODELS}?pageSize=2&pageToken=")
    rest = await client.get(f"{MODELS}?pageSize=2&pageToken={first.json['next-page-token']}")

    names = [{"namespace": ["db"], "name": name} for name in ("m", "n", "o")]
    assert listed.json == {"identifiers": names, "next-page-token": None}
    assert (first.json["identifiers"], rest.json["identifiers"]) == (names[:2], names[2:])
    assert (await client.get(f"{DB}/tables")).json["identifiers"] == [{"namespace": ["db"], "name": "t"}]
    assert (await client.get(f"{POLARIS_DB}/generic-tables")).json["identifiers"] == []


async def test_a_name_means_one_thing(service: HttpService) -> None:
    client = service.client
    await made(client)
    await service.view("v")
    await service.generic_table("g")

    over = [
        *[await client.post(MODELS, {"name": name, "document": document()}) for name in ("m", "t", "v", "g")],
        await client.post(f"{POLARIS_DB}/generic-tables", {"name": "m", "format": "csv"}),
        await client.post(f"{DB}/tables", {"name": "m", "schema": schema("x")}),
        await client.post(f"{DB}/tables", {"name": "m", "schema": schema("x"), "stage-create": True}),
        await client.post(f"{DB}/views", view_request("m")),
        await client.post("/v1/wh/tables/rename", renaming("t", "m")),
        await client.post("/v1/wh/views/rename", renaming("v", "m")),
    ]

    assert [(answer.status, answer.error_type) for answer in over] == [(409, "AlreadyExistsException")] * len(over)
    assert [answer.message for answer in over[:4]] == [
        "Semantic model already exists: db.m",
        "Table with same name already exists: db.t",
        "View with same name already exists: db.v",
        "Generic table with same name already exists: db.g",
    ]


async def test_other_routes_do_not_find_it(client: Client) -> None:
    await made(client)
    generic, target = f"{POLARIS_DB}/generic-tables/m", {"type": "table-like", "path": ["db", "m"]}
    await client.post(f"{POLARIS_DB}/policies", {"name": "p", "type": "ours"})

    missed = [
        await client.get(f"{DB}/tables/m"),
        await client.post(f"{DB}/tables/m", set_property("a", "b")),
        await client.delete(f"{DB}/tables/m"),
        await client.post("/v1/wh/tables/rename", renaming("m", "n")),
    ]
    others = [
        await client.get(generic),
        await client.delete(generic),
        await client.put(f"{POLARIS_DB}/policies/p/mappings", {"target": target}),
    ]

    assert {(answer.status, answer.error_type) for answer in (*missed, *others)} == {(404, "NoSuchTableException")}
    assert {"db.m is a semantic model, which is found below" in answer.message for answer in missed} == {True}
    assert (await client.get(f"{DB}/views/m")).error_type == "NoSuchViewException"
    for name in ("t", "nothing"):
        for answer in (
            await client.get(f"{MODELS}/{name}"),
            await client.delete(f"{MODELS}/{name}"),
            await replace(client, "1", document(), name),
        ):
            assert (answer.status, answer.error_type) == (404, "NoSuchSemanticModelException")
            assert answer.message == f"Semantic model does not exist: db.{name}"


async def test_in_a_missing_namespace_there_are_none(client: Client) -> None:
    nowhere = MODELS.replace("db", "nowhere")

    for answer in (await client.get(nowhere), await client.post(nowhere, {"name": "m", "document": document()})):
        assert (answer.status, answer.error_type) == (404, "NoSuchNamespaceException")


async def test_sources_must_be_there(service: HttpService) -> None:
    client = service.client
    await service.view("v")
    await service.generic_table("g")
    version = await made(client, "m", "db.t", "db.v", "db.g", "db.t")

    refused = [
        await client.post(MODELS, {"name": "n", "document": document("db.t", "db.gone")}),
        await client.post(MODELS, {"name": "n", "document": document("nowhere.t")}),
        await client.post(MODELS, {"name": "n", "document": document("db.m")}),
        await client.post(MODELS, {"name": "n", "document": document("t")}),
        await client.post(MODELS, {"name": "n", "document": document("db..t")}),
        await client.post(MODELS, {"name": "n", "document": document("db.t\nu")}),
        await replace(client, version, document("db.gone")),
    ]

    assert {(answer.status, answer.error_type) for answer in refused} == {(400, "BadRequestException")}
    assert "source 'db.gone' at /semantic_model/0/datasets/1/source does not resolve" in refused[0].message
    assert (await client.get(f"{MODELS}/n")).status == 404


async def test_a_model_outlives_its_sources(client: Client) -> None:
    await made(client, "m", "db.t")

    assert (await client.delete(f"{DB}/tables/t")).status == 204

    assert (await client.get(f"{MODELS}/m")).json["document"] == document("db.t")


BAD: dict[str, JsonObject] = {
    "no version": {"semantic_model": "{}"},
    "an empty version": {"version": "", "semantic_model": "{}"},
    "a long version": {"version": "1" * 65, "semantic_model": "{}"},
    "no model": {"version": "1"},
    "an empty model": {"version": "1", "semantic_model": " "},
    "a model that is not JSON": {"version": "1", "semantic_model": "{"},
    "a model that is no object": {"version": "1", "semantic_model": "[1]"},
    "data sets that are no list": {"version": "1", "semantic_model": '{"datasets": 1}'},
    "a data set without a source": {"version": "1", "semantic_model": '{"datasets": [{"name": "d"}]}'},
    "a model that is no text": {"version": "1", "semantic_model": {}},
    "a long model": {"version": "1", "semantic_model": " " * MAX_MODEL_BYTES + "{}"},
    "many data sets": document(*["db.t"] * (MAX_SOURCES + 1)),
}


@pytest.mark.parametrize("what", BAD)
async def test_what_is_no_document_is_refused(client: Client, what: str) -> None:
    version = await made(client)

    created = await client.post(MODELS, {"name": "n", "document": BAD[what]})
    replaced = await replace(client, version, BAD[what])

    for answer in (created, replaced):
        assert (answer.status, answer.error_type) == (400, "BadRequestException"), answer.body


def test_half_a_surrogate_is_no_text() -> None:
    with pytest.raises(BadRequest, match="UTF-8 cannot encode"):
        parse_document({"version": "1", "semantic_model": '{"a": "\ud800"}'})


@pytest.mark.parametrize("name", ["", "a.b", "a b", "ü", "n" * 256])
async def test_names_are_letters_and_digits(client: Client, name: str) -> None:
    assert (await client.post(MODELS, {"name": name, "document": document()})).status == 400


async def test_a_dropped_one_can_be_restored(service: HttpService) -> None:
    client = service.client
    await made(client, "m", "db.t")
    before = await client.get(f"{MODELS}/m")
    assert (await client.delete(f"{MODELS}/m")).status == 204
    assert (await client.get(f"{MODELS}/m")).status == 404

    restored = await client.post(f"{DB}/tables/m/undrop", {})

    assert restored.status == 204
    assert (await client.get(f"{MODELS}/m")).json == before.json


async def test_a_namespace_with_a_model_in_it_is_not_dropped(service: HttpService) -> None:
    await service.namespace("other", "other")
    other = MODELS.replace("db", "other")
    assert (await service.client.post(other, {"name": "m", "document": document()})).status == 200

    refused = await service.client.delete("/v1/wh/namespaces/other")
    await service.client.delete(f"{other}/m")

    assert (refused.status, refused.error_type) == (409, "NamespaceNotEmptyException")
    assert (await service.client.delete("/v1/wh/namespaces/other")).status == 204


async def test_operators_see_it(service: HttpService) -> None:
    version = await made(service.client)
    await replace(service.client, version, document(note="new"))
    shown = await inspect_relation(service.session(), ("db",), "m")
    await service.client.delete(f"{MODELS}/m")
    dropped = await inspect_relation(service.session(), ("db",), "m")
    entries = [entry async for entry in history(service.session())]

    assert (shown["type"], shown["state"], shown["document"]) == ("semantic-model", "live", document(note="new"))
    assert dropped["state"] == "dropped"
    assert [entry["kind"] for entry in entries[:3]] == [
        "drop-semantic-model",
        "replace-semantic-model",
        "create-semantic-model",
    ]


async def test_documents_are_kept_out_of_the_registry(service: HttpService) -> None:
    secret = "correct horse battery staple"
    version = await made(service.client)
    key = service.key()
    body: JsonObject = {"entity-version": version, "document": document(note=secret)}
    first, again = [await service.client.put(f"{MODELS}/m", body, idempotency_key=key) for _ in range(2)]

    holders = []
    for each in [*service.store.keys()]:
        found = await service.store.get(each)
        assert isinstance(found, Found)
        if secret.encode() in found.body:
            holders.append(each.rpartition("/")[0])
    assert holders == ["wh/_catalog/core/entities/semantic-model"]
    assert (again.status, again.json) == (first.status, first.json) == (200, first.json)


async def test_a_source_that_the_caller_may_not_read_is_refused_like_a_missing_one() -> None:
    app = RealmApp()
    await app.start()
    await app.catalog()
    manager = await app.principal("manager", on_catalog("CATALOG_MANAGE_CONTENT"))
    models = "/polaris/v1/lake/namespaces/mine/semantic-models"
    for namespace in ("db", "mine"):
        assert (await manager.post("/v1/lake/namespaces", {"namespace": [namespace]})).status == 200
    assert (await manager.post("/v1/lake/namespaces/db/tables", table_request("t"))).status == 200
    client = await app.principal("modeller", on_namespace("TABLE_CREATE", "mine"))

    hidden = await client.post(models, {"name": "m", "document": document("db.t")})
    missing = await client.post(models, {"name": "m", "document": document("db.x")})
    await app.grant("modeller", on_table("TABLE_READ_PROPERTIES", "db", "t"))
    allowed = await client.post(models, {"name": "m", "document": document("db.t")})

    assert (hidden.status, missing.status, allowed.status) == (400, 400, 200), allowed.body
    assert hidden.message == missing.message.replace("db.x", "db.t")
