"""Spark SQL on the catalog, on local files and on S3: everything that a session of it does to tables and views.

What Spark says is compared with the rows that must come out, and with what PyIceberg finds in the catalog.
"""

from itertools import pairwise

import pytest

from tests.engines.lake import Lake
from tests.engines.shell import EngineError, Sql


@pytest.fixture
def namespace(request: pytest.FixtureRequest, spark: Sql, either_lake: Lake) -> str:
    """An empty namespace of this test's own, with the catalog before it."""
    name = f"{either_lake.name}.spark_{request.node.originalname}"
    spark(f"CREATE NAMESPACE {name}")
    return name


def bare(name: str) -> str:
    """A name without its catalog, as the catalog itself knows it."""
    return name.partition(".")[2]


def test_namespaces_nest_have_properties_and_must_be_empty_to_go(spark: Sql, either_lake: Lake) -> None:
    outer = f"{either_lake.name}.spark_outer"
    spark(f"CREATE NAMESPACE {outer} COMMENT 'seen' WITH DBPROPERTIES ('owner_team' = 'a')")
    spark(f"CREATE NAMESPACE {outer}.inner")
    spark(f"CREATE NAMESPACE IF NOT EXISTS {outer}.inner")
    spark(f"ALTER NAMESPACE {outer} SET PROPERTIES ('owner_team' = 'b', 'tier' = '1')")
    assert spark(f"SHOW NAMESPACES IN {outer}") == [("spark_outer.inner",)]
    properties = either_lake.bystander.load_namespace_properties("spark_outer")
    assert {key: properties[key] for key in ("comment", "owner_team", "tier")} == {
        "comment": "seen",
        "owner_team": "b",
        "tier": "1",
    }
    with pytest.raises(EngineError, match="SCHEMA_ALREADY_EXISTS"):
        spark(f"CREATE NAMESPACE {outer}")
    with pytest.raises(EngineError, match="is not empty"):
        spark(f"DROP NAMESPACE {outer}")

    spark(f"DROP NAMESPACE {outer}.inner")
    spark(f"DROP NAMESPACE {outer}")
    assert not either_lake.bystander.namespace_exists("spark_outer")


def test_a_governed_table_is_used_as_any_and_keeps_its_labels(spark: Sql, either_lake: Lake, namespace: str) -> None:
    table = f"{namespace}.t"
    spark(f"CREATE TABLE {table} (id INT, name STRING)")
    spark(f"INSERT INTO {table} VALUES (1, 'a')")
    either_lake.govern(bare(table), {"arco.owner": "finance", "arco.column.2.tag.pii": "name"})

    spark(f"REFRESH TABLE {table}")
    spark(f"INSERT INTO {table} VALUES (2, 'b')")
    spark(f"ALTER TABLE {table} RENAME COLUMN name TO label")
    spark(f"ALTER TABLE {table} SET TBLPROPERTIES ('team' = 'a')")
    with pytest.raises(EngineError, match="are reserved"):
        spark(f"ALTER TABLE {table} SET TBLPROPERTIES ('arco.owner' = 'me')")
    assert spark(f"SELECT id, label FROM {table} ORDER BY id") == [(1, "a"), (2, "b")]
    spark(f"ALTER TABLE {table} RENAME TO {bare(namespace)}.u")

    assert either_lake.labels(f"{bare(namespace)}.u") == {
        "object-labels": {"arco.owner": "finance"},
        "fields": [{"field-id": 2, "labels": {"arco.tag.pii": "name"}}],
    }


