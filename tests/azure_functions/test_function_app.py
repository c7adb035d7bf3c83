"""The function app as deployed: names, answers and callers through the API, and the walk of the reconciler."""

import asyncio
import json
import logging
from typing import cast
from urllib.parse import quote

import pytest

from arco_catalog.iceberg.json import JsonObject, dumps
from storage_backends import StoreError
from storage_backends.base import Found
from storage_backends.open import open_store
from tests.azure_functions.conftest import OBJECT_ID, PRINCIPAL, WAREHOUSE, FunctionApp, principal
from tools.support.request_bodies import schema, set_property

pytestmark = pytest.mark.needs("node", "npm")

NAMES = ["two words", "ünïcödé 🧊", "a=b&c", "a/b", "what?", "#1", "100%", "%2F", "a+b", "..."]
NAMESPACES = f"/v1/{WAREHOUSE}/namespaces"


def encoded(*levels: str) -> str:
    return "%1F".join(quote(level, safe="") for level in levels)


async def make(app: FunctionApp, *namespace: str) -> str:
    for depth in range(1, len(namespace) + 1):
        assert (await app.post(NAMESPACES, {"namespace": namespace[:depth]})).status in (200, 409)
    return f"{NAMESPACES}/{encoded(*namespace)}"


def lines(caplog: pytest.LogCaptureFixture) -> list[JsonObject]:
    """What was logged as JSON, as Application Insights gets it."""
    return [json.loads(record.getMessage()) for record in caplog.records if record.name == "arco_lines"]


def bindings(app: FunctionApp, name: str) -> list[JsonObject]:
    return cast(list[JsonObject], json.loads(str(app.functions[name]))["bindings"])


async def test_the_platform_finds_the_api_for_all_paths_and_methods_and_the_schedule(app: FunctionApp) -> None:
    trigger, _ = bindings(app, "api")
    [timer] = bindings(app, "reconcile")

    assert (trigger["type"], trigger["route"], trigger["authLevel"]) == ("httpTrigger", "{*path}", "ANONYMOUS")
    assert {*cast(list[str], trigger["methods"])} >= {"GET", "HEAD", "POST", "DELETE"}
    assert (timer["type"], timer["schedule"]) == ("timerTrigger", "0 */15 * * * *")


@pytest.mark.parametrize("name", NAMES)
async def test_every_name_works_although_the_platform_decodes_paths(app: FunctionApp, name: str) -> None:
    namespace = await make(app, "odd", name)
    made = await app.post(f"{namespace}/tables", {"name": name, "schema": schema("x")})
    assert made.status == 200, made.body
    table = f"{namespace}/tables/{encoded(name)}"

    loaded = await app.get(table)

    assert loaded.json["metadata-location"] == made.json["metadata-location"]
    assert (await app.get(f"{NAMESPACES}?parent={encoded('odd')}")).json["namespaces"] == [["odd", name]]
    assert (await app.post(table, set_property("k", name))).status == 200
    assert (await app.send("DELETE", table)).status == 204
    assert (await app.send("HEAD", table)).status == 404


async def test_generic_tables_and_policies_work_below_polaris(app: FunctionApp) -> None:
    name = "two words"
    await make(app, "native", name)
    below = f"/polaris/v1/{WAREHOUSE}/namespaces/{encoded('native', name)}"
    table, mappings = f"{below}/generic-tables/{encoded(name)}", f"{below}/policies/ours/mappings"
    target: JsonObject = {"target": {"type": "table-like", "path": ["native", name, name]}}

    made = await app.post(f"{below}/generic-tables", {"name": name, "format": "csv"})
    assert made.status == 200, made.body
    assert (await app.get(table)).json == made.json
    policy = {"name": "ours", "type": "retention", "content": "7 days"}
    assert (await app.post(f"{below}/policies", policy)).status == 200
    attached = await app.send("PUT", mappings, dumps(target), {"content-type": "application/json"})
    assert (attached.status, attached.body) == (204, b"")
    query = f"namespace={encoded('native', name)}&target-name={encoded(name)}"
    applicable = await app.get(f"/polaris/v1/{WAREHOUSE}/applicable-policies?{query}")
    assert [each["name"] for each in cast(list[JsonObject], applicable.json["applicable-policies"])] == ["ours"]
    assert (await app.post(mappings, target)).status == 204
    assert (await app.send("DELETE", table)).status == 204
    assert (await app.get(table)).status == 404


async def test_a_request_without_its_target_acts_on_nothing(app: FunctionApp) -> None:
    answer = await app.get("")

    assert answer.status == 400
    assert "path as the client sent it" in answer.message


