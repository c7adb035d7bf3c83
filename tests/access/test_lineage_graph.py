"""The graph of lineage shows a caller the names of tables that it may read, and no others."""

import uuid
from collections.abc import Sequence

import pytest
import ulid

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning import lineage_graph
from arco_catalog.state.fields import mapping, objects
from tests.access.lake import DB, Lake, T
from tests.support.realm_service import on_catalog, on_table
from tools.support.asgi_client import Client
from tools.support.request_bodies import append_snapshot

RUN = "0190b7a5-1f7c-7c6a-b9ad-3c2c5c1b2f10"
SERVO = {
    "x_arco_servo_run_id": str(ulid.ULID.from_uuid(uuid.UUID(RUN))),
    "x_arco_servo_task_id": "01ARZ3NDEKTSV4RRFFQ69G5FAW",
}


def dataset(name: str, snapshot_id: int | None = None) -> JsonObject:
    known: JsonObject = {"namespace": "http://lake", "name": name}
    facets: JsonObject = {"version": {"datasetVersion": str(snapshot_id)}}
    return known if snapshot_id is None else {**known, "facets": facets}


async def send(client: Client, inputs: Sequence[JsonObject], outputs: Sequence[JsonObject], run: str = RUN) -> None:
    event: JsonObject = {
        "eventType": "COMPLETE",
        "eventTime": "2026-01-01T00:00:00Z",
        "producer": "x",
        "schemaURL": "x",
        "run": {"runId": run},
        "job": {"namespace": "secret", "name": "secret-job"},
        "inputs": [*inputs],
        "outputs": [*outputs],
    }
    assert (await client.post("/api/v1/lake/lineage", event)).status == 201


async def test_neighbours_that_the_caller_may_not_read_have_no_names() -> None:
    lake = await Lake().start()
    await send(
        lake.manager, [dataset("lake.db.u"), {"namespace": "kafka://b", "name": "clicks"}], [dataset("lake.db.t")]
    )
    reader = await lake.app.principal("reader", on_table("TABLE_READ_PROPERTIES", "db", "t"))
    owner = await lake.app.principal("owner", on_catalog("TABLE_READ_PROPERTIES"))

    answer = await reader.get(f"{T}/lineage")

    nodes = objects(answer.json, "nodes")
    assert [(node["type"], node["name"], node["dataset"]) for node in nodes] == [
        ("table", "t", None),
        ("hidden", None, None),
        ("hidden", None, None),
    ]
    assert not [part for part in (b"secret", b"clicks", b'"u"', RUN.encode()) if part in answer.body]
    assert [edge["job"] for edge in objects(answer.json, "edges")] == [None, None]
    everything = (await owner.get(f"{T}/lineage")).json
    assert [node["type"] for node in objects(everything, "nodes")] == ["table", "table", "dataset"]
    assert (await reader.get(f"{DB}/tables/u/lineage")).status in (403, 404)


async def test_an_edge_is_verified_if_run_and_commit_name_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = await Lake().start()
    servo = await lake.app.principal("servo", on_catalog("CATALOG_MANAGE_CONTENT"))
    found = await lake.app.ok("GET", "principals/servo")
    change: JsonObject = {"currentEntityVersion": found["entityVersion"], "properties": {"arco.source": "true"}}
    await lake.app.ok("PUT", "principals/servo", change)
    location = mapping((await servo.get(T)).json, "metadata")["location"]
    body = append_snapshot(7, lake.app.clock.now_ms(), f"{location}/metadata/7.avro")
    assert (await servo.post(T, body, **SERVO)).status == 200

    with monkeypatch.context() as patch:
        patch.setattr(lineage_graph, "MAX_EDGES", 0)
        full = (await servo.get(f"{T}/lineage")).json
    assert (objects(full, "edges"), full["cut-off"]) == ([], ["edges"])
    [unsourced] = objects((await servo.get(f"{T}/lineage")).json, "edges")
    await send(servo, [dataset("lake.db.u")], [dataset("lake.db.t", 7)])
    [edge] = objects((await servo.get(f"{T}/lineage")).json, "edges")

    assert (unsourced["from"], unsourced["to"], unsourced["confidence"]) == (None, "n0", "Verified")
    shown = {name: edge[name] for name in ("from", "confidence", "run-id", "version", "snapshot-id", "matched-by")}
    assert shown == {
        "from": "n1",
        "confidence": "Verified",
        "run-id": RUN,
        "version": 1,
        "snapshot-id": 7,
        "matched-by": "snapshot",
    }
    await send(lake.manager, [dataset("lake.db.u")], [dataset("lake.db.t", 7)])
    [best] = objects((await servo.get(f"{T}/lineage")).json, "edges")
    assert best == edge


