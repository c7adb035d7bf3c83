"""Each supported release of Spark and of Iceberg on the catalog: tables, rows, branches, time travel and views.

What Spark can do in full is tested on the newest, in test_spark.py. `make test-sparks` fetches the others.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.lake import Lake, lake
from tests.engines.shell import Sql
from tests.engines.spark_shell import spark_properties, spark_shell
from tests.support.sparks import Spark

RELEASES = [Spark("3.5", "1.6.1"), Spark("3.5"), Spark("4.0"), Spark("4.1"), Spark("4.1", "1.12.0")]


@pytest.fixture(
    params=[
        pytest.param(
            spark, id=f"spark-{spark.version}-iceberg-{spark.iceberg}", marks=pytest.mark.optional(*spark.files)
        )
        for spark in RELEASES
    ]
)
def release(request: pytest.FixtureRequest) -> Spark:
    spark: Spark = request.param
    return spark


@pytest.fixture
def fresh_lake(tmp_path: Path) -> Iterator[Lake]:
    with lake("rest", f"file:{tmp_path / 'store'}", tmp_path / "server.log", {}) as opened:
        yield opened


@pytest.fixture
def sql(release: Spark, fresh_lake: Lake, tmp_path: Path) -> Iterator[Sql]:
    catalogs = {"rest": spark_properties(fresh_lake)}
    with spark_shell(catalogs, tmp_path, release.python, release.jar) as spark:
        yield spark


@pytest.mark.slow
def test_tables_branches_time_travel_and_views(sql: Sql, release: Spark, fresh_lake: Lake) -> None:
    assert str(sql("SELECT version()")[0][0]).startswith(f"{release.version}.")
    sql("CREATE NAMESPACE db")
    sql("CREATE TABLE db.t (id BIGINT, name STRING, day DATE) USING iceberg PARTITIONED BY (months(day))")
    sql("INSERT INTO db.t VALUES (1, 'a', DATE '2026-01-01'), (2, 'b', DATE '2026-02-01')")
    [(first,)] = sql("SELECT snapshot_id FROM db.t.snapshots")
    sql("INSERT INTO db.t VALUES (3, 'c', DATE '2026-03-01')")
    sql(
        "MERGE INTO db.t t USING (SELECT 2L AS id UNION SELECT 4L) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = 'seen' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')"
    )
    sql("ALTER TABLE db.t ADD COLUMN note STRING")
    sql("UPDATE db.t SET note = 'x' WHERE id = 3")
    sql("DELETE FROM db.t WHERE id = 1")
    rows = [(2, "seen", None), (3, "c", "x"), (4, "new", None)]
    assert sql("SELECT id, name, note FROM db.t ORDER BY id") == rows

    sql("ALTER TABLE db.t CREATE BRANCH audit")
    sql("INSERT INTO db.t.branch_audit (id, name, day, note) VALUES (5, 'e', NULL, NULL)")
    assert sql("SELECT count(*) FROM db.t VERSION AS OF 'audit'") == [(4,)]
    assert sql(f"SELECT id FROM db.t VERSION AS OF {first} ORDER BY id") == [(1,), (2,)]
    assert [(row[0], row[1], row[3]) for row in fresh_lake.rows("db.t")] == rows

    sql("CREATE VIEW db.v AS SELECT id, upper(name) AS name FROM db.t WHERE id > 2")
    assert sql("SELECT * FROM db.v ORDER BY id") == [(3, "C"), (4, "NEW")]
    sql("CREATE TABLE db.copy USING iceberg AS SELECT * FROM db.v")
    sql("CALL rest.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))")
    assert fresh_lake.rows("db.copy") == [(3, "C"), (4, "NEW")]
    assert [(row[0], row[1], row[3]) for row in fresh_lake.rows("db.t")] == rows

    fresh_lake.assert_receipts("db.t", "db.copy", engine="spark")
    clients = [receipt["source"]["client_info"] for receipt in json.loads(fresh_lake.server.receipts("db.t"))]
    assert {client.rpartition("/")[2] for client in clients} == {release.iceberg}
    sql("DROP VIEW db.v")
    sql("DROP TABLE db.copy PURGE")
    assert fresh_lake.tables("db") == ["t"]
