"""DuckDB, ClickHouse, DataFusion, Polars and Flink on the catalog, on local files.

What an engine says is compared with the rows that must come out and with what PyIceberg finds in the catalog. What an
engine can't do for a reason of its own is in docs/engines/, and here with its error: if that changes, both must.
"""

import datetime

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from tests.engines.lake import Lake
from tests.engines.names import NAMES
from tests.engines.shell import EngineError, Sql

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": pa.array(["a", "b", None])})


def seed(lake: Lake, namespace: str) -> str:
    """A table with `ROWS`, made by PyIceberg."""
    lake.bystander.create_namespace(namespace)
    lake.bystander.create_table(f"{namespace}.t", schema=ROWS.schema).append(ROWS)
    return f"{namespace}.t"


def test_duckdb(duckdb: Sql, local_lake: Lake) -> None:
    duckdb("CREATE SCHEMA rest.duck")
    duckdb("CREATE TABLE rest.duck.t (id BIGINT, name VARCHAR, day DATE, price DECIMAL(10, 2))")
    duckdb(
        "INSERT INTO rest.duck.t VALUES (1, 'a', DATE '2026-01-01', 1.5), (2, 'b', NULL, 2.5), (3, NULL, NULL, NULL)"
    )
    assert duckdb("UPDATE rest.duck.t SET price = 9 WHERE id = 2") == [(1,)]
    assert duckdb("DELETE FROM rest.duck.t WHERE id = 1") == [(1,)]
    assert duckdb(
        "MERGE INTO rest.duck.t t USING (VALUES (3, 'c'), (4, 'd')) AS s (id, name) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
    ) == [(2,)]
    duckdb("ALTER TABLE rest.duck.t ADD COLUMN note VARCHAR")
    duckdb("ALTER TABLE rest.duck.t RENAME COLUMN name TO label")
    duckdb("ALTER TABLE rest.duck.t DROP COLUMN day")
    rows = [(2, "b", "9.00", None), (3, "c", None, None), (4, "d", None, None)]
    assert duckdb("SELECT * FROM rest.duck.t ORDER BY id") == rows
    assert [row[:2] for row in local_lake.rows("duck.t")] == [row[:2] for row in rows]

    duckdb("CREATE TABLE rest.duck.one (id BIGINT)")
    duckdb("ALTER TABLE rest.duck.one RENAME TO u")
    duckdb("BEGIN")
    duckdb("INSERT INTO rest.duck.t (id) VALUES (5)")
    duckdb("INSERT INTO rest.duck.u VALUES (5)")
    assert local_lake.rows("duck.u") == []
    duckdb("COMMIT")
    duckdb("BEGIN")
    duckdb("INSERT INTO rest.duck.u VALUES (6)")
    duckdb("ROLLBACK")
    assert local_lake.rows("duck.u") == [(5,)]
    local_lake.assert_receipts("duck.t", "duck.u")

    for table in ("t", "u"):
        duckdb(f"DROP TABLE rest.duck.{table}")
    duckdb("DROP SCHEMA rest.duck")
    assert not local_lake.bystander.namespace_exists("duck")


def test_duckdb_spells_names_so_that_the_catalog_finds_them(duckdb: Sql, local_lake: Lake) -> None:
    for place, name in enumerate(NAMES):
        space, table = f'rest."{name}"', f'rest."{name}"."{name}"'
        duckdb(f"CREATE SCHEMA {space}")
        duckdb(f"CREATE TABLE {table} (id BIGINT)")
        duckdb(f"INSERT INTO {table} VALUES ({place})")
        assert local_lake.bystander.list_tables((name,)) == [(name, name)]
        assert local_lake.bystander.load_table((name, name)).scan().to_arrow().to_pylist() == [{"id": place}]
        assert duckdb(f"SELECT * FROM {table}") == [(place,)]
        duckdb(f'ALTER TABLE {table} RENAME TO "{name} 2"')
        assert duckdb(f'SELECT * FROM {space}."{name} 2"') == [(place,)]
        duckdb(f'DROP TABLE {space}."{name} 2"')
        duckdb(f"DROP SCHEMA {space}")
        assert (name,) not in local_lake.bystander.list_namespaces()


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("CREATE TABLE rest.duck_limits.c AS SELECT 1 AS one", '-m0.avro": No such file or directory'),
        ("CREATE OR REPLACE TABLE rest.duck_limits.t (id BIGINT)", "CREATE OR REPLACE not supported in DuckDB-Iceberg"),
        ("CREATE VIEW rest.duck_limits.v AS SELECT 1 AS one", "Not implemented Error: Create View"),
        ("DROP SCHEMA rest.duck_limits CASCADE", "is not supported for Iceberg schemas currently"),
    ],
)
def test_what_duckdb_cannot_do_for_reasons_of_its_own(
    duckdb: Sql, local_lake: Lake, statement: str, error: str
) -> None:
    if not local_lake.bystander.namespace_exists("duck_limits"):
        seed(local_lake, "duck_limits")
    with pytest.raises(EngineError) as refused:
        duckdb(statement)
    assert error in str(refused.value)
    assert local_lake.tables("duck_limits") == ["t"]


