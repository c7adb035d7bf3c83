"""Comparisons over HTTP: what differs between two versions of a table or view, however they are named."""

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import mapping, objects
from storage_backends import Found
from tests.support.http_service import HttpService
from tools.support.asgi_client import Client
from tools.support.request_bodies import append_snapshot, set_property
from tools.support.wrapped_stores import CountingStore, DelayingStore

DB = "/v1/wh/namespaces/db"
T = f"{DB}/tables/t"
V = f"{DB}/views/v"


async def compared(client: Client, query: str, of: str = T) -> JsonObject:
    answer = await client.get(f"{of}/compare?{query}")
    assert answer.status == 200, answer.body
    return answer.json


@pytest.fixture
async def changed(service: HttpService) -> HttpService:
    """The table `t` with six versions: a property each in 1 and 2, a snapshot each in 3 and 4, a property in 5."""
    for number in range(1, 6):
        service.clock.ms += 60_000
        body = set_property(f"p{number}", str(number))
        if number in (3, 4):
            body = append_snapshot(number, service.clock.now_ms(), f"memory:///wh/warehouse/t/metadata/{number}.avro")
            summary: JsonObject = {"operation": "append", "total-records": str(number * 10)}
            snapshot = mapping(objects(body, "updates")[0], "snapshot")
            snapshot |= {"summary": summary, **({"parent-snapshot-id": 3} if number == 4 else {})}
        made = await service.client.post(T, body)
        assert made.status == 200, made.body
    return service


async def test_versions_are_named_by_numbers(changed: HttpService) -> None:
    found = await compared(changed.client, "from=1&to=3")

    assert (found["type"], found["equal"]) == ("table", False)
    versions = [mapping(found, side)["version"] for side in ("from", "to")]
    assert versions == [1, 3]
    assert found["properties"] == {"added": {"p2": "2"}, "dropped": {}, "changed": {}}
    assert mapping(found, "size")["records"] == {"from": 0, "to": 30}
    assert mapping(found, "snapshots")["between"] == [3]
    assert mapping(found, "to")["snapshot-id"] == 3


async def test_the_second_is_the_current_one_by_default(changed: HttpService) -> None:
    found = await compared(changed.client, "from=5")

    assert (found["equal"], mapping(found, "to")["version"]) == (True, 5)
    assert await compared(changed.client, "from=2") == await compared(changed.client, "from=2&to=5")


async def test_versions_are_named_by_ids_and_snapshots(changed: HttpService) -> None:
    entries = objects((await changed.client.get(f"{T}/timeline")).json, "versions")
    ids = {entry["version"]: entry["id"] for entry in entries}

    by_number = await compared(changed.client, "from=3&to=4")

    assert await compared(changed.client, f"from={ids[3]}&to={ids[4]}") == by_number
    assert await compared(changed.client, "from=snapshot:3&to=snapshot:4") == by_number
    assert mapping(by_number, "snapshots")["relation"] == "ahead"


@pytest.mark.parametrize(
    "query", ["", "to=1", "from=x", "from=snapshot:x", "from=1&from=2", "from=snapshot:-1", "from="]
)
async def test_what_names_no_version_is_refused(changed: HttpService, query: str) -> None:
    assert (await changed.client.get(f"{T}/compare?{query}")).status == 400


@pytest.mark.parametrize("query", ["from=77", "from=snapshot:77", f"from=1-{'0' * 64}", "from=1&to=77"])
async def test_versions_that_do_not_exist_are_not_found(changed: HttpService, query: str) -> None:
    answer = await changed.client.get(f"{T}/compare?{query}")

    assert (answer.status, answer.error_type) == (404, "NotFoundException")


async def test_a_version_without_its_metadata_file_is_named(changed: HttpService) -> None:
    entries = objects((await changed.client.get(f"{T}/timeline")).json, "versions")
    [location] = [str(entry["metadata-location"]) for entry in entries if entry["version"] == 1]
    await changed.store.delete(location.removeprefix("memory:///"))

    answer = await changed.client.get(f"{T}/compare?from=1")

    assert answer.status == 404
    assert location in answer.message


async def test_a_view_is_compared_by_its_sql(service: HttpService) -> None:
    await service.view("v")
    metadata = mapping((await service.client.get(V)).json, "metadata")
    version = {**objects(metadata, "versions")[0], "version-id": 2}
    version["representations"] = [{"type": "sql", "sql": "select 2 as x", "dialect": "spark"}]
    update: JsonObject = {
        "updates": [
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]
    }
    assert (await service.client.post(V, update)).status == 200

    found = await compared(service.client, "from=0", V)

    changes = {"spark": {"from": "select 1 as x", "to": "select 2 as x"}}
    assert mapping(found, "representations")["changed"] == changes
    assert found["view-versions"] == {"current": {"from": 1, "to": 2}, "added": [2], "dropped": []}
    assert (await service.client.get(f"{V}/compare?from=snapshot:1")).status == 400


async def test_a_comparison_reads_two_files_beside_the_table(changed: HttpService) -> None:
    store = CountingStore(DelayingStore(changed.store, 0.002))
    changed.store = store  # type: ignore[assignment]  # it passes everything on
    cold = changed.serve()

    with store.measure() as measured:
        await compared(cold, "from=1&to=2")
    assert (measured.depth, measured.calls) == (5, 7)
    with store.measure() as measured:
        await compared(cold, "from=snapshot:3&to=snapshot:4")
    assert measured.calls <= 25


async def test_long_searches_keep_to_25_calls(service: HttpService) -> None:
    kept: JsonObject = {"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "1"}}
    assert (await service.client.post(T, {"updates": [kept]})).status == 200
    for number in range(30):
        assert (await service.client.post(T, set_property("a", str(number)))).status == 200
    store = CountingStore(service.store)
    service.store = store  # type: ignore[assignment]  # it passes everything on
    cold = service.serve()

    with store.measure() as measured:
        assert (await cold.get(f"{T}/compare?from=1&to=2")).status == 404
    assert measured.calls <= 25
    with store.measure() as measured:
        assert (await cold.get(f"{T}/compare?from=25&to=26")).status == 200
    assert measured.calls <= 25


async def test_reading_old_versions_leaves_the_files_as_they_are(changed: HttpService) -> None:
    before = {key: await changed.store.get(key) for key in changed.store.keys("")}

    await compared(changed.client, "from=1&to=2")

    after = {key: await changed.store.get(key) for key in changed.store.keys("")}
    assert [*map(type, after.values())] == [Found] * len(before)
    assert before == after
