"""PyIceberg and Spark on scans that the catalog of a realm plans on S3: they read by the credentials of the plan."""

from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError
from pyiceberg.io import load_file_io

from tests.engines.shell import Sql
from tests.engines.spark_shell import spark_shell
from tests.engines.vended_scans import (
    assert_spark_reads_by_plans_what_its_principals_may_read,
    make_tables,
    plan,
    planning,
    planning_sparks,
    reader_of,
)
from tests.stores.realm_lake import ROLE, Lake, realm_lake
from tools.support.s3_servers import S3Server


@pytest.fixture
def lake(s3_server: S3Server, s3_bucket: str, tmp_path: Path) -> Iterator[Lake]:
    """A realm with two tables. Nothing in this process's environment leads to its S3."""
    with realm_lake(s3_server, tmp_path, **ROLE) as served:
        make_tables(served)
        yield served


def test_the_files_of_a_plan_open_by_its_credentials_alone(lake: Lake) -> None:
    login = reader_of(lake, "t")
    found = plan(lake, login, "t")

    assert len(found.files) == 2
    assert all(file.startswith(found.credential["prefix"]) for file in found.files)
    io = load_file_io(found.credential["config"])
    for file in found.files:
        with io.new_input(file).open() as opened:
            assert opened.read().startswith(b"PAR1")

    with pytest.raises(HTTPError, match="404"):
        plan(lake, login, "closed")
    with pytest.raises(HTTPError, match="403"):
        plan(lake, lake.principal("lister", "TABLE_READ_PROPERTIES", "TABLE_LIST"), "t")


def test_pyiceberg_reads_by_a_plan_what_its_principal_may_read(lake: Lake) -> None:
    catalog = planning(lake, reader_of(lake, "t"))
    assert not [name for name in catalog.properties if name.startswith("s3.")]
    table = catalog.load_table("db.t")

    assert sorted(table.scan(row_filter="id > 4").to_arrow()["id"].to_pylist()) == list(range(5, 20))
    assert len(lake.answered("plan")) == 1
    with pytest.raises(NoSuchTableError):
        catalog.load_table("db.closed")
    lister = planning(lake, lake.principal("lister", "TABLE_READ_PROPERTIES", "TABLE_LIST"))
    with pytest.raises(ForbiddenError, match="lacks the privilege TABLE_READ_DATA"):
        lister.load_table("db.t")
    assert len(lake.answered("plan")) == 1


@pytest.fixture
def spark(lake: Lake, tmp_path: Path) -> Iterator[Sql]:
    """Spark as the readers of two tables, `one` and `other`: it knows no key, and no endpoint of S3."""
    catalogs = planning_sparks(lake, {"one": reader_of(lake, "t"), "other": reader_of(lake, "closed")})
    (tmp_path / "spark").mkdir()
    with spark_shell(catalogs, tmp_path / "spark") as sql:
        yield sql


@pytest.mark.slow
def test_spark_reads_by_a_plan_what_its_principal_may_read(spark: Sql, lake: Lake) -> None:
    assert_spark_reads_by_plans_what_its_principals_may_read(spark, lake)