def test_clickhouse(clickhouse: Sql, local_lake: Lake) -> None:
    table = f"rest.`{seed(local_lake, 'house')}`"
    assert ("house.t",) in clickhouse("SHOW TABLES FROM rest")
    clickhouse(f"INSERT INTO {table} VALUES (4, 'd'), (5, 'e')")
    clickhouse(f"ALTER TABLE {table} DELETE WHERE id = 1")
    clickhouse(f"ALTER TABLE {table} UPDATE name = 'z' WHERE id = 2")
    clickhouse(f"ALTER TABLE {table} ADD COLUMN note Nullable(String)")
    rows = [(2, "z", None), (3, None, None), (4, "d", None), (5, "e", None)]
    assert clickhouse(f"SELECT * FROM {table} ORDER BY id") == rows
    assert clickhouse(f"SELECT count() FROM {table} WHERE id > 3") == [(2,)]
    assert local_lake.rows("house.t") == rows
    local_lake.assert_receipts("house.t")

    with pytest.raises(EngineError, match="Not a valid location: '/"):
        clickhouse("CREATE TABLE rest.`house.c` (id Int64) ENGINE = IcebergLocal('house-c')")
    with pytest.raises(EngineError, match=r"Table does not exist: house\.t"):  # it drops it, and then asks again
        clickhouse(f"DROP TABLE {table}")
    assert local_lake.tables("house") == []


def test_datafusion_reads(dataframes: Sql, local_lake: Lake) -> None:
    table = seed(local_lake, "fusion")
    assert dataframes(f"datafusion {table} SELECT id, name FROM t WHERE id > 1 ORDER BY id") == [(2, "b"), (3, None)]
    assert dataframes(f"datafusion {table} SELECT count(*), max(name) FROM t") == [(3, "b")]
    with pytest.raises(EngineError, match="Write operations are not supported on IcebergStaticTableProvider"):
        dataframes(f"datafusion {table} INSERT INTO t VALUES (4, 'd')")


def test_polars_reads_and_writes(dataframes: Sql, local_lake: Lake) -> None:
    table = seed(local_lake, "bears")
    dataframes(f"polars {table} INSERT INTO t SELECT id + 10 AS id, name FROM t WHERE id < 3")
    rows = [(1, "a"), (2, "b"), (3, None), (11, "a"), (12, "b")]
    assert dataframes(f"polars {table} SELECT id, name FROM t ORDER BY id") == rows
    assert sorted(local_lake.rows(table)) == rows
    local_lake.assert_receipts(table)


def test_flink(flink: Sql, local_lake: Lake) -> None:
    flink("CREATE DATABASE flink")
    flink(
        "CREATE TABLE flink.t (id BIGINT, name STRING, `day` DATE) PARTITIONED BY (`day`) WITH ('format-version' = '2')"
    )
    flink("INSERT INTO flink.t VALUES (1, 'a', DATE '2026-01-01'), (2, 'b', DATE '2026-02-01')")
    flink("INSERT OVERWRITE flink.t VALUES (3, 'c', DATE '2026-02-01')")
    flink("ALTER TABLE flink.t ADD note STRING")
    flink("ALTER TABLE flink.t SET ('team' = 'a')")
    flink("ALTER TABLE flink.t RENAME TO t2")
    assert flink("SELECT id, name, `day`, note FROM flink.t2 ORDER BY id") == [
        (1, "a", "2026-01-01", None),
        (3, "c", "2026-02-01", None),
    ]
    assert flink("SELECT operation FROM flink.`t2$snapshots`") == [("append",), ("overwrite",)]
    assert local_lake.rows("flink.t2") == [
        (1, "a", datetime.date(2026, 1, 1), None),
        (3, "c", datetime.date(2026, 2, 1), None),
    ]
    assert local_lake.bystander.load_table("flink.t2").properties["team"] == "a"

    flink(
        "CREATE TABLE flink.u (id BIGINT NOT NULL, name STRING, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('format-version' = '2', 'write.upsert.enabled' = 'true')"
    )
    flink("INSERT INTO flink.u VALUES (1, 'a'), (2, 'b')")
    flink("INSERT INTO flink.u VALUES (2, 'bb'), (3, 'c')")
    assert sorted(flink("SELECT * FROM flink.u")) == [(1, "a"), (2, "bb"), (3, "c")]
    local_lake.assert_receipts("flink.t2", "flink.u")

    with pytest.raises(EngineError, match="SupportsRowLevelUpdate"):
        flink("UPDATE flink.t2 SET name = 'x' WHERE id = 1")
    with pytest.raises(EngineError, match="SupportsRowLevelDelete"):
        flink("DELETE FROM flink.t2 WHERE id = 1")
    with pytest.raises(EngineError, match="Namespace flink is not empty"):
        flink("DROP DATABASE flink CASCADE")
    flink("DROP TABLE flink.t2")
    flink("DROP TABLE flink.u")
    flink("DROP DATABASE flink")
    assert not local_lake.bystander.namespace_exists("flink")