async def test_an_event_of_another_sender_is_a_claim() -> None:
    lake = await Lake().start()
    location = mapping((await lake.manager.get(T)).json, "metadata")["location"]
    body = append_snapshot(7, lake.app.clock.now_ms(), f"{location}/metadata/7.avro")
    assert (await lake.manager.post(T, body)).status == 200
    reader = await lake.app.principal("reader", on_catalog("TABLE_READ_PROPERTIES"))

    await send(reader, [dataset("lake.db.u")], [dataset("lake.db.t", 7)])

    [edge] = objects((await reader.get(f"{T}/lineage")).json, "edges")
    assert (edge["confidence"], edge["matched-by"]) == ("DeclaredUnverified", "snapshot")


async def test_an_event_about_a_hidden_table_does_not_show_whether_it_exists() -> None:
    lake = await Lake().start()
    await send(lake.manager, [dataset("lake.db.u")], [dataset("lake.db.u"), dataset("lake.db.t")])
    await send(lake.manager, [dataset("lake.db.t")], [{"namespace": "kafka://b", "name": "after"}])
    guesser = await lake.app.principal("guesser", on_table("TABLE_READ_PROPERTIES", "db", "t"))

    async def shape(name: str) -> tuple[int, int]:
        await send(guesser, [dataset(name), dataset(f"lake.{name}")], [dataset("lake.db.t")])
        graph = (await guesser.get(f"{T}/lineage?depth=5")).json
        assert {node["depth"] for node in objects(graph, "nodes")[1:]} == {1}
        return len(objects(graph, "nodes")), len(objects(graph, "edges"))

    before = await shape("db.missing")
    assert before == (1 + 2 + 2, 4)
    assert await shape("db.u") == (before[0] + 2, before[1] + 2)


async def test_reasons_are_for_callers_who_may_read_the_properties_of_all_tables() -> None:
    lake = await Lake().start()
    await send(lake.manager, [], [dataset("lake.db.u")])
    reader = await lake.app.principal("reader", on_table("TABLE_READ_PROPERTIES", "db", "t"))
    owner = await lake.app.principal("owner", on_catalog("TABLE_READ_PROPERTIES"))

    assert (await reader.get(f"{T}/lineage?explain=true")).json["without-edges"] is None
    found = mapping((await owner.get(f"{T}/lineage?explain=true")).json, "without-edges")
    assert [run["reason"] for run in objects(found, "runs")] == ["no-inputs"]


async def test_a_reason_does_not_show_whether_a_view_exists_that_the_caller_may_not_read() -> None:
    lake = await Lake().start()
    owner = await lake.app.principal("owner", on_catalog("TABLE_READ_PROPERTIES"))

    async def reason(name: str) -> str:
        run = str(uuid.uuid4())
        await send(owner, [dataset(f"lake.{name}")], [{"namespace": "kafka://b", "name": "x"}], run)
        runs = objects(mapping((await owner.get(f"{T}/lineage?explain=true")).json, "without-edges"), "runs")
        [found] = [each for each in runs if each["run-id"] == run]
        return f"{found['reason']} {found['message']}"

    assert (await reason("db.missing")).startswith("unknown-datasets")
    assert (await reason("db.u")).startswith("other-tables")
    assert await reason("db.v") == await reason("db.missing")