def test_a_table_takes_another_shape(spark: Sql, either_lake: Lake, namespace: str) -> None:
    table = f"{namespace}.t"
    spark(
        f"CREATE TABLE {table} (id INT NOT NULL COMMENT 'key', name STRING, at TIMESTAMP, place STRUCT<city: STRING>) "
        "PARTITIONED BY (days(at)) TBLPROPERTIES ('team' = 'a') COMMENT 'a table'"
    )
    spark(f"INSERT INTO {table} VALUES (1, 'a', TIMESTAMP '2026-01-01 10:00:00', named_struct('city', 'Ulm'))")
    for change in (
        "ADD COLUMN note STRING COMMENT 'later' AFTER id",
        "ADD COLUMN place.zip INT",
        "RENAME COLUMN name TO label",
        "ALTER COLUMN id TYPE BIGINT",
        "ALTER COLUMN label FIRST",
        "ALTER COLUMN id DROP NOT NULL",
        "DROP COLUMN note",
        "ADD PARTITION FIELD bucket(4, id)",
        "REPLACE PARTITION FIELD days(at) WITH months(at) AS month",
        "DROP PARTITION FIELD bucket(4, id)",
        "WRITE ORDERED BY id DESC",
        "SET TBLPROPERTIES ('team' = 'b', 'write.parquet.compression-codec' = 'zstd')",
        "UNSET TBLPROPERTIES ('team')",
    ):
        spark(f"ALTER TABLE {table} {change}")
    spark(
        f"INSERT INTO {table} VALUES ('b', 2, TIMESTAMP '2026-02-01 10:00:00', named_struct('city', 'Bern', 'zip', 1))"
    )

    assert spark(f"SELECT label, id, place.city, place.zip FROM {table} ORDER BY id") == [
        ("a", 1, "Ulm", None),
        ("b", 2, "Bern", 1),
    ]
    assert spark(f"SELECT count(*) FROM {table} WHERE at < TIMESTAMP '2026-01-15 00:00:00'") == [(1,)]
    loaded = either_lake.bystander.load_table(bare(table))
    assert loaded.schema().column_names == ["label", "id", "at", "place.city", "place.zip", "place"]
    assert [field.name for field in loaded.spec().fields] == ["month"]
    assert (loaded.properties.get("team"), loaded.properties["comment"]) == (None, "a table")
    assert len(loaded.sort_order().fields) == 1
    either_lake.assert_receipts(bare(table), engine="spark")


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        (1, "copy-on-write"),
        pytest.param(2, "copy-on-write", marks=pytest.mark.slow),
        pytest.param(2, "merge-on-read", marks=pytest.mark.slow),
        (3, "merge-on-read"),
    ],
)
def test_rows_change_in_every_format(spark: Sql, local_lake: Lake, version: int, mode: str) -> None:
    spark("CREATE NAMESPACE IF NOT EXISTS rest.formats")
    table = f"rest.formats.v{version}_{mode.replace('-', '_')}"
    properties = ", ".join(f"'write.{change}.mode' = '{mode}'" for change in ("delete", "update", "merge"))
    spark(
        f"CREATE TABLE {table} (id BIGINT, amount DECIMAL(10, 2), kind STRING) PARTITIONED BY (kind) "
        f"TBLPROPERTIES ('format-version' = '{version}', {properties})"
    )
    spark(f"INSERT INTO {table} SELECT id, id * 1.5, if(id % 2 = 0, 'even', 'odd') FROM range(8)")
    spark(f"UPDATE {table} SET amount = 0 WHERE id = 3")
    spark(f"DELETE FROM {table} WHERE id IN (0, 1)")
    spark(
        f"MERGE INTO {table} t USING (SELECT id, 9.99 AS amount FROM range(6, 10)) s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 6 THEN DELETE WHEN MATCHED THEN UPDATE SET amount = s.amount "
        "WHEN NOT MATCHED THEN INSERT (id, amount, kind) VALUES (s.id, s.amount, 'new')"
    )
    spark(f"INSERT OVERWRITE {table} PARTITION (kind = 'new') SELECT 100, 1")
    spark(f"DELETE FROM {table} WHERE kind = 'even' AND id = 2")

    rows = [(3, "0.00", "odd"), (4, "6.00", "even"), (5, "7.50", "odd"), (7, "9.99", "odd"), (100, "1.00", "new")]
    assert spark(f"SELECT * FROM {table} ORDER BY id") == rows
    assert sorted((id_, str(amount), kind) for id_, amount, kind in local_lake.rows(bare(table))) == rows
    local_lake.assert_receipts(bare(table))


