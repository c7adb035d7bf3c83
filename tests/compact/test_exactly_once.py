"""Each event once, whatever dies and whoever runs beside (docs/design/pipeline.md#rule-3), compared with the receipts
themselves. The catalog is a real server's; the driver and its executors are this process."""

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.table import Table

from arco_catalog.operations.upgrade import upgrade
from arco_catalog.state.paths import Paths
from arco_catalog.state.runtime import SystemRuntime
from reconciler.compact.stats import CompactStats
from reconciler.system import tables
from reconciler.system.rest import KeyedRestCatalog
from tests.compact.lake import ROW, Killed, ServedLake, in_another_thread
from tests.support.dropping_proxy import DroppingProxy, Fate, first_time
from tools.demo.server import WAREHOUSE

RUNS = 40
"""No catalog needs as many commits as this to be brought up to date."""


async def test_every_receipt_is_a_row_and_a_run_without_news_reads_and_commits_nothing(lake: ServedLake) -> None:
    stats = await lake.compact()
    assert (stats.rows["commits"], stats.unreadable_count) == (6, 0)
    lake.assert_each_event_once()

    before = lake.snapshots()
    again = await lake.compact()
    assert (again.rows, again.commits, again.read) == ({}, 0, 0)
    assert lake.snapshots() == before


async def test_commits_of_an_upgraded_registry_are_read(lake: ServedLake) -> None:
    async with lake.config.session() as session:
        await upgrade(session, force=True)
    lake.append("later", "last")
    stats = await lake.compact()
    assert stats.unreadable_count == 0
    kinds = Counter(row["kind"] for row in lake.rows(tables.CATALOG_EVENTS))
    assert kinds == {"create-namespace": 1, "create-table": 4, "upgrade": 1}


async def test_a_table_of_an_earlier_version_gets_the_columns_that_it_lacks(lake: ServedLake) -> None:
    new = ("request_id", "idempotency_key_hash")
    await lake.compact()
    with lake.client.load_table("system.commits").update_schema(allow_incompatible_changes=True) as update:
        for column in new:
            update.delete_column(column)
    lake.mortal().load_table("db.t").append(ROW)  # which sends an Idempotency-Key, as PyIceberg alone does not
    await lake.compact()
    rows = sorted(lake.rows(tables.COMMITS), key=lambda row: str(row["committed_at"]))
    assert [row["idempotency_key_hash"] is not None for row in rows] == [False] * 6 + [True]
    lake.assert_each_event_once()


async def test_of_two_runs_at_once_one_adds_columns_that_are_lacking(lake: ServedLake) -> None:
    await lake.compact()
    with lake.client.load_table("system.commits").update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("request_id")
    lake.append("t")
    slower = lake.mortal()

    def overtake(table: Table) -> None:
        slower.beforehand = None
        in_another_thread(lambda: asyncio.run(lake.compact()))

    slower.beforehand = overtake
    await lake.compact(slower)
    lake.assert_each_event_once()
    names = lake.client.load_table("system.commits").schema().column_names
    assert names.count("request_id") == 1


async def test_a_run_reads_what_is_new_and_no_more(lake: ServedLake) -> None:
    await lake.compact()
    lake.append("t")
    stats = await lake.compact()
    assert stats.read == 3  # the receipt, and its metadata file for `commits` and for the other tables
    assert (stats.rows["commits"], stats.rows["tables"]) == (1, 1)
    assert "columns" not in stats.rows
    lake.assert_each_event_once()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_driver_killed_at_each_of_its_commits_leaves_what_the_next_run_goes_on_with(
    lake: ServedLake, after: bool
) -> None:
    killed = 0
    for _ in range(RUNS):
        catalog = lake.mortal()
        catalog.dies_at, catalog.after = (1, True) if after else (2, False)
        try:
            await lake.compact(catalog, batch_size=4)
        except Killed:
            killed += 1
        else:
            break
    assert killed >= 7  # how many commits there are depends on which receipts share a batch: their names are hashes
    lake.assert_each_event_once()


async def test_of_two_runs_at_once_one_reads_anew_what_the_other_has_committed(lake: ServedLake) -> None:
    faster, slower = lake.mortal(), lake.mortal()

    def overtake(table: Table) -> None:
        """The other run, all of it, between what this one has read and its commit."""
        slower.beforehand = None
        overtaken.append(asyncio.run(lake.compact(faster)).commits)

    overtaken: list[int] = []
    slower.beforehand = lambda table: in_another_thread(lambda: overtake(table))
    stats = await lake.compact(slower)
    assert (stats.overtaken, stats.commits) == (1, 0)
    assert overtaken[0] > 5
    lake.assert_each_event_once()

    lake.append("t", "u")
    slower.beforehand = lambda table: in_another_thread(lambda: overtake(table))
    slower.after_commits = 3
    stats = await lake.compact(slower)
    assert (stats.overtaken, stats.commits) == (1, 3)
    lake.assert_each_event_once()


