"""DataFusion's SQL over iceberg-rust's REST client: it creates tables, appends, reads and drops, on local files and S3.

PyIceberg compares the rows. What it can't do for a reason of its own is here with its error, and in
docs/engines/datafusion-polars.md.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.lake import Lake, lake
from tests.engines.others.conftest import iceberg_rust
from tests.engines.shell import EngineError, Sql

CREATED = "CREATE TABLE rest.rust.t (id BIGINT NOT NULL, name VARCHAR, price DECIMAL(10, 2), day DATE)"
ROWS = [(1, "a"), (2, None), (3, "c"), (11, "a"), (13, "c")]


@pytest.fixture(params=["local", "s3"])
def rust_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    """A catalog that has few tables besides: the engine loads all of them before each statement."""
    if request.param == "s3":
        yield request.getfixturevalue("s3_lake")
        return
    with lake("rest", f"file:{tmp_path / 'store'}", tmp_path / "server.log", {}) as opened:
        yield opened


@pytest.fixture
def rust(rust_lake: Lake, tmp_path: Path) -> Iterator[Sql]:
    with iceberg_rust(rust_lake, tmp_path) as sql:
        yield sql


def test_datafusion_by_iceberg_rust(rust: Sql, rust_lake: Lake) -> None:
    rust("CREATE SCHEMA rest.rust")
    rust(CREATED)
    assert rust(
        "INSERT INTO rest.rust.t VALUES (1, 'a', 1.5, DATE '2026-01-01'), (2, NULL, NULL, NULL), "
        "(3, 'c', 9, DATE '2026-02-01')"
    ) == [(3,)]
    rust("INSERT INTO rest.rust.t SELECT id + 10, name, price, day FROM rest.rust.t WHERE day IS NOT NULL")
    assert rust("SELECT id, name FROM rest.rust.t ORDER BY id") == ROWS
    assert rust("SELECT sum(price) AS spent FROM rest.rust.t WHERE id > 2 AND name = 'c'") == [(18.0,)]
    assert sorted(row[:2] for row in rust_lake.rows("rust.t")) == ROWS
    rust_lake.assert_receipts("rust.t")

    rust_lake.bystander.load_table("rust.t").delete("id > 10")
    assert rust("SELECT id, name FROM rest.rust.t ORDER BY id") == ROWS[:3]
    for statement, error in (
        ("UPDATE rest.rust.t SET name = 'z'", "UPDATE not supported for Base table"),
        ("DELETE FROM rest.rust.t WHERE id = 1", "DELETE not supported for Base table"),
        (
            "INSERT OVERWRITE rest.rust.t SELECT * FROM rest.rust.t",
            "supports only append inserts, got Insert Overwrite",
        ),
        ("CREATE TABLE rest.rust.c AS SELECT 1 AS one", "register_table does not support tables with data"),
        ("CREATE VIEW rest.rust.v AS SELECT 1 AS one", "register_table does not support tables with data"),
    ):
        with pytest.raises(EngineError) as refused:
            rust(statement)
        assert error in str(refused.value)
    assert rust_lake.tables("rust") == ["t"]

    rust("DROP TABLE rest.rust.t")
    assert rust_lake.tables("rust") == []
    rust_lake.bystander.drop_namespace("rust")
