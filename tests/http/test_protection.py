"""Protection over HTTP: what has `arco.protected=true` is not dropped, replaced or renamed until that is lifted."""

import shlex
from urllib.parse import quote

import pytest

from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.history import history
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.protocol.catalog import Settings
from tests.http.test_notifications import left, notification
from tests.support.http_service import POLARIS_DB, HttpService
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import renaming, schema, set_property

DB = "/v1/wh/namespaces/db"
T = f"{DB}/tables/t"
V = f"{DB}/views/v"
EMPTY = "/v1/wh/namespaces/empty"
PROTECT: JsonObject = {"arco.protected": "true"}
LIFT: JsonObject = {"arco.protected": None}


@pytest.fixture
async def guarded(service: HttpService) -> HttpService:
    """With the view `v` and the namespace `empty`, in which nothing is, both protected as the table `t` is."""
    await service.view("v")
    await service.namespace("empty", "empty")
    for of in (T, V, EMPTY):
        assert (await service.client.post(f"{of}/governance", PROTECT)).status == 200
    return service


async def ended(service: HttpService, way: str) -> Answer:
    """What takes a name away, in each way that there is."""
    client = service.client
    match way:
        case "drop" | "purge":
            return await client.delete(f"{T}?purgeRequested={'true' if way == 'purge' else 'false'}")
        case "unregister":
            return await client.post(f"{T}/unregister", {})
        case "overwrite":
            file = (await client.get(T)).json["metadata-location"]
            return await client.post(f"{DB}/register", {"name": "t", "metadata-location": file, "overwrite": True})
        case "rename":
            return await client.post("/v1/wh/tables/rename", renaming("t", "u"))
        case "drop of a view":
            return await client.delete(V)
        case "rename of a view":
            return await client.post("/v1/wh/views/rename", renaming("v", "w"))
        case _:
            return await client.delete(EMPTY)


WAYS = {
    "drop": ("Table db.t", T),
    "purge": ("Table db.t", T),
    "unregister": ("Table db.t", T),
    "overwrite": ("Table db.t", T),
    "rename": ("Table db.t", T),
    "drop of a view": ("View db.v", V),
    "rename of a view": ("View db.v", V),
    "drop of a namespace": ("Namespace empty", EMPTY),
}


@pytest.mark.parametrize("way", WAYS)
async def test_each_way_to_take_a_name_is_refused_until_protection_is_lifted(guarded: HttpService, way: str) -> None:
    (subject, of), before = WAYS[way], (await guarded.client.get(WAYS[way][1])).body

    refused = await ended(guarded, way)

    assert (refused.status, refused.error_type) == (409, "CommitFailedException")
    assert f"{subject} is protected, and nothing was changed" in refused.message
    assert 'POST {"arco.protected": null}' in refused.message
    assert (await guarded.client.get(of)).body == before
    assert (await guarded.client.post(f"{of}/governance", LIFT)).status == 200
    assert (await ended(guarded, way)).status in (200, 204)


@pytest.mark.parametrize("name", ["plain", "a.b", 'a "quote"', "it's; $(x)"])
async def test_the_command_of_a_refusal_lifts_the_protection(client: Client, name: str) -> None:
    there = f"{DB}/tables/{quote(name, safe='')}"
    assert (await client.post(f"{DB}/tables", {"name": name, "schema": schema("x")})).status == 200
    assert (await client.post(f"{there}/governance", PROTECT)).status == 200

    command = shlex.split((await client.delete(there)).message.partition("or run: ")[2])

    assert command[:3] == ["arco", "governance", "set"]
    assert parse_identifier(command[3]) == (("db",), name)
    assert command[4:] == ["--remove", "arco.protected"]


async def test_the_command_of_a_namespace_has_its_option(guarded: HttpService) -> None:
    assert (await guarded.client.delete(EMPTY)).message.endswith(
        "or run: arco governance set empty --namespace --remove arco.protected"
    )


async def test_a_namespace_with_generic_tables_and_semantic_models_alone_is_protected_too(service: HttpService) -> None:
    """They are not, so they can be dropped, and the namespace stays."""
    client = service.client
    await client.delete(T)
    await service.generic_table("g")
    await service.semantic_model("m")
    assert (await client.post(f"{DB}/governance", PROTECT)).status == 200

    refused = [await client.delete(DB)]
    assert (await client.delete(f"{POLARIS_DB}/generic-tables/g")).status == 204
    refused.append(await client.delete(DB))
    assert (await client.delete(f"{POLARIS_DB}/semantic-models/m")).status == 204
    refused.append(await client.delete(DB))

    assert [answer.status for answer in refused] == [409] * 3
    assert all("Namespace db is protected" in answer.message for answer in refused)
    assert (await client.post(f"{DB}/governance", LIFT)).status == 200
    assert (await client.delete(DB)).status == 204