@pytest.mark.parametrize("fate", [Fate.DROPPED, Fate.CUT_SHORT, Fate.TIMED_OUT])
async def test_a_commit_whose_answer_was_lost_is_sent_again_and_made_once(lake: ServedLake, fate: Fate) -> None:
    proxy = DroppingProxy(lake.server.uri, first_time(fate))
    async with proxy.listening() as uri:
        stats = await asyncio.to_thread(run_through, lake, uri)
    answers: dict[str, list[int]] = {}
    for exchange in proxy.exchanges:
        if exchange.request.mutates and exchange.request.key is not None:
            answers.setdefault(exchange.request.key, []).append(exchange.status)
    assert [*answers.values()] == [[200, 200]] * stats.commits
    assert stats.overtaken == 0
    lake.assert_each_event_once()


async def test_a_commit_that_nobody_ever_answers_is_looked_for_in_the_table(lake: ServedLake) -> None:
    proxy = DroppingProxy(lake.server.uri, lambda request: Fate.DROPPED if request.key else Fate.DELIVERED)
    async with proxy.listening() as uri:
        stats = await asyncio.to_thread(run_through, lake, uri)
    assert (stats.rows["commits"], stats.overtaken) == (6, 1)  # `lineage` has no snapshot to look for: it is read anew
    lake.assert_each_event_once()


async def test_a_receipt_that_was_written_later_is_read_if_its_day_is_marked(lake: ServedLake) -> None:
    paths, late = Paths(WAREHOUSE), _committed(lake)[-1]
    day = datetime.now(UTC).date() - timedelta(days=10)
    body = late.read_bytes()
    await lake.compact()

    moved = body.replace(b'"metadata_ms":%d' % _ms(body), b'"metadata_ms":%d' % (_ms(body) - 10 * 86_400_000))
    moved = moved.replace(_key(late).encode(), b"0" * 64).replace(b'"event_id":"01', b'"event_id":"00')
    lake.put(paths.receipts_of_day("committed", day) + f"{'0' * 64}.json", moved)
    assert (await lake.compact()).rows == {}

    lake.put(paths.late_mark(day), b"{}")
    assert (await lake.compact()).rows["commits"] == 1
    assert lake.there(paths.late_mark(day))  # it is too young to be sure that all which it announced was there
    assert (await lake.compact()).rows == {}
    [row] = [row for row in lake.rows(tables.TABLES) if row["commit_key"] == "0" * 64]
    assert row["current"] is False


async def test_a_metadata_file_that_is_gone_gives_rows_from_its_receipt(lake: ServedLake) -> None:
    table = lake.client.load_table("db.t")
    lake.unlink(table.metadata.metadata_log[-1].metadata_file)
    await lake.compact()
    lake.assert_each_event_once()
    gone = [row for row in lake.rows(tables.TABLES) if row["metadata_gone"]]
    assert [row["name"] for row in gone] == ["t"]
    assert [row["metadata_gone"] for row in lake.rows(tables.SNAPSHOTS)].count(True) == 1


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"\x1f\x8b\x08 cut", None], ids=["no JSON", "no object", "cut", "elsewhere"]
)
async def test_a_metadata_file_that_cannot_be_read_gives_rows_from_its_receipt_and_is_told(
    lake: ServedLake, body: bytes | None
) -> None:
    receipt = lake.receipt_of("t")
    where = json.loads(receipt.read_bytes())["metadata_location"]
    if body is None:
        receipt.write_bytes(receipt.read_bytes().replace(where.encode(), b"file:///elsewhere/1.metadata.json"))
    else:
        lake.put(str(Path(where.removeprefix("file://")).relative_to(lake.folder.parent)), body)
    stats = await lake.compact()
    name = "file:///elsewhere/1.metadata.json" if body is None else where
    assert [name in said for said in stats.unreadable] == [True, True]  # for `commits`, and for the other tables
    for table in (tables.COMMITS, tables.TABLES, tables.SNAPSHOTS):
        rows = lake.rows(table)
        assert sorted(row["metadata_gone"] is None for row in rows) == [False] * (len(rows) - 1) + [True], table.name
    lake.assert_told_once()
    again = await lake.compact()
    assert (again.commits, again.unreadable_count) == (0, 0)


def run_through(lake: ServedLake, uri: str) -> CompactStats:
    """A run in a thread of its own that reaches the catalog at this URI."""
    said = {"uri": uri, "warehouse": WAREHOUSE, "header.Connection": "close"}  # the proxy waits for clients to be gone
    return asyncio.run(lake.compact(KeyedRestCatalog(said, SystemRuntime(), lambda seconds: None)))


def _committed(lake: ServedLake) -> list[Path]:
    return sorted((lake.folder / "_catalog" / "events").glob("*/iceberg/committed/*.json"))


def _key(receipt: Path) -> str:
    return receipt.stem


def _ms(body: bytes) -> int:
    return int(body.partition(b'"metadata_ms":')[2].partition(b",")[0])
