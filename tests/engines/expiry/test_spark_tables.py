"""Tables that Spark writes, expired by the worker and by Iceberg's Java library on copies: the same snapshots and the
same files, and Spark reads the rows of each snapshot that is kept as before."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.engines.expiry import planted
from tests.engines.expiry.comparison import Case, ExpiryByWorker, case_of, departures, expired_by_worker
from tests.engines.expiry.drawn_tables import set_back
from tests.engines.lake import Lake
from tests.engines.shell import EngineError, Rows, Sql
from tools.demo.server import WAREHOUSE
from tools.support.java_programs import JavaProgram

NAMESPACE = "expiries"
SEEDS = range(12)
"""Of the ages of snapshots, by which different ones of a table expire."""
MODES = ", ".join(f"'write.{change}.mode' = 'merge-on-read'" for change in ("delete", "update", "merge"))


@dataclass(frozen=True)
class SparkTable:
    """A table that Spark has written in a catalog, its metadata, and its expiries by the ages of some seeds."""

    name: str
    lake: Lake
    spark: Sql
    metadata: dict[str, Any]
    cases: Sequence[Case]

    @property
    def folder(self) -> Path:
        return root(self.lake)

    def read(self, version: str) -> Rows:
        """The rows of a snapshot, branch or tag."""
        return sorted(self.spark(f"SELECT * FROM {self.lake.name}.{NAMESPACE}.{self.name} VERSION AS OF {version}"))

    def read_all(self, metadata: dict[str, Any]) -> dict[str, Rows]:
        """The rows of each snapshot, branch and tag in metadata of the table."""
        snapshots = [str(each["snapshot-id"]) for each in metadata["snapshots"]]
        return {version: self.read(version) for version in (*snapshots, *(f"'{name}'" for name in metadata["refs"]))}

    def replace_metadata(self, metadata: dict[str, Any]) -> None:
        """Lets the catalog have other metadata for the table."""
        file = Path(metadata["location"].removeprefix("file://")) / "metadata" / "60000-a.metadata.json"
        file.write_text(json.dumps(metadata))
        body = {"name": self.name, "metadata-location": f"file://{file}", "overwrite": True}
        self.lake.post(f"namespaces/{NAMESPACE}/register", body)


def root(lake: Lake) -> Path:
    return Path(lake.server.store.removeprefix("file:"))


def statements(table: str, version: int) -> Iterator[str]:
    """A table with deletes of rows, deletes that replace earlier ones, a branch, tags, and files that are written
    again."""
    yield f"""CREATE TABLE {table} (id BIGINT, name STRING) USING iceberg PARTITIONED BY (bucket(2, id)) TBLPROPERTIES (
        'format-version' = '{version}', {MODES}, 'write.delete.granularity' = 'partition',
        'history.expire.max-snapshot-age-ms' = '172800000', 'commit.manifest.min-count-to-merge' = '3')"""
    rows = "SELECT /*+ COALESCE(1) */ id, concat('n', id) AS name FROM range({}, {})"
    yield f"INSERT INTO {table} {rows.format(0, 40)}"
    yield f"INSERT INTO {table} {rows.format(40, 60)}"
    yield f"DELETE FROM {table} WHERE id % 5 = 1"
    yield f"ALTER TABLE {table} CREATE TAG early RETAIN 4 DAYS"
    yield f"DELETE FROM {table} WHERE id % 7 = 3"
    yield f"UPDATE {table} SET name = 'changed' WHERE id < 4"
    yield f"ALTER TABLE {table} CREATE BRANCH side RETAIN 30 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 1 DAYS"
    yield f"INSERT INTO {table}.branch_side {rows.format(100, 110)}"
    yield f"DELETE FROM {table}.branch_side WHERE id % 2 = 0"
    yield f"INSERT INTO {table}.branch_side {rows.format(110, 120)}"
    yield f"""MERGE INTO {table} t USING (SELECT id FROM range(50, 65)) s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET name = 'merged' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')"""
    catalog, _, name = table.partition(".")
    for rewritten in ("data", "position_delete"):
        arguments = f"table => '{name}', options => map('rewrite-all', 'true')"
        yield f"CALL {catalog}.system.rewrite_{rewritten}_files({arguments})"
    yield f"ALTER TABLE {table} CREATE TAG late"
    yield f"DELETE FROM {table} WHERE id % 11 = 0"
    yield f"DELETE FROM {table} WHERE id % 13 = 0"
    yield f"CALL {catalog}.system.rewrite_manifests('{name}')"
    yield f"INSERT INTO {table} {rows.format(200, 210)}"


@pytest.fixture(scope="module", params=[3, pytest.param(2, marks=pytest.mark.slow)])
def written(request: pytest.FixtureRequest, spark: Sql, local_lake: Lake, java: JavaProgram) -> SparkTable:
    version, lake = request.param, local_lake
    name, table = f"v{version}", f"{lake.name}.{NAMESPACE}.v{version}"
    spark(f"CREATE NAMESPACE IF NOT EXISTS {lake.name}.{NAMESPACE}")
    for statement in statements(table, version):
        spark(statement)
    location = lake.bystander.load_table(f"{NAMESPACE}.{name}").metadata_location
    metadata = json.loads(Path(location.removeprefix("file://")).read_bytes())
    cases = [case_of(java, name, WAREHOUSE, set_back(Random(seed), metadata), root(lake)) for seed in SEEDS]
    return SparkTable(name, lake, spark, metadata, cases)


async def test_snapshots_and_files_are_those_of_java(written: SparkTable) -> None:
    found = [fault for case in written.cases for fault in departures(case, await expire(written, case))]

    assert found == [], "\n".join(found)
    kept = {len(case.after["snapshots"]) for case in written.cases}
    assert min(kept) < max(kept) < len(written.metadata["snapshots"])
    for kind in (".parquet", ".puffin" if written.name == "v3" else "-deletes.parquet", "-m0.avro", "/snap-"):
        assert any(kind in key for case in written.cases for key in case.deleted), kind


async def expire(written: SparkTable, case: Case) -> ExpiryByWorker:
    return await expired_by_worker(case, written.folder)


@contextmanager
def without(folder: Path, keys: frozenset[str]) -> Iterator[None]:
    """Files that are away for a time."""
    kept = {folder / key: (folder / key).read_bytes() for key in keys}
    for path in kept:
        path.unlink()
    yield
    for path, body in kept.items():
        path.write_bytes(body)


async def test_spark_reads_the_rows_of_each_kept_snapshot_as_before(written: SparkTable) -> None:
    case = max(written.cases, key=lambda case: len(case.after["snapshots"]) * len(case.deleted))
    expired = await expire(written, case)
    before = written.read_all(expired.after)
    assert len(before) > 5

    with without(written.folder, expired.deleted):
        written.replace_metadata(expired.after)
        assert written.read_all(expired.after) == before
    written.replace_metadata(written.metadata)
    assert written.read_all(expired.after) == before


@pytest.mark.parametrize(
    "plant",
    [planted.data_files_of_which_no_manifest_is_read, planted.branches_that_are_forgotten],
    ids=lambda plant: plant.__name__,
)
async def test_an_expiry_with_a_bug_is_noticed(
    written: SparkTable, plant: planted.Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    for case in written.cases:
        expired = await expire(written, case)
        if departures(case, expired):
            break
    else:
        raise AssertionError("no ages show it")
    with without(written.folder, expired.deleted), pytest.raises(EngineError):
        written.read_all(case.after)
