"""`lineage_events`, `lineage` and `reports` are brought up to date as the other tables are: each event once, whatever
dies (docs/design/pipeline.md#rule-8)."""

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.table import Table

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.paths import Paths
from reconciler.compact.edges import TOLERANCE_MS, ulid_of_uuid
from reconciler.system import tables
from tests.compact.lake import ROW, Killed, ServedLake
from tests.compact.test_lineage import SCAN
from tools.demo.server import WAREHOUSE, serving
from tools.support.openlineage import Query, dataset

RUNS = 40
PATHS = Paths(WAREHOUSE)


@pytest.fixture
def reporting(tmp_path: Path) -> Iterator[ServedLake]:
    """Three tables, each of which is filled from the one before by a run that tells of it."""
    with serving(f"file:{tmp_path / 'store'}", tmp_path / "server.log", "--metrics", "store") as server:
        made = ServedLake(server)
        made.append("raw")
        copy(made, "raw", "clean")
        copy(made, "clean", "daily")
        yield made


def copy(lake: ServedLake, source: str, target: str) -> Query:
    """A query that reads one table and appends to another, and its events."""
    read = lake.client.load_table(f"db.{source}")
    written = lake.client.create_table_if_not_exists(f"db.{target}", ROW.schema)
    query = Query(lake.server.uri, f"nightly.append_data.db_{target}")
    query.start([read], [written])
    written.append(ROW)
    query.complete([dataset(read)], [lake.client.load_table(f"db.{target}")])
    return query


def report(lake: ServedLake, namespace: str, table: str) -> None:
    """A report of a scan, as an engine sends it."""
    where = f"{lake.server.uri}/v1/{WAREHOUSE}/namespaces/{namespace}/tables/{table}/metrics"
    body = json.dumps(SCAN).encode()
    request = urllib.request.Request(where, body, {"Content-Type": "application/json"}, method="POST")
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 204


def edges(lake: ServedLake) -> list[tuple[object, ...]]:
    """What `lineage` says, by names."""
    rows = lake.rows(tables.LINEAGE)
    return sorted((row["input_name"], row["output_name"], row["matched_by"]) for row in rows)


def snapshot(table: Table) -> int:
    current = table.current_snapshot()
    assert current is not None
    return current.snapshot_id


async def test_runs_that_tell_of_themselves_are_edges_between_snapshots(reporting: ServedLake) -> None:
    stats = await reporting.compact()
    assert (stats.rows["lineage_events"], stats.rows["lineage"]) == (8, 2)
    assert edges(reporting) == [("clean", "daily", "snapshot"), ("raw", "clean", "snapshot")]
    raw, clean = (reporting.client.load_table(f"db.{name}") for name in ("raw", "clean"))
    [edge] = [row for row in reporting.rows(tables.LINEAGE) if row["output_name"] == "clean"]
    assert (edge["input_snapshot_id"], edge["output_snapshot_id"]) == (snapshot(raw), snapshot(clean))
    assert (edge["lineage_confidence"], edge["principal"]) == ("DeclaredUnverified", "anonymous")
    keys = {row["commit_key"]: row["name"] for row in reporting.rows(tables.COMMITS)}
    assert keys[edge["commit_key"]] == "clean"


async def test_a_run_without_news_reads_and_commits_nothing(reporting: ServedLake) -> None:
    report(reporting, "db", "raw")
    await reporting.compact()
    again = await reporting.compact()
    assert (again.rows, again.commits, again.read) == ({}, 0, 0)

    copy(reporting, "raw", "daily")
    report(reporting, "db", "raw")
    more = await reporting.compact()
    assert more.read == 2 + 1 + 3  # events, report, and as ever a receipt and its metadata for two kinds of tables
    assert (more.rows["lineage"], more.rows["reports"], more.rows["commits"]) == (1, 1, 1)