def test_branches_tags_and_time_travel(spark: Sql, either_lake: Lake, namespace: str) -> None:
    table, catalog = f"{namespace}.t", either_lake.name
    spark(f"CREATE TABLE {table} (id BIGINT)")
    for number in (1, 2):
        spark(f"INSERT INTO {table} VALUES ({number})")
    (first, moment), (second, _) = spark(f"SELECT snapshot_id, made_current_at FROM {table}.history")
    spark(f"ALTER TABLE {table} CREATE TAG early AS OF VERSION {first} RETAIN 30 DAYS")
    spark(f"ALTER TABLE {table} CREATE BRANCH audit AS OF VERSION {second} WITH SNAPSHOT RETENTION 2 SNAPSHOTS")
    spark(f"INSERT INTO {table}.branch_audit VALUES (3)")

    def read(version: str = "") -> list[object]:
        return [row[0] for row in spark(f"SELECT id FROM {table} {version} ORDER BY id")]

    assert read() == [1, 2]
    assert read("VERSION AS OF 'early'") == read(f"VERSION AS OF {first}") == [1]
    assert read("VERSION AS OF 'audit'") == [1, 2, 3]
    assert read(f"TIMESTAMP AS OF '{moment}'") == [1]
    assert spark(f"CALL {catalog}.system.fast_forward('{bare(table)}', 'main', 'audit')")[0][0] == "main"
    assert read() == [1, 2, 3]

    spark(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    spark("SET spark.wap.id = night")
    spark(f"INSERT INTO {table} VALUES (4)")
    spark("RESET spark.wap.id")
    assert read() == [1, 2, 3]
    spark(f"CALL {catalog}.system.publish_changes('{bare(table)}', 'night')")
    assert read() == [1, 2, 3, 4]

    spark(f"ALTER TABLE {table} REPLACE TAG early AS OF VERSION {second}")
    assert read("VERSION AS OF 'early'") == [1, 2]
    refs = either_lake.bystander.load_table(bare(table)).refs()
    assert {name: ref.snapshot_ref_type.value for name, ref in refs.items()} == {
        "main": "branch",
        "audit": "branch",
        "early": "tag",
    }
    spark(f"ALTER TABLE {table} DROP BRANCH audit")
    spark(f"ALTER TABLE {table} DROP TAG early")
    assert set(either_lake.bystander.load_table(bare(table)).refs()) == {"main"}
    either_lake.assert_receipts(bare(table))


@pytest.mark.slow  # reconciler/test_maintain.py has procedures that rewrite, expire and remove each time
def test_procedures_keep_house(spark: Sql, either_lake: Lake, namespace: str) -> None:
    table, system = f"{namespace}.t", f"{either_lake.name}.system"
    spark(f"CREATE TABLE {table} (id BIGINT, half INT) PARTITIONED BY (half)")
    for number in range(4):
        spark(f"INSERT INTO {table} VALUES ({number}, 0), ({number + 10}, 1)")
    snapshots = [row[0] for row in spark(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")]
    assert len({*snapshots}) == 4
    assert all(one != other for one, other in pairwise(snapshots))

    spark(f"CALL {system}.rollback_to_snapshot('{bare(table)}', {snapshots[1]})")
    assert spark(f"SELECT count(*) FROM {table}") == [(4,)]
    spark(f"CALL {system}.set_current_snapshot('{bare(table)}', {snapshots[3]})")
    spark(f"CALL {system}.rollback_to_snapshot('{bare(table)}', {snapshots[0]})")
    spark(f"CALL {system}.cherrypick_snapshot('{bare(table)}', {snapshots[2]})")
    assert [row[0] for row in spark(f"SELECT id FROM {table} ORDER BY id")] == [0, 2, 10, 12]

    assert spark(f"CALL {system}.rewrite_data_files(table => '{bare(table)}', options => map('min-input-files', '2'))")[
        0
    ][:2] == (4, 2)
    spark(f"CALL {system}.rewrite_manifests('{bare(table)}')")
    spark(f"CALL {system}.compute_table_stats('{bare(table)}')")
    spark(f"CALL {system}.compute_partition_stats('{bare(table)}')")
    spark(f"CALL {system}.expire_snapshots(table => '{bare(table)}', older_than => now(), retain_last => 1)")
    spark(f"CALL {system}.remove_orphan_files(table => '{bare(table)}', dry_run => true, prefix_listing => true)")

    assert spark(f"SELECT count(*) FROM {table}.snapshots") == [(1,)]
    assert spark(f"SELECT count(*) FROM {table}.files") == [(2,)]
    assert spark(
        f"SELECT half, record_count FROM (SELECT partition.half, record_count FROM {table}.partitions) ORDER BY 1"
    ) == [
        (0, 2),
        (1, 2),
    ]
    assert either_lake.rows(bare(table)) == [(0, 0), (10, 1), (12, 1), (2, 0)]
    either_lake.assert_receipts(bare(table))


def test_tables_are_made_of_queries_renamed_and_dropped(spark: Sql, either_lake: Lake, namespace: str) -> None:
    spark(f"CREATE TABLE {namespace}.one USING iceberg PARTITIONED BY (id) AS SELECT id, 'a' AS name FROM range(3)")
    spark(f"CREATE OR REPLACE TABLE {namespace}.one USING iceberg AS SELECT id FROM {namespace}.one WHERE id > 0")
    spark(f"REPLACE TABLE {namespace}.one USING iceberg AS SELECT id + 1 AS id FROM {namespace}.one")
    spark(f"CREATE TABLE IF NOT EXISTS {namespace}.one (other STRING)")
    spark(f"ALTER TABLE {namespace}.one RENAME TO {bare(namespace)}.two")
    assert (
        spark(f"SELECT id FROM {namespace}.two ORDER BY id")
        == either_lake.rows(f"{bare(namespace)}.two")
        == [(2,), (3,)]
    )
    assert either_lake.tables(bare(namespace)) == ["two"]
    either_lake.assert_receipts(f"{bare(namespace)}.two")
    with pytest.raises(EngineError, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark(f"SELECT * FROM {namespace}.one")
    with pytest.raises(EngineError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark(f"CREATE TABLE {namespace}.two (id BIGINT)")

    spark(f"TRUNCATE TABLE {namespace}.two")
    assert either_lake.rows(f"{bare(namespace)}.two") == []
    spark(f"CREATE TABLE {namespace}.three AS SELECT 1 AS id")
    spark(f"DROP TABLE {namespace}.two")
    spark(f"DROP TABLE {namespace}.three PURGE")
    assert spark(f"SHOW TABLES IN {namespace}") == []


def test_a_metadata_file_becomes_a_table_again(spark: Sql, either_lake: Lake, namespace: str) -> None:
    system = f"{either_lake.name}.system"
    spark(f"CREATE TABLE {namespace}.lost AS SELECT id FROM range(3)")
    metadata = either_lake.bystander.load_table(f"{bare(namespace)}.lost").metadata_location
    spark(f"DROP TABLE {namespace}.lost")
    assert spark(f"CALL {system}.register_table('{bare(namespace)}.found', '{metadata}')")[0][1] == 3
    spark(f"INSERT INTO {namespace}.found VALUES (7)")
    assert either_lake.rows(f"{bare(namespace)}.found") == [(0,), (1,), (2,), (7,)]


@pytest.mark.slow
def test_files_of_a_parquet_table_become_an_iceberg_table(spark: Sql, local_lake: Lake) -> None:
    spark("CREATE NAMESPACE rest.taken_over")
    spark("CREATE TABLE spark_catalog.default.plain (id BIGINT, half INT) USING parquet PARTITIONED BY (half)")
    spark("INSERT INTO spark_catalog.default.plain SELECT id, id % 2 FROM range(4)")
    assert spark("CALL rest.system.snapshot('spark_catalog.default.plain', 'rest.taken_over.snapshot')") == [(4,)]
    spark("CREATE TABLE rest.taken_over.added (id BIGINT, half INT) PARTITIONED BY (half)")
    spark("CALL rest.system.add_files('rest.taken_over.added', 'spark_catalog.default.plain')")
    for table in ("snapshot", "added"):
        assert spark(f"SELECT id, half FROM rest.taken_over.{table} ORDER BY id") == [(0, 0), (1, 1), (2, 0), (3, 1)]
        local_lake.assert_receipts(f"taken_over.{table}")


def test_views(spark: Sql, either_lake: Lake, namespace: str) -> None:
    spark(f"CREATE TABLE {namespace}.t AS SELECT id, concat('n', id) AS name FROM range(3)")
    spark(
        f"CREATE VIEW {namespace}.v (number COMMENT 'key', name) COMMENT 'seen' AS SELECT id, name FROM {namespace}.t"
    )
    spark(f"CREATE VIEW {namespace}.of_v AS SELECT max(number) AS most FROM {namespace}.v")
    assert spark(f"SELECT * FROM {namespace}.of_v") == [(2,)]
    spark(f"CREATE OR REPLACE VIEW {namespace}.v AS SELECT id AS number FROM {namespace}.t WHERE id < 2")
    spark(f"ALTER VIEW {namespace}.v SET TBLPROPERTIES ('team' = 'a')")
    assert spark(f"SELECT * FROM {namespace}.of_v") == [(1,)]
    spark(f"ALTER VIEW {namespace}.of_v RENAME TO {either_lake.name}.{bare(namespace)}.w")
    assert sorted(str(row[1]) for row in spark(f"SHOW VIEWS IN {namespace}")) == ["v", "w"]
    assert sorted(name for *_, name in either_lake.bystander.list_views(bare(namespace))) == ["v", "w"]
    assert ("team", "a") in spark(f"SHOW TBLPROPERTIES {namespace}.v")
    assert "WHERE id < 2" in str(spark(f"SHOW CREATE TABLE {namespace}.v"))
    with pytest.raises(EngineError, match="ALREADY_EXISTS"):
        spark(f"CREATE TABLE {namespace}.w (id BIGINT)")
    with pytest.raises(EngineError, match="ALREADY_EXISTS"):
        spark(f"CREATE VIEW {namespace}.t AS SELECT 1 AS one")

    spark(f"DROP VIEW {namespace}.w")
    spark(f"DROP VIEW {namespace}.v")
    assert either_lake.bystander.list_views(bare(namespace)) == []


@pytest.mark.slow
def test_what_spark_cannot_do_for_reasons_of_its_own(spark: Sql, local_lake: Lake) -> None:
    spark("CREATE NAMESPACE rest.limits_of_spark")
    spark("CREATE TABLE rest.limits_of_spark.t (id BIGINT) TBLPROPERTIES ('format-version' = '3')")
    spark("INSERT INTO rest.limits_of_spark.t VALUES (1)")
    assert spark("SELECT id, _row_id FROM rest.limits_of_spark.t") == [(1, 0)]
    with pytest.raises(EngineError, match="Cannot find field '_row_id'"):
        spark("SELECT min(_row_id) FROM rest.limits_of_spark.t")
    with pytest.raises(EngineError, match="does not exist"):
        spark("ALTER TABLE rest.limits_of_spark.t RENAME TO rest.limits_of_spark.u")
    spark(
        "CREATE TABLE rest.limits_of_spark.old (id BIGINT) "
        "TBLPROPERTIES ('format-version' = '1', 'write.update.mode' = 'merge-on-read')"
    )
    spark("INSERT INTO rest.limits_of_spark.old VALUES (1), (2)")
    with pytest.raises(EngineError, match="Deletes are supported in V2 and above"):
        spark("UPDATE rest.limits_of_spark.old SET id = 3 WHERE id = 1")
    assert local_lake.tables("limits_of_spark") == ["old", "t"]


def test_spark_lists_no_s3_by_itself(spark: Sql, s3_lake: Lake) -> None:
    spark("CREATE NAMESPACE s3.limits_of_spark")
    spark("CREATE TABLE s3.limits_of_spark.t (id BIGINT)")
    with pytest.raises(EngineError, match='No FileSystem for scheme "s3"'):
        spark("CALL s3.system.remove_orphan_files('limits_of_spark.t')")
    assert s3_lake.tables("limits_of_spark") == ["t"]
