"""Scans in a realm: who may plan them, and which manifests a plan reads."""

from typing import Any

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.scans import planner
from storage_backends.memory import MemoryStore
from tests.access.lake import DB, Lake, T
from tests.support.realm_service import on_table
from tests.support.scanned_tables import Manifest, ScannedTable, commit_of, entry
from tools.support.asgi_client import Answer, Client

U = f"{DB}/tables/u"


@pytest.fixture
async def lake(monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A catalog whose table `t` has files enough for plan tasks."""
    monkeypatch.setattr(planner, "PART_WEIGHT", 20)
    lake = await Lake().start()
    table = await scanned(lake, T)
    files = [entry(f"{table.location}/data/{number}.parquet") for number in range(60)]
    await lake.ok(await lake.manager.post(T, commit_of(await table.snapshot(1, [Manifest(files)]))))
    return lake


async def scanned(lake: Lake, path: str) -> ScannedTable:
    metadata: Any = (await lake.ok(await lake.manager.get(path)))["metadata"]
    assert isinstance(lake.app.store, MemoryStore)
    return ScannedTable(lake.app.store, metadata["location"])


async def planned(client: Client, path: str = T) -> Answer:
    return await client.post(f"{path}/plan", {})


async def first_task(client: Client, found: Answer, path: str = T) -> Answer:
    tasks: Any = found.json["plan-tasks"]
    return await client.post(f"{path}/tasks", {"plan-task": tasks[0]})


async def test_a_reader_plans_and_another_reader_goes_on(lake: Lake) -> None:
    one = await lake.app.principal("one", on_table("TABLE_READ_DATA", "db", "t"))
    other = await lake.app.principal("other", on_table("TABLE_READ_DATA", "db", "t"))
    found = await planned(one)
    assert (await first_task(other, found)).json["file-scan-tasks"]
    assert (await other.get(f"{T}/plan/{found.json['plan-id']}")).body == found.body


@pytest.mark.parametrize("privilege", ["TABLE_READ_PROPERTIES", "TABLE_LIST"])
async def test_a_token_of_a_reader_gives_others_nothing(lake: Lake, privilege: str) -> None:
    found = await planned(lake.manager)
    other = await lake.app.principal("other", on_table(privilege, "db", "t"), on_table("TABLE_READ_DATA", "db", "u"))
    plan = f"plan/{found.json['plan-id']}"
    for answer in (
        await planned(other),
        await first_task(other, found),
        await other.get(f"{T}/{plan}"),
        await other.delete(f"{T}/{plan}"),
        await other.get(f"{T}/credentials?planId={found.json['plan-id']}"),
    ):
        assert answer.status == 403, answer.body
    assert (await first_task(other, found, U)).error_type == "NoSuchPlanTaskException"
    assert (await other.get(f"{U}/{plan}")).error_type == "NoSuchPlanIdException"


async def test_a_right_that_is_revoked_ends_a_plan(lake: Lake) -> None:
    reader = await lake.app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))
    found = await planned(reader)
    await lake.app.revoke("reader", on_table("TABLE_READ_DATA", "db", "t"))
    assert (await first_task(reader, found)).status in (403, 404)


async def test_a_plan_reads_no_manifests_of_another_table(lake: Lake) -> None:
    """A writer of `u` may commit a manifest list that names the manifests of `t`, whose files it may not know."""
    theirs, mine = await scanned(lake, T), await scanned(lake, U)
    await theirs.snapshot(1, [Manifest([entry(f"{theirs.location}/data/secret.parquet")])])
    mine.written[0] = theirs.written[1]
    stolen: JsonObject = await mine.snapshot(2, [], parent=0)
    del stolen["parent-snapshot-id"]
    grants = [on_table(each, "db", "u") for each in ("TABLE_READ_DATA", "TABLE_WRITE_DATA")]
    writer = await lake.app.principal("writer", *grants)
    await lake.ok(await writer.post(U, commit_of(stolen)))
    answer = await planned(writer, U)
    assert answer.status == 400
    assert "outside of its locations" in answer.message
    assert "secret.parquet" not in answer.message


async def test_a_catalog_can_be_given_no_planning_mode_that_there_is_not(lake: Lake) -> None:
    properties: JsonObject = {"default-base-location": "memory:///lake", "scan-planning-mode": "sever"}
    refused = await lake.app.manage("PUT", "catalogs/lake", {"properties": properties})
    assert refused.status == 400
    assert refused.message == "Invalid property scan-planning-mode: sever (expected client or server)"
    await lake.app.ok("PUT", "catalogs/lake", {"properties": {**properties, "scan-planning-mode": "Server"}})
