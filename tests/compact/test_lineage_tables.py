"""`lineage_events`, `lineage` and `reports` are brought up to date as the other tables are: each event once, whatever
dies (docs/design/pipeline.md#rule-8)."""

import asyncio
import json
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from pyiceberg.table import Table

from arco_catalog.cli import collected_edges
from arco_catalog.embed import serving
from arco_catalog.http.options import HttpOptions
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.lineage_edges import TOLERANCE_MS, ulid_of_uuid
from arco_catalog.planning.lineage_names import digest_in
from arco_catalog.state.paths import Paths
from arco_catalog.state.watermarks import BATCH
from reconciler.system import tables
from reconciler.system.definition import SystemTable
from tests.cli.in_process import arco
from tests.compact.lake import ROW, Killed, ServedLake, in_another_thread
from tests.compact.test_lineage import SCAN
from tests.support.filled_store import FilledStore
from tools.demo.server import WAREHOUSE
from tools.support.openlineage import Query, dataset

RUNS = 40
PATHS = Paths(WAREHOUSE)


@contextmanager
def serving_reports(store: str) -> Iterator[ServedLake]:
    """A server in a thread of this process that saves engines' reports."""
    with serving(store, warehouse=WAREHOUSE, http=HttpOptions(keep_reports=True)) as server:
        yield ServedLake(server)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> FilledStore:
    """Three tables, each of which is filled from the one before by a run that sends its events."""

    def fill(url: str) -> None:
        with serving_reports(url) as lake:
            lake.append("raw")
            copy(lake, "raw", "clean")
            copy(lake, "clean", "daily")

    return FilledStore.of(tmp_path_factory.mktemp("copied"), fill)


@pytest.fixture
def reporting(copied: FilledStore) -> Iterator[ServedLake]:
    """Those three tables, over a server."""
    with serving_reports(copied.restore()) as lake:
        yield lake


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


def die_at(table: Table, definition: SystemTable) -> None:
    """The driver dies before it commits to a table."""
    if table.name()[-1] == definition.name:
        raise Killed


def of_servo(lake: ServedLake) -> list[object]:
    """The edges that receipts of Servo are by themselves."""
    return [row["edge_id"] for row in lake.rows(tables.LINEAGE) if row["task_id"] and row["input_dataset"] is None]


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
    key = by_servo(reporting, "daily", query.run)
    await reporting.compact()
    rows = [row for row in reporting.rows(tables.LINEAGE) if row["commit_key"] == key]
    assert sorted((row["input_name"] or "", row["lineage_confidence"]) for row in rows) == [
        ("", "Verified"),
        ("raw", "Verified"),
    ]
    assert {row["lineage_confidence"] for row in reporting.rows(tables.LINEAGE)} == {"Verified", "DeclaredUnverified"}


async def test_a_run_that_was_overtaken_moves_no_watermark_back(reporting: ServedLake) -> None:
    await reporting.compact()
    reporting.append("raw")  # of no run: `lineage` gets no row for it, and its watermark is moved alone
    slower = reporting.mortal()

    def overtake(table: Table) -> None:
        if table.name()[-1] != tables.LINEAGE.name:
            return
        slower.beforehand = None
        reporting.append("raw")
        by_servo(reporting, "raw", str(uuid.uuid4()))
        in_another_thread(lambda: asyncio.run(reporting.compact()))

    slower.beforehand = overtake
    assert (await reporting.compact(slower)).overtaken == 1
    reporting.append("raw")
    await reporting.compact()
    assert len(of_servo(reporting)) == 1
    reporting.assert_each_event_once()


@pytest.mark.parametrize("killed", [False, True], ids=["", "killed"])
async def test_an_edge_whose_commit_was_not_known_yet_is_told_again_with_it(
    reporting: ServedLake, killed: bool
) -> None:
    receipt = reporting.receipt_of("daily")
    body = receipt.read_bytes()
    receipt.unlink()
    await reporting.compact()
    assert edges(reporting) == [("clean", "daily", None), ("raw", "clean", "snapshot")]

    receipt.write_bytes(body)
    catalog = reporting.mortal()
    if killed:
        catalog.beforehand = lambda table: die_at(table, tables.LINEAGE)
        with pytest.raises(Killed):
            await reporting.compact(catalog)
    assert (await reporting.compact()).rows["lineage"] == 1
    assert edges(reporting) == [("clean", "daily", "snapshot"), ("raw", "clean", "snapshot")]
    reporting.assert_each_event_once()
    assert (await reporting.compact()).commits == 0


