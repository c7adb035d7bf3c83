"""Spark reads tables as they were at one consistent cut, by the views that the cut makes for its session
(docs/resolve.md#pin-a-session)."""

from arco_catalog.cuts import read_cut
from tests.engines.lake import Lake
from tests.engines.shell import Sql
from tools.demo.server import WAREHOUSE


def test_a_session_of_spark_is_pinned_to_a_cut(spark: Sql, either_lake: Lake) -> None:
    namespace = f"{either_lake.name}.spark_cut"
    spark(f"CREATE NAMESPACE {namespace}")
    for name in ("cut_orders", "cut_items"):
        spark(f"CREATE TABLE {namespace}.{name} (id INT)")
    spark(f"INSERT INTO {namespace}.cut_orders VALUES (1)")

    cut = read_cut(either_lake.server.uri, WAREHOUSE, ["spark_cut.cut_orders", "spark_cut.cut_items"])
    for statement in cut.spark_views(either_lake.name):
        spark(statement)
    try:
        for name in ("cut_orders", "cut_items"):
            spark(f"INSERT INTO {namespace}.{name} VALUES (2)")
        spark(f"ALTER TABLE {namespace}.cut_orders ADD COLUMN later STRING")

        assert spark("SELECT * FROM cut_orders") == [(1,)]
        assert spark("SELECT * FROM cut_items") == []
    finally:  # other tests use the session, too, and list the views that they made
        for name in ("cut_orders", "cut_items"):
            spark(f"DROP VIEW IF EXISTS {name}")
    assert spark(f"SELECT id FROM {namespace}.cut_orders ORDER BY id") == [(1,), (2,)]