async def test_an_event_that_comes_again_after_midnight_is_told_once(reporting: ServedLake) -> None:
    folder = reporting.folder / "_catalog" / "events"
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    there = {file: file.read_bytes() for file in folder.glob("*/openlineage/*.json")}
    for file, body in there.items():
        reporting.put(PATHS.lineage_events_of_day(yesterday) + file.name, body)
        file.unlink()
    assert (await reporting.compact()).rows["lineage_events"] == 8

    for file, body in there.items():
        file.write_bytes(body)
    again = await reporting.compact()
    assert (again.rows, again.read) == ({}, 0)


async def test_a_run_that_begins_in_one_batch_and_ends_in_another_is_whole(reporting: ServedLake) -> None:
    await reporting.compact()
    read, written = (reporting.client.load_table(f"db.{name}") for name in ("raw", "daily"))
    await asyncio.sleep(2 * TOLERANCE_MS / 1000)  # what filled the table before is of no time of the run
    query = Query(reporting.server.uri, "late")
    query.start([read], [written])
    await reporting.compact()
    written.append(ROW)
    query.send("COMPLETE", [], [dataset(written, version=False)])
    await reporting.compact()
    assert edges(reporting).count(("raw", "daily", "time")) == 1


async def test_an_edge_is_verified_if_the_receipt_of_a_servo_task_names_the_run(reporting: ServedLake) -> None:
    query = copy(reporting, "raw", "daily")
    [file] = newest(reporting, "daily")
    said: JsonObject = json.loads(file.read_bytes())
    source: JsonObject = {"kind": "Servo", "run_id": ulid_of_uuid(query.run), "task_id": "T", "principal": "anonymous"}
    file.write_bytes(json.dumps({**said, "source": source}).encode())
    await reporting.compact()
    rows = [row for row in reporting.rows(tables.LINEAGE) if row["commit_key"] == said["commit_key"]]
    assert sorted((row["input_name"] or "", row["lineage_confidence"]) for row in rows) == [
        ("", "Verified"),
        ("raw", "Verified"),
    ]
    assert {row["lineage_confidence"] for row in reporting.rows(tables.LINEAGE)} == {"Verified", "DeclaredUnverified"}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_killed_driver_leaves_each_edge_once(reporting: ServedLake, after: bool) -> None:
    report(reporting, "db", "raw")
    killed = 0
    for _ in range(RUNS):
        catalog = reporting.mortal()
        catalog.dies_at, catalog.after = (1, True) if after else (2, False)
        try:
            await reporting.compact(catalog, batch_size=2)
        except Killed:
            killed += 1
        else:
            break
    assert killed >= 7
    reporting.assert_each_event_once()
    assert edges(reporting) == [("clean", "daily", "snapshot"), ("raw", "clean", "snapshot")]
    events = (reporting.folder / "_catalog" / "events").glob("*/openlineage/*.json")
    assert {row["event"] for row in reporting.rows(tables.LINEAGE_EVENTS)} == {file.stem for file in events}
    assert len(reporting.rows(tables.LINEAGE_EVENTS)) == 8
    assert len(reporting.rows(tables.REPORTS)) == 1


async def test_reports_are_rows_but_for_those_of_the_pipelines_own_tables(reporting: ServedLake) -> None:
    report(reporting, "db", "raw")
    await reporting.compact()
    report(reporting, "system", "commits")
    await reporting.compact()
    [row] = reporting.rows(tables.REPORTS)
    assert (row["report_type"], row["name"], row["data_files"]) == ("scan", "raw", 3)


def newest(lake: ServedLake, table: str) -> list[Path]:
    """The file of the newest receipt of a table."""
    files = (lake.folder / "_catalog" / "events").glob("*/iceberg/committed/*.json")
    of_table = [file for file in files if json.loads(file.read_bytes())["name"] == table]
    return sorted(of_table, key=lambda file: int(json.loads(file.read_bytes())["metadata_ms"]))[-1:]