async def test_a_large_answer_arrives_whole_and_compressed_for_who_asks(app: FunctionApp) -> None:
    namespace = await make(app, "large")
    table = {"name": "t", "schema": schema("x"), "properties": {"long": "x" * 7_000_000}}
    assert (await app.post(f"{namespace}/tables", table)).status == 200

    plain = await app.get(f"{namespace}/tables/t")
    packed = await app.get(f"{namespace}/tables/t", {"accept-encoding": "gzip"})

    metadata = cast(JsonObject, plain.json["metadata"])
    assert cast(JsonObject, metadata["properties"])["long"] == "x" * 7_000_000
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.body) < len(plain.body) / 10


async def test_the_caller_is_the_object_id_that_app_service_authenticated(
    app: FunctionApp, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await make(app, "db")

    assert {line["principal"] for line in lines(caplog)} == {OBJECT_ID}


@pytest.mark.parametrize("said", ["", "no base64", principal(sub="somebody"), "e30=", "W10="])
async def test_an_authenticated_caller_without_a_name_is_refused(app: FunctionApp, said: str) -> None:
    answer = await app.get(NAMESPACES, {PRINCIPAL: said})

    assert answer.status == 401


@pytest.mark.usefixtures("without_authentication")
async def test_without_authentication_a_client_s_own_header_names_nobody(
    app: FunctionApp, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    await make(app, "db")

    assert {line["principal"] for line in lines(caplog)} == {"anonymous"}


async def test_requests_of_a_cold_start_open_the_catalog_once(app: FunctionApp) -> None:
    config = f"/v1/config?warehouse={WAREHOUSE}"

    answers = await asyncio.gather(*(app.get(config) for _ in range(8)))

    assert {answer.status for answer in answers} == {200}
    assert app.module._served is await app.module._app()


async def test_the_timer_writes_what_a_dead_writer_owed_and_logs_its_walk(
    app: FunctionApp, environment: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    namespace = await make(app, "db")
    await app.post(f"{namespace}/tables", {"name": "t", "schema": schema("x")})
    assert (await app.post(f"{namespace}/tables/t", set_property("k", "v"))).status == 200
    store = open_store(environment["ARCO_STORE"], environment)
    listed = (await store.list(f"{WAREHOUSE}/_catalog/events/")).entries
    lost = [entry.key for entry in listed if "/committed/" in entry.key]
    kept = [cast(Found, await store.get(key)).body for key in lost]
    for key in lost:
        await store.delete(key)
    caplog.set_level(logging.INFO)
    caplog.clear()

    await app.call("reconcile", None)

    assert lost
    assert [cast(Found, await store.get(key)).body for key in lost] == kept
    await store.close()
    [line] = lines(caplog)
    assert (line["ReconcileCompleted"], line["ReceiptsWritten"], line["PointersWalked"]) == (1, len(lost), 1)


async def test_the_timer_of_tasks_purges_what_was_dropped_and_logs_what_it_did(
    app: FunctionApp, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ARCO_PURGE_UNDROP_WINDOW", "PT0S")
    namespace = await make(app, "db")
    await app.post(f"{namespace}/tables", {"name": "t", "schema": schema("x")})
    assert (await app.send("DELETE", f"{namespace}/tables/t?purgeRequested=true")).status == 204
    store = open_store(environment["ARCO_STORE"], environment)
    assert (await store.list(f"{WAREHOUSE}/warehouse/")).entries
    caplog.set_level(logging.INFO)
    caplog.clear()

    for _ in range(60):  # times of the store are whole seconds, so it is not due at once
        await app.call("tasks", None)
        if not (await store.list(f"{WAREHOUSE}/warehouse/")).entries:
            break
        await asyncio.sleep(0.2)

    assert not (await store.list(f"{WAREHOUSE}/warehouse/")).entries
    await store.close()
    last = lines(caplog)[-1]
    assert (last["Operation"], last["TasksCompleted"], last["TasksFailed"]) == ("tasks", 1, 0)


async def test_the_timer_of_collection_says_that_it_reached_its_end(
    app: FunctionApp, caplog: pytest.LogCaptureFixture
) -> None:
    await make(app, "db")
    caplog.set_level(logging.INFO)
    caplog.clear()

    await app.call("collect", None)

    [line] = [each for each in lines(caplog) if each["Operation"] == "collect"]
    assert (line["Warehouse"], line["CollectionCompleted"], line["ObjectsCollected"]) == (WAREHOUSE, 1, 0)
    assert line["StateObjects"] != 0


async def test_a_run_that_cannot_reach_the_store_fails_visibly(
    app: FunctionApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCO_STORE", "az://no-such-container/lake")

    with pytest.raises(StoreError):
        await app.call("reconcile", None)
