"""Spark and PyIceberg on scans that the catalog plans: the rows are those that they find when they plan themselves."""

import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.engines.lake import Lake
from tests.engines.shell import Rows, Sql
from tools.demo.engines import pyiceberg_catalog
from tools.demo.server import WAREHOUSE

FILTERS = (
    "true",
    "false",
    "id = 7",
    "id IN (3, 5, 1000)",
    "id > 15 AND name <> 'n4'",
    "NOT (id < 10 OR name = 'n1')",
    "name IS NULL",
    "name LIKE 'n2%'",
    "at < TIMESTAMP'2026-02-01 00:00:00'",
    "date(at) = DATE'2026-01-05'",
    "price > 12.50",
    "ratio = double('NaN')",
    "ratio < 0.5",
    "later IS NOT NULL",
    "later = 3 OR id = 2",
    "inner.city = 'a'",
)
"""Each prunes by something else: bounds, nulls, NaN, partitions of an earlier spec, a column that came later."""


@pytest.fixture
def table(request: pytest.FixtureRequest, spark: Sql, either_lake: Lake) -> str:
    """A table, by its name in a namespace, whose spec and schema changed and some of whose rows are deleted."""
    version = request.param
    namespace = f"planned_{version}"
    spark(f"CREATE NAMESPACE {either_lake.name}.{namespace}")
    name = f"{namespace}.t"
    table = f"{either_lake.name}.{name}"
    spark(
        f"""CREATE TABLE {table} (id BIGINT, name STRING, at TIMESTAMP, price DECIMAL(9, 2), ratio DOUBLE,
        inner STRUCT<city: STRING>) PARTITIONED BY (days(at)) TBLPROPERTIES ('format-version' = '{version}',
        'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"""
    )
    _insert(spark, table, 0, "")
    spark(f"ALTER TABLE {table} REPLACE PARTITION FIELD days(at) WITH bucket(4, id)")
    spark(f"ALTER TABLE {table} ADD COLUMN later INT")
    _insert(spark, table, 20, ", CAST(id % 4 AS INT)")
    spark(f"ALTER TABLE {table} ALTER COLUMN later TYPE BIGINT")
    spark(f"ALTER TABLE {table} ADD PARTITION FIELD truncate(2, name)")
    _insert(spark, table, 40, ", id % 4")
    if version > 1:
        spark(f"DELETE FROM {table} WHERE id % 5 = 0")
        spark(f"UPDATE {table} SET name = 'changed' WHERE id = 22")
    return name


def _insert(spark: Sql, table: str, first: int, more: str) -> None:
    spark(
        f"""INSERT INTO {table} SELECT id, CASE WHEN id % 6 = 0 THEN NULL ELSE concat('n', id) END,
        timestampadd(DAY, CAST(id AS INT), TIMESTAMP'2026-01-01 12:00:00'), CAST(id * 0.75 AS DECIMAL(9, 2)),
        CASE WHEN id % 7 = 0 THEN double('NaN') ELSE id / 40 END,
        CASE WHEN id % 3 = 0 THEN NULL ELSE named_struct('city', IF(id % 2 = 0, 'a', 'b')) END {more}
        FROM range({first}, {first + 20})"""
    )


@pytest.mark.parametrize("table", [1, 2, 3], indirect=True)
def test_scans_that_the_catalog_plans_find_the_same_rows(spark: Sql, either_lake: Lake, table: str) -> None:
    """Spark judges every condition in one scan of all files: a scan of its own for each would read them again."""
    ours, theirs = f"{either_lake.name}_planned.{table}", f"{either_lake.name}.{table}"

    judged = spark(f"SELECT *, {', '.join(FILTERS)} FROM {theirs}")
    for place, condition in enumerate(FILTERS, start=-len(FILTERS)):
        found = ordered(spark(f"SELECT * FROM {ours} WHERE {condition}"))
        assert found == ordered([row[: -len(FILTERS)] for row in judged if row[place]]), condition
    snapshots = [row[0] for row in spark(f"SELECT snapshot_id FROM {theirs}.snapshots ORDER BY committed_at")]
    for snapshot in snapshots:
        rows = ordered(spark(f"SELECT * FROM {ours} VERSION AS OF {snapshot} WHERE id > 12"))
        assert rows == ordered(spark(f"SELECT * FROM {theirs} VERSION AS OF {snapshot} WHERE id > 12"))


def test_pyiceberg_finds_the_same_rows_in_plans_of_the_catalog(spark: Sql, either_lake: Lake) -> None:
    """Its partition values are none null, which PyIceberg cannot read in a plan."""
    name = "planned_by_pyiceberg.t"
    table = f"{either_lake.name}.{name}"
    spark(f"CREATE NAMESPACE {either_lake.name}.planned_by_pyiceberg")
    spark(
        f"""CREATE TABLE {table} (id BIGINT NOT NULL, name STRING, at TIMESTAMP, ratio DOUBLE)
        PARTITIONED BY (bucket(4, id)) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"""
    )
    spark(
        f"""INSERT INTO {table} SELECT id, IF(id % 6 = 0, NULL, concat('n', id)),
        timestampadd(DAY, CAST(id AS INT), TIMESTAMP'2026-01-01 12:00:00'), IF(id % 7 = 0, double('NaN'), id / 40)
        FROM range(60)"""
    )
    spark(f"DELETE FROM {table} WHERE id % 5 = 0")

    planning = pyiceberg_catalog(either_lake.server.uri, WAREHOUSE, {**either_lake.s3, "scan-planning-mode": "server"})
    assert isinstance(planning, RestCatalog)
    assert planning.supports_server_side_planning()
    ours, theirs = planning.load_table(name), either_lake.bystander.load_table(name)
    for condition in ("id > 15", "name is null", "id in (3, 5, 7)", "ratio is nan", "at < '2026-02-01T00:00:00+00:00'"):
        planned, found = (
            sorted(map(repr, each.scan(row_filter=condition).to_arrow().to_pylist())) for each in (ours, theirs)
        )
        assert planned == found, condition
        assert planned


def ordered(rows: Rows) -> Rows:
    return sorted(rows, key=repr)
