"""iceberg-go on scans that the catalog plans: the rows are those that it finds when it plans them itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.lake import Lake, lake
from tests.engines.others.conftest import iceberg_go_scans
from tests.engines.spark_shell import spark_properties, spark_shell
from tests.engines.vended_scans import assert_iceberg_go_reads_what_its_principal_may_read
from tests.stores.realm_lake import ROLE, realm_lake
from tools.support.s3_servers import S3Server

TABLE = "planned.t"
ROWS = {"all": 48, "above": 36, "null": 8, "some": 2, "neither": 13, "none": 0}
"""By the name of a filter in the Go program, how many rows it finds."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.fixture
def planning_lake(log: Path, tmp_path: Path) -> Iterator[Lake]:
    """A catalog on local files that logs every request, and its table of two partition specs with position deletes."""
    (tmp_path / "spark").mkdir()
    rows = "SELECT id, IF(id % 6 = 0, NULL, concat('n', id)) FROM"
    with (
        lake("rest", f"file:{tmp_path / 'store'}", log, {}, "--log-level", "debug") as opened,
        spark_shell({"rest": spark_properties(opened)}, tmp_path / "spark") as spark,
    ):
        spark("CREATE NAMESPACE planned")
        spark(
            f"""CREATE TABLE {TABLE} (id BIGINT NOT NULL, name STRING) PARTITIONED BY (bucket(4, id))
            TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"""
        )
        spark(f"INSERT INTO {TABLE} {rows} range(30)")
        spark(f"ALTER TABLE {TABLE} ADD PARTITION FIELD truncate(10, id)")
        spark(f"INSERT INTO {TABLE} {rows} range(30, 60)")
        spark(f"DELETE FROM {TABLE} WHERE id % 5 = 0")
        yield opened


def test_iceberg_go_finds_the_same_rows_in_plans_of_the_catalog(planning_lake: Lake, log: Path, tmp_path: Path) -> None:
    with iceberg_go_scans(planning_lake, TABLE, tmp_path) as scan:
        found = {name: sorted(scan(f"local {name}")) for name in ROWS}
        assert plans(log) == 0
        planned = {name: sorted(scan(f"remote {name}")) for name in ROWS}

    assert planned == found
    assert {name: len(rows) for name, rows in planned.items()} == ROWS
    assert plans(log) == len(ROWS)


def test_iceberg_go_reads_by_the_credentials_of_a_plan(s3_server: S3Server, s3_bucket: str, tmp_path: Path) -> None:
    """On S3, in a realm. It has no key, and no endpoint: the environment has none either."""
    with realm_lake(s3_server, tmp_path, **ROLE) as lake:
        assert_iceberg_go_reads_what_its_principal_may_read(lake, tmp_path)


def plans(log: Path) -> int:
    """How many plans the catalog has made."""
    return log.read_text().count("/plan 200 ")