async def test_false_lifts_protection_as_null_does(guarded: HttpService) -> None:
    assert (await guarded.client.post(f"{T}/governance", {"arco.protected": "false"})).status == 200

    assert (await guarded.client.delete(T)).status == 204


@pytest.mark.parametrize("value", ["True", "yes", "", "1", True, 1])
@pytest.mark.parametrize("of", [T, DB])
async def test_protection_has_no_other_values(client: Client, of: str, value: str | int) -> None:
    answer = await client.post(f"{of}/governance", {"arco.protected": value})

    assert (answer.status, "'arco.protected': expected" in answer.message) == (400, True)


async def test_commits_to_what_is_protected_go_on(guarded: HttpService) -> None:
    client = guarded.client

    assert (await client.post(T, set_property("a", "1"))).status == 200
    assert (await client.post(f"{EMPTY}/properties", {"updates": {"a": "1"}})).status == 200

    assert (await client.delete(T)).status == (await client.delete(EMPTY)).status == 409


async def test_a_rename_to_the_name_of_what_is_protected_finds_it_taken(guarded: HttpService) -> None:
    await guarded.table("u")

    answer = await guarded.client.post("/v1/wh/tables/rename", renaming("u", "t"))

    assert (answer.status, answer.error_type) == (409, "AlreadyExistsException")


async def test_what_is_in_a_protected_namespace_is_not_protected_by_that(service: HttpService) -> None:
    assert (await service.client.post(f"{DB}/governance", PROTECT)).status == 200

    assert (await service.client.delete(T)).status == 204
    assert (await service.client.delete(DB)).error_type == "CommitFailedException"


async def test_a_refused_drop_is_refused_again_under_its_key_and_not_under_another(guarded: HttpService) -> None:
    key, client = guarded.key(), guarded.client
    assert (await client.delete(T, idempotency_key=key)).status == 409
    assert (await client.post(f"{T}/governance", LIFT)).status == 200

    assert (await client.delete(T, idempotency_key=key)).status == 409
    assert (await client.delete(T, idempotency_key=guarded.key())).status == 204


async def test_another_server_that_knew_the_table_without_protection_refuses(service: HttpService) -> None:
    other = service.serve()
    assert (await other.get(T)).status == (await other.get(DB)).status == 200
    for of in (T, DB):
        assert (await service.client.post(f"{of}/governance", PROTECT)).status == 200

    assert [(await other.delete(of)).status for of in (T, DB)] == [409, 409]


async def test_history_labels_and_records_show_protection(guarded: HttpService) -> None:
    session = guarded.session()
    assert (await guarded.client.post(f"{T}/governance", {**LIFT, "arco.owner": "ada"})).status == 200

    entries = [each async for each in history(session)][:2]
    assert [(each["kind"], each["governance"], each["protected"]) for each in entries] == [
        ("govern-table", ["arco.owner", "arco.protected"], False),
        ("govern-namespace", ["arco.protected"], True),
    ]
    assert (await inspect_relation(guarded.session(), ("db",), "v"))["governance"] == PROTECT
    assert (await guarded.client.get(V)).json["labels"] == {"object-labels": PROTECT}
    assert (await guarded.client.get(EMPTY)).json["properties"]["arco.protected"] == "true"  # type: ignore[index,call-overload]


async def test_a_notification_drops_no_protected_table(service: HttpService) -> None:
    document = (await service.client.get(T)).json["metadata"]
    assert isinstance(document, dict)
    external = HttpService(settings=Settings("wh", external=True))
    file = await left(external, document)
    sent = [notification(document, event, at, file) for event, at in (("CREATE", 1), ("DROP", 2), ("UPDATE", 3))]
    client, path = external.client, f"{T}/notifications"
    assert (await client.post(path, sent[0])).status == 204
    assert (await client.post(f"{T}/governance", PROTECT)).status == 200

    refused = await client.post(path, sent[1])

    assert (refused.status, "Table db.t is protected" in refused.message) == (409, True)
    assert (await client.post(path, sent[2])).status == 204
    assert (await client.post(f"{T}/governance", LIFT)).status == 200
    assert (await client.post(path, notification(document, "DROP", 4, file))).status == 204