async def test_an_edge_of_servo_that_is_there_is_not_told_again(reporting: ServedLake) -> None:
    by_servo(reporting, "daily", str(uuid.uuid4()))
    await reporting.compact()
    lineage = reporting.client.load_table(("system", tables.LINEAGE.name))
    lineage.transaction().set_properties({BATCH: "0"}).commit_transaction()
    await reporting.compact()
    assert len(of_servo(reporting)) == 1


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
    assert {row["event"] for row in reporting.rows(tables.LINEAGE_EVENTS)} == {digest_in(file.stem) for file in events}
    assert len(reporting.rows(tables.LINEAGE_EVENTS)) == 8
    assert len(reporting.rows(tables.REPORTS)) == 1


async def test_reports_are_rows_but_for_those_of_the_pipelines_own_tables(reporting: ServedLake) -> None:
    report(reporting, "db", "raw")
    await reporting.compact()
    report(reporting, "system", "commits")
    await reporting.compact()
    [row] = reporting.rows(tables.REPORTS)
    assert (row["report_type"], row["name"], row["data_files"]) == ("scan", "raw", 3)


def by_servo(lake: ServedLake, table: str, run: str) -> str:
    """Has the receipt of a table's last commit say that a Servo task of a run made it. Returns the commit's key."""
    file = lake.receipt_of(table)
    said: JsonObject = json.loads(file.read_bytes())
    source: JsonObject = {"kind": "Servo", "run_id": ulid_of_uuid(run), "task_id": "T", "principal": "anonymous"}
    file.write_bytes(json.dumps({**said, "source": source}).encode())
    return file.stem


@pytest.mark.parametrize("at", ["store", "server"])
async def test_arco_lineage_shows_collected_edges_whose_events_are_gone(reporting: ServedLake, at: str) -> None:
    await reporting.compact()
    for file in (reporting.folder / "_catalog" / "events").glob("*/openlineage/*.json"):
        file.unlink()
    where = ("--url", reporting.server.uri) if at == "server" else ("--store", reporting.server.store)

    ended = await arco("lineage", "db.daily", "--up", "--depth", "2", *where, "--warehouse", WAREHOUSE)

    tree = [line.split("  by ")[0] for line in ended.out.splitlines()[:3]]
    assert tree == ["db.daily", "   <- db.clean", "      <- db.raw"], ended
    assert ended.out.count("from system.lineage") == 2
    down = await arco("lineage", "db.raw", "--down", "--json", *where, "--warehouse", WAREHOUSE)
    [edge] = json.loads(down.out)["edges"]
    assert (edge["collected"], edge["matched-by"]) == (True, "snapshot")


async def test_arco_lineage_shows_an_edge_once_and_a_note_without_pyiceberg(
    reporting: ServedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    await reporting.compact()
    command = ("lineage", "db.daily", "--up", "--store", reporting.server.store, "--warehouse", WAREHOUSE)

    once = await arco(*command)
    monkeypatch.setattr(collected_edges, "find_spec", {"pyiceberg": 1}.get)
    without = await arco(*command)

    assert (once.out.count("<- db.clean"), "from system.lineage" in once.out) == (1, False), once
    assert "were not read: pyarrow is not installed" in without.out


async def test_arco_lineage_reads_a_part_of_what_is_too_much(
    reporting: ServedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    await reporting.compact()
    monkeypatch.setattr(collected_edges, "MAX_ROWS", 0)

    ended = await arco("lineage", "db.raw", "--json", "--store", reporting.server.store, "--warehouse", WAREHOUSE)

    assert json.loads(ended.out)["cut-off"] == ["collected"]
