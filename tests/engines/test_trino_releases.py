"""Trino 449 on the catalog: tables, rows, time travel and views. The newer releases are in test_trino.py.

The first requirements of this project name 450, of which Maven Central has no plugin for Iceberg.
"""

import datetime
import time
from collections.abc import Iterator

import pytest
from trino.dbapi import Connection

from tests.engines.lake import Lake
from tests.engines.shell import Sql
from tests.engines.trino_releases import BEFORE_450
from tests.engines.trino_server import NODES_S, run, trino_properties, trino_server

UNKNOWN = ("iceberg.rest-catalog.nested-namespace-enabled", "iceberg.rest-catalog.view-endpoints-enabled")
"""Settings that came later."""

pytestmark = [pytest.mark.slow, pytest.mark.optional(BEFORE_450.file)]


def properties(lake: Lake) -> dict[str, str]:
    """The settings of a catalog, as this release names them."""
    return {
        name.replace("expire-snapshots", "expire_snapshots").replace(
            "remove-orphan-files", "remove_orphan_files"
        ): value
        for name, value in trino_properties(lake).items()
        if name not in UNKNOWN
    } | {"fs.hadoop.enabled": "false"}


def await_node(connection: Connection) -> None:
    """Waits until the server knows its node: this release computes without end where it plans a write before."""
    deadline = time.perf_counter() + NODES_S
    while run(connection, "SELECT count(*) FROM system.runtime.nodes WHERE state = 'active'") == [(0,)]:
        assert time.perf_counter() < deadline
        time.sleep(0.2)


@pytest.fixture(scope="module")
def trino(s3_lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    with trino_server({"s3": properties(s3_lake)}, tmp_path_factory.mktemp("trino"), BEFORE_450) as connection:
        await_node(connection)
        yield lambda statement: run(connection, statement)


def test_tables_rows_time_travel_and_views(trino: Sql, s3_lake: Lake) -> None:
    trino("CREATE SCHEMA s3.of_449")
    table = "s3.of_449.t"
    trino(f"CREATE TABLE {table} (id bigint, name varchar, day date) WITH (partitioning = ARRAY['month(day)'])")
    trino(f"INSERT INTO {table} VALUES (1, 'a', DATE '2026-01-01'), (2, 'b', DATE '2026-02-01')")
    [[first]] = trino('SELECT snapshot_id FROM s3.of_449."t$snapshots" ORDER BY committed_at DESC LIMIT 1')
    trino(f"INSERT INTO {table} VALUES (3, 'c', DATE '2026-03-01')")
    trino(
        f"MERGE INTO {table} t USING (VALUES (2, 'bb'), (4, 'd')) AS u (id, name) ON t.id = u.id "
        "WHEN MATCHED THEN UPDATE SET name = u.name WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.name, NULL)"
    )
    trino(f"ALTER TABLE {table} ADD COLUMN note varchar")
    trino(f"UPDATE {table} SET note = 'x' WHERE id = 3")
    trino(f"DELETE FROM {table} WHERE id = 1")
    rows = [(2, "bb", None), (3, "c", "x"), (4, "d", None)]
    assert trino(f"SELECT id, name, note FROM {table} ORDER BY id") == rows
    assert trino(f"SELECT id FROM {table} FOR VERSION AS OF {first} ORDER BY id") == [(1,), (2,)]
    found = s3_lake.rows("of_449.t")
    assert [(row[0], row[1], row[3]) for row in found] == rows
    assert found[1][2] == datetime.date(2026, 3, 1)

    trino("CREATE VIEW s3.of_449.v AS SELECT id, upper(name) AS name FROM s3.of_449.t WHERE id > 2")
    assert trino("SELECT * FROM s3.of_449.v ORDER BY id") == [(3, "C"), (4, "D")]
    trino("CREATE TABLE s3.of_449.copy AS SELECT * FROM s3.of_449.v")
    trino(f"ALTER TABLE {table} EXECUTE optimize")
    assert s3_lake.rows("of_449.copy") == [(3, "C"), (4, "D")]
    s3_lake.assert_receipts("of_449.t", "of_449.copy", engine="trino")
    trino("DROP VIEW s3.of_449.v")
    trino("DROP TABLE s3.of_449.copy")
    assert s3_lake.tables("of_449") == ["t"]
