"""Trino on the catalog: what its SQL does, on local files and on S3, and that Spark and Trino read each other's work.

What Trino says is compared with the rows that must come out, and with what PyIceberg finds in the catalog.
"""

import datetime
import re

import pytest
from trino.exceptions import TrinoQueryError

from tests.engines.lake import Lake
from tests.engines.shell import Sql
from tests.engines.trino_releases import CHOSEN, NEWEST


@pytest.fixture
def schema(request: pytest.FixtureRequest, trino: Sql, either_lake: Lake) -> str:
    """An empty schema of this test's own, with the catalog before it."""
    name = f"{either_lake.name}.trino_{request.node.originalname}"
    trino(f"CREATE SCHEMA {name}")
    return name


def bare(name: str) -> str:
    """A name without its catalog, as the catalog itself knows it."""
    return name.partition(".")[2]


def date(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def test_schemas_nest_and_must_be_empty_to_go(trino: Sql, either_lake: Lake) -> None:
    catalog = either_lake.name
    trino(f"CREATE SCHEMA {catalog}.outer_one")
    trino(f'CREATE SCHEMA {catalog}."outer_one.inner"')
    trino(f'CREATE TABLE {catalog}."outer_one.inner".t AS SELECT 42 AS answer')

    assert {("outer_one",), ("outer_one.inner",)} <= set(trino(f"SHOW SCHEMAS FROM {catalog}"))
    assert trino(f'SELECT * FROM {catalog}."outer_one.inner".t') == [(42,)]
    assert either_lake.rows("outer_one.inner.t") == [(42,)]
    assert either_lake.bystander.list_namespaces("outer_one") == [("outer_one", "inner")]
    with pytest.raises(TrinoQueryError, match="already exists"):
        trino(f"CREATE SCHEMA {catalog}.outer_one")
    with pytest.raises(TrinoQueryError, match="Cannot drop non-empty schema"):
        trino(f'DROP SCHEMA {catalog}."outer_one.inner"')

    trino(f'DROP TABLE {catalog}."outer_one.inner".t')
    trino(f'DROP SCHEMA {catalog}."outer_one.inner"')
    trino(f"DROP SCHEMA {catalog}.outer_one")
    assert not either_lake.bystander.namespace_exists("outer_one")


def test_rows_come_change_and_go(trino: Sql, either_lake: Lake, schema: str) -> None:
    table = f"{schema}.orders"
    trino(
        f"CREATE TABLE {table} (id bigint NOT NULL, name varchar, day date, price decimal(10, 2)) "
        "WITH (partitioning = ARRAY['month(day)', 'bucket(id, 4)'], sorted_by = ARRAY['id'], format_version = 2)"
    )
    assert trino(
        f"INSERT INTO {table} VALUES (1, 'a', DATE '2026-01-01', 1.10), (2, 'b', DATE '2026-02-01', NULL), "
        "(3, 'ç', DATE '2026-02-03', 3.30)"
    ) == [(3,)]
    assert trino(
        f"MERGE INTO {table} t USING (VALUES (2, 'bb'), (4, 'd')) AS u (id, name) ON t.id = u.id "
        "WHEN MATCHED THEN UPDATE SET name = u.name "
        "WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.name, DATE '2026-03-01', 4.40)"
    ) == [(2,)]
    assert trino(f"UPDATE {table} SET price = price * 2 WHERE id = 3") == [(1,)]
    assert trino(f"DELETE FROM {table} WHERE id = 1") == [(1,)]

    assert [(row[0], row[1], str(row[3])) for row in trino(f"SELECT * FROM {table} ORDER BY id")] == [
        (2, "bb", "None"),
        (3, "ç", "6.60"),
        (4, "d", "4.40"),
    ]
    assert trino(f"SELECT count(*) FROM {table} WHERE day >= DATE '2026-02-02'") == [(2,)]
    if CHOSEN is NEWEST:
        with pytest.raises(OSError, match="DictAccumulator for DeltaLengthByteArrayDecoder"):  # of its delete files
            either_lake.rows(bare(table))
    else:
        assert [row[:3] for row in either_lake.rows(bare(table))] == [
            (2, "bb", date("2026-02-01")),
            (3, "ç", date("2026-02-03")),
            (4, "d", date("2026-03-01")),
        ]
    trino(f"TRUNCATE TABLE {table}")
    assert trino(f"SELECT count(*) FROM {table}") == [(0,)]
    either_lake.assert_receipts(bare(table), engine="trino")


def test_a_table_takes_another_shape(trino: Sql, either_lake: Lake, schema: str) -> None:
    table = f"{schema}.shape"
    trino(
        f"CREATE TABLE {table} (id integer, name varchar, at timestamp(6), code integer) "
        "WITH (partitioning = ARRAY['day(at)'])"
    )
    trino(f"INSERT INTO {table} VALUES (1, 'a', TIMESTAMP '2026-01-01 10:00:00', 7)")
    trino(f"ALTER TABLE {table} ADD COLUMN place ROW(city varchar, zip integer)")
    trino(f"ALTER TABLE {table} RENAME COLUMN name TO label")
    trino(f"ALTER TABLE {table} ALTER COLUMN id SET DATA TYPE bigint")
    trino(f"ALTER TABLE {table} ADD COLUMN place.country varchar")
    trino(f"ALTER TABLE {table} SET PROPERTIES partitioning = ARRAY['bucket(id, 4)']")
    trino(f"COMMENT ON TABLE {table} IS 'a table'")
    trino(f"COMMENT ON COLUMN {table}.label IS 'a column'")
    trino(f"INSERT INTO {table} VALUES (2, 'b', NULL, 8, ROW('Bern', 3000, 'CH'))")
    trino(f"ALTER TABLE {table} DROP COLUMN code")

    assert trino(f"SELECT id, label, place.city, place.country FROM {table} ORDER BY id") == [
        (1, "a", None, None),
        (2, "b", "Bern", "CH"),
    ]
    described = [tuple(str(cell).replace('"', "") for cell in row) for row in trino(f"DESCRIBE {table}")]
    assert described == [
        ("id", "bigint", "", ""),
        ("label", "varchar", "", "a column"),
        ("at", "timestamp(6)", "", ""),
        ("place", "row(city varchar, zip integer, country varchar)", "", ""),  # newer releases quote names
    ]
    loaded = either_lake.bystander.load_table(bare(table))
    assert [field.name for field in loaded.spec().fields] == ["id_bucket"]
    assert loaded.properties["comment"] == "a table"
    either_lake.assert_receipts(bare(table))


def test_a_table_remembers_and_forgets(trino: Sql, either_lake: Lake, schema: str) -> None:
    table = f"{schema}.past"
    snapshots = f'{schema}."past$snapshots"'
    trino(f"CREATE TABLE {table} (id bigint)")
    for number in (1, 2, 3):
        trino(f"INSERT INTO {table} VALUES {number}")
    _, first, second, third = (row[0] for row in trino(f"SELECT snapshot_id FROM {snapshots} ORDER BY committed_at"))

    assert trino(f"SELECT * FROM {table} FOR VERSION AS OF {second} ORDER BY id") == [(1,), (2,)]
    moment = trino(f"SELECT CAST(committed_at AS varchar) FROM {snapshots} WHERE snapshot_id = {first}")[0][0]
    assert trino(f"SELECT * FROM {table} FOR TIMESTAMP AS OF TIMESTAMP '{moment}'") == [(1,)]
    trino(f"ALTER TABLE {table} EXECUTE rollback_to_snapshot({second})")
    assert trino(f"SELECT * FROM {table} ORDER BY id") == [(1,), (2,)]
    assert trino(f'SELECT name, snapshot_id FROM {schema}."past$refs"') == [("main", second)]

    trino(f"INSERT INTO {table} VALUES 4")
    trino(f"ANALYZE {table}")
    trino(f"ALTER TABLE {table} EXECUTE optimize")
    trino(f"ALTER TABLE {table} EXECUTE optimize_manifests")
    trino(f"ALTER TABLE {table} EXECUTE expire_snapshots(retention_threshold => '0s')")
    trino(f"ALTER TABLE {table} EXECUTE remove_orphan_files(retention_threshold => '0s')")
    assert trino(f"SELECT count(*) FROM {snapshots}") == [(1,)]
    assert trino(f'SELECT count(*) FROM {schema}."past$files"') == [(1,)]
    assert trino(f"SELECT * FROM {table} ORDER BY id") == either_lake.rows(bare(table)) == [(1,), (2,), (4,)]
    assert third not in {snapshot.snapshot_id for snapshot in either_lake.bystander.load_table(bare(table)).snapshots()}
    either_lake.assert_receipts(bare(table))


def test_tables_are_made_of_queries_renamed_registered_and_dropped(trino: Sql, either_lake: Lake, schema: str) -> None:
    trino(f"CREATE TABLE {schema}.one AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t (id, name)")
    trino(f"CREATE OR REPLACE TABLE {schema}.one AS SELECT id FROM {schema}.one WHERE id > 1")
    trino(f"CREATE TABLE {schema}.two (LIKE {schema}.one)")
    trino(f"ALTER TABLE {schema}.one RENAME TO {schema}.three")
    assert trino(f"SELECT * FROM {schema}.three") == either_lake.rows(f"{bare(schema)}.three") == [(2,)]
    assert either_lake.tables(bare(schema)) == ["three", "two"]
    either_lake.assert_receipts(f"{bare(schema)}.three", f"{bare(schema)}.two")
    with pytest.raises(TrinoQueryError, match="does not exist"):
        trino(f"SELECT * FROM {schema}.one")
    with pytest.raises(TrinoQueryError, match="already exists"):
        trino(f"ALTER TABLE {schema}.two RENAME TO {schema}.three")

    trino(f"DROP TABLE {schema}.two")
    trino(f"DROP TABLE {schema}.three")
    trino(f"DROP SCHEMA {schema}")
    assert not either_lake.bystander.namespace_exists(bare(schema))


def test_views(trino: Sql, either_lake: Lake, schema: str) -> None:
    trino(f"CREATE TABLE {schema}.t AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t (id, name)")
    trino(f"CREATE VIEW {schema}.v COMMENT 'seen' AS SELECT id, name FROM {schema}.t")
    assert trino(f"SELECT * FROM {schema}.v ORDER BY id") == [(1, "a"), (2, "b")]
    trino(f"CREATE OR REPLACE VIEW {schema}.v AS SELECT name FROM {schema}.t WHERE id = 2")
    trino(f"ALTER VIEW {schema}.v RENAME TO {schema}.w")
    assert trino(f"SELECT * FROM {schema}.w") == [("b",)]
    assert re.search(r"WHERE \(id = 2\)", str(trino(f"SHOW CREATE VIEW {schema}.w")))
    listed = f"SELECT table_name, table_type FROM {either_lake.name}.information_schema.tables WHERE table_schema = "
    assert sorted(trino(f"{listed}'{bare(schema)}'")) == [("t", "BASE TABLE"), ("w", "VIEW")]
    assert either_lake.bystander.list_views(bare(schema)) == [(bare(schema), "w")]
    with pytest.raises(TrinoQueryError, match="already exists"):
        trino(f"CREATE TABLE {schema}.w (id bigint)")

    trino(f"DROP VIEW {schema}.w")
    assert either_lake.bystander.list_views(bare(schema)) == []


def test_trino_reads_what_spark_wrote(trino: Sql, spark: Sql, either_lake: Lake) -> None:
    table = f"{either_lake.name}.spark_wrote.orders"
    spark(f"CREATE NAMESPACE {either_lake.name}.spark_wrote")
    spark(
        f"CREATE TABLE {table} (id BIGINT, at TIMESTAMP, tags ARRAY<STRING>, place STRUCT<city: STRING>) "
        "PARTITIONED BY (bucket(4, id)) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', "
        "'write.update.mode' = 'merge-on-read')"
    )
    spark(
        f"INSERT INTO {table} SELECT id, TIMESTAMP '2026-01-01 00:00:00', array('x', 'y'), named_struct('city', 'Ulm') "
        "FROM range(10)"
    )
    spark(f"DELETE FROM {table} WHERE id % 2 = 0")
    spark(f"UPDATE {table} SET place = named_struct('city', 'Bern') WHERE id = 3")
    spark(f"ALTER TABLE {table} RENAME COLUMN tags TO labels")

    assert trino(f"SELECT id, labels[2], place.city FROM {table} ORDER BY id") == [
        (number, "y", "Bern" if number == 3 else "Ulm") for number in (1, 3, 5, 7, 9)
    ]
    trino(f"DELETE FROM {table} WHERE id > 4")
    trino(f"INSERT INTO {table} (id) VALUES 11")
    assert spark(f"SELECT id, place.city FROM {table} ORDER BY id") == [(1, "Ulm"), (3, "Bern"), (11, None)]
    either_lake.assert_receipts("spark_wrote.orders")


def test_spark_reads_what_trino_wrote(trino: Sql, spark: Sql, either_lake: Lake) -> None:
    table = f"{either_lake.name}.trino_wrote.orders"
    trino(f"CREATE SCHEMA {either_lake.name}.trino_wrote")
    trino(
        f"CREATE TABLE {table} WITH (partitioning = ARRAY['bucket(id, 4)'], format_version = 2) AS "
        "SELECT id, DATE '2026-01-01' + id * INTERVAL '1' DAY AS day, CAST(id / 4.00 AS decimal(10, 2)) AS price "
        "FROM UNNEST(sequence(0, 9)) AS t (id)"
    )
    trino(f"UPDATE {table} SET price = -1 WHERE id = 3")
    trino(f"DELETE FROM {table} WHERE id % 2 = 0")

    assert spark(f"SELECT id, CAST(day AS STRING), CAST(price AS STRING) FROM {table} WHERE id < 6 ORDER BY id") == [
        (1, "2026-01-02", "0.25"),
        (3, "2026-01-04", "-1.00"),
        (5, "2026-01-06", "1.25"),
    ]
    spark(f"INSERT INTO {table} SELECT 100, DATE '2027-01-01', 0")
    assert trino(f"SELECT count(*), sum(id) FROM {table}") == [(6, 125)]
    either_lake.assert_receipts("trino_wrote.orders")


def test_a_view_belongs_to_the_engine_that_made_it(trino: Sql, spark: Sql, either_lake: Lake) -> None:
    namespace = f"{either_lake.name}.views_of_both"
    spark(f"CREATE NAMESPACE {namespace}")
    spark(f"CREATE VIEW {namespace}.of_spark AS SELECT 1 AS one")
    trino(f"CREATE VIEW {namespace}.of_trino AS SELECT 2 AS two")

    with pytest.raises(TrinoQueryError, match="Cannot read unsupported dialect 'spark' for view"):
        trino(f"SELECT * FROM {namespace}.of_spark")
    assert sorted(str(row[1]) for row in spark(f"SHOW VIEWS IN {namespace}")) == ["of_spark", "of_trino"]
    spark(f"DROP VIEW {namespace}.of_trino")
    trino(f"DROP VIEW {namespace}.of_spark")
    assert either_lake.bystander.list_views("views_of_both") == []


@pytest.mark.slow
def test_what_trino_cannot_do_for_reasons_of_its_own(trino: Sql, local_lake: Lake) -> None:
    trino("CREATE SCHEMA rest.limits")
    trino("CREATE TABLE rest.limits.t (id bigint, day date) WITH (partitioning = ARRAY['month(day)', 'bucket(id, 4)'])")
    with pytest.raises(TrinoQueryError, match="createMaterializedView is not supported for Iceberg REST catalog"):
        trino("CREATE MATERIALIZED VIEW rest.limits.m AS SELECT count(*) AS c FROM rest.limits.t")
    trino("ALTER TABLE rest.limits.t SET PROPERTIES partitioning = ARRAY['bucket(id, 4)']")
    with pytest.raises(TrinoQueryError, match="Cannot drop column which is used by an old partition spec: day"):
        trino("ALTER TABLE rest.limits.t DROP COLUMN day")
