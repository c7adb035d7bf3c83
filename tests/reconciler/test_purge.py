"""Purges by the anti-join (docs/design/purge.md#rule-19): PyIceberg's tables on local files, with a leak audit of the
whole store."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.table import Table
from pyspark import SparkContext

from arco_catalog.iceberg.json import JsonObject
from reconciler.purge import purge
from tests.cli.test_purged_neighbours import ROWS, Site, site_on
from tools.support.arco_server import WAREHOUSE

# PySpark leaves the sockets to its JVM for the garbage collector to close.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with site_on(f"file:{tmp_path}/store", tmp_path) as made:
        yield made


def purged(spark: SparkContext, site: Site, name: str) -> JsonObject:
    """What comes of a purge that workers refuse."""
    task = site.purges.finish(f"db.{name}")
    assert task["status"] == "FAILURE"
    assert "--spark` purges this table" in str(task["result_summary"])
    assert asyncio.run(executed(spark, site, str(task["task_id"]))) in ([1], [2])  # it waits for the failed lease
    ended = site.purges.last_task(f"db.{name}")
    assert ended["status"] == "SUCCESS", ended
    told = json.loads(str(ended["result_extended"]))
    assert isinstance(told, dict)
    return told


async def executed(spark: SparkContext, site: Site, task: str) -> list[int]:
    """How many executions it took."""
    environment = {**os.environ, "ARCO_STORE": site.purges.store, "ARCO_WAREHOUSE": WAREHOUSE}
    return [stats.executed async for _, stats in purge(spark, environment, task=task)]


def copied(table: Table, name: str) -> str:
    """A copy of the table's metadata file at a place of its own."""
    copy = f"{table.location()}-{name}/metadata/00000-7a1f3f6e-0000-4000-8000-000000000000.metadata.json"
    with table.io.new_input(table.metadata_location).open() as source, table.io.new_output(copy).create() as out:
        out.write(source.read())
    return copy


def named_by(site: Site, table: Table) -> frozenset[str]:
    """The keys of all files that PyIceberg finds from a table's metadata."""
    files = {entry.metadata_file for entry in table.metadata.metadata_log}
    for snapshot in table.metadata.snapshots:
        files.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            files.add(manifest.manifest_path)
            files.update(entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io, False))
    root = f"{site.purges.store}/".replace("file:/", "file:///")
    return frozenset(file.removeprefix(root) for file in files)


def test_what_neighbours_lead_to_stays_and_all_else_is_gone(spark: SparkContext, site: Site) -> None:
    """A table inside the same prefix, one that was registered from a copy of the metadata before the last commits, and
    one that has taken a file of a later commit."""
    table = site.table("t")
    copy = site.catalog.register_table("db.copy", copied(table, "copy"))
    inside = site.catalog.create_table("db.inside", schema=ROWS.schema, location=f"{table.location()}/inside")
    inside.append(ROWS)
    for _ in range(3):
        table.append(ROWS)
    taken = table.inspect.files()["file_path"].to_pylist()[0]
    taker = site.table("taker")
    taker.add_files([taken])
    table.delete("id < 5")
    counts = {name: site.count(name) for name in ("copy", "inside", "taker")}
    before, own, others = site.purges.files(), site.own(table), named_by(site, copy) | named_by(site, taker)
    shared = (own & others) | site.own(inside)

    site.catalog.purge_table("db.t")
    told = purged(spark, site, "t")

    assert site.purges.files() == before - (own - shared)
    assert told["files_deleted"] == len(own - shared) > 10
    assert told["kept"] == len(own & others) > 5
    kept_for = told["kept_for"]
    assert isinstance(kept_for, dict)
    assert {name.split()[0]: files for name, files in kept_for.items()} == {
        "db.copy": len(own & others) - 1,
        "db.taker": 1,
    }
    assert told["outside"] == 0
    assert {name: site.count(name) for name in counts} == counts


@pytest.mark.slow
def test_a_file_that_a_live_neighbour_misses_is_passed_over_when_the_time_to_undo_a_drop_is_over(
    spark: SparkContext, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where no anti-join is made (docs/design/purge.md#rule-28)."""
    table, other, taker = site.table("t"), site.table("other"), site.table("taker")
    for each in (table, other):
        taker.add_files([each.inspect.files()["file_path"].to_pylist()[0]])
    taken = [each.manifest_path for each in taker.metadata.snapshots[-1].manifests(taker.io)]
    site.catalog.purge_table("db.t")
    task = str(site.purges.finish("db.t")["task_id"])
    site.catalog.purge_table("db.other")
    of_other = str(site.purges.finish("db.other")["task_id"])
    for path in taken:
        taker.io.delete(path)
    before = site.purges.files()

    assert asyncio.run(executed(spark, site, task)) == [1]
    waits = site.purges.last_task("db.t")
    assert (waits["status"], site.purges.files()) == ("RETRY_SCHEDULED", before)
    assert "db.taker (entity" in str(waits["result_summary"])
    assert "is gone, and with it the names of the files" in str(waits["result_summary"])

    monkeypatch.setenv("ARCO_PURGE_UNDROP_WINDOW", "PT0S")
    asyncio.run(executed(spark, site, of_other))
    ended = site.purges.last_task("db.other")
    assert ended["status"] == "SUCCESS"
    assert "db.taker (entity" in str(json.loads(str(ended["result_extended"]))["unread"])
    assert site.own(other) == frozenset()
