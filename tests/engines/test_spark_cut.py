"""Spark reads tables as they were at one consistent cut (docs/resolve.md#pin-a-session): by the views that the cut
makes for its session, and while transactions append to two tables at once."""

import os
import threading
from collections.abc import Sequence

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from arco_catalog.cuts import read_cut
from arco_catalog.iceberg.json import JsonObject
from tests.engines.lake import Lake
from tests.engines.shell import Sql
from tools.demo.server import WAREHOUSE

CUTS = int(os.environ.get("ARCO_SPARK_CUTS", "100"))
ROWS = pa.table({"id": [1]})
BRANCH = "next"
"""Has the next snapshot of a table, before a transaction makes it that of main."""


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


@pytest.mark.parametrize("cuts", [4, pytest.param(CUTS, marks=pytest.mark.slow)])
def test_spark_reads_two_tables_with_all_of_a_transaction_or_nothing(spark: Sql, either_lake: Lake, cuts: int) -> None:
    catalog, uri = either_lake.bystander, either_lake.server.uri
    namespace = f"spark_cuts_{cuts}"
    names = [f"{namespace}.orders", f"{namespace}.items"]
    catalog.create_namespace(namespace)
    for name in names:
        table = catalog.create_table(name, ROWS.schema)
        table.append(ROWS)
        table.manage_snapshots().create_branch(table.snapshots()[0].snapshot_id, BRANCH).commit()

    with AppendsToAll(either_lake, names) as appends:
        seen = list[object]()
        for _ in range(cuts):
            appends.wait_for_next()
            cut = read_cut(uri, WAREHOUSE, names)
            [[(orders,)], [(items,)]] = (
                spark(f"SELECT count(*) FROM {cut.spark_table(either_lake.name, name)}") for name in names
            )
            assert orders == items
            seen.append(orders)
    assert len(set(seen)) == cuts, "each cut is newer than the one before"


class AppendsToAll:
    """A thread that appends a row to each of these tables by one transaction, again and again."""

    def __init__(self, lake: Lake, names: Sequence[str]) -> None:
        self._lake = lake
        self._names = names
        self._condition = threading.Condition()
        self._done = 0
        self._error: Exception | None = None
        self._is_over = False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "AppendsToAll":
        self._thread.start()
        return self

    def __exit__(self, *failed: object) -> None:
        self._is_over = True
        self._thread.join()

    def wait_for_next(self) -> None:
        """Returns when one more transaction has committed."""
        with self._condition:
            before = self._done
            assert self._condition.wait_for(lambda: self._done > before, timeout=60)
            assert self._error is None, self._error

    def _run(self) -> None:
        while not self._is_over and self._error is None:
            try:
                self._append()
            except Exception as error:  # raised in the test's own thread
                self._error = error
            with self._condition:
                self._done += 1
                self._condition.notify_all()

    def _append(self) -> None:
        changes = [self._next_snapshot(name) for name in self._names]
        self._lake.post("transactions/commit", {"table-changes": changes})

    def _next_snapshot(self, name: str) -> JsonObject:
        """Appends a row to the branch of a table. Returns the change that makes its snapshot that of main."""
        table = self._lake.bystander.load_table(name)
        table.append(ROWS, branch=BRANCH)
        snapshot = table.snapshot_by_name(BRANCH)
        assert snapshot is not None
        namespace, _, short = name.partition(".")
        update: JsonObject = {
            "action": "set-snapshot-ref",
            "ref-name": "main",
            "type": "branch",
            "snapshot-id": snapshot.snapshot_id,
        }
        return {"identifier": {"namespace": [namespace], "name": short}, "requirements": [], "updates": [update]}
