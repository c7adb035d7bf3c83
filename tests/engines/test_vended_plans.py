"""PyIceberg and Spark on scans that the catalog of a realm plans on S3: they read by the credentials of the plan."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError
from pyiceberg.io import load_file_io

from arco_catalog.cli.client_config import ALL_ROLES, TOKENS
from tests.engines.shell import EngineError, Sql
from tests.engines.spark_shell import spark_shell
from tests.engines.vended_scans import make_tables, reader_of
from tests.stores.realm_lake import ROLE, Lake, realm_lake
from tools.support.s3_servers import S3Server


@pytest.fixture
def lake(s3_server: S3Server, s3_bucket: str, tmp_path: Path) -> Iterator[Lake]:
    """A realm with two tables. Nothing in this process's environment leads to its S3."""
    with realm_lake(s3_server, tmp_path, **ROLE) as served:
        make_tables(served)
        yield served


def planning(lake: Lake, login: str) -> RestCatalog:
    return lake.client(login, **{"scan-planning-mode": "server"})


def test_the_files_of_a_plan_open_by_its_credentials_alone(lake: Lake) -> None:
    login = reader_of(lake, "t")
    tasks, credential = plan(lake, login, "t")

    files = [task["data-file"]["file-path"] for task in tasks]
    assert len(files) == 2
    assert all(file.startswith(credential["prefix"]) for file in files)
    io = load_file_io(credential["config"])
    for file in files:
        with io.new_input(file).open() as opened:
            assert opened.read().startswith(b"PAR1")

    with pytest.raises(HTTPError, match="404"):
        plan(lake, login, "closed")
    with pytest.raises(HTTPError, match="403"):
        plan(lake, lake.principal("lister", "TABLE_READ_PROPERTIES", "TABLE_LIST"), "t")


def plan(lake: Lake, login: str, table: str) -> tuple[list[Any], dict[str, Any]]:
    """The tasks of a plan of the whole table, and its credential, as a client of vended credentials gets them."""
    headers = {
        "Authorization": f"Bearer {lake.token(login)}",
        "Content-Type": "application/json",
        "X-Iceberg-Access-Delegation": "vended-credentials",
    }
    url = f"{lake.arco.uri}/v1/lake/namespaces/db/tables/{table}/plan"
    with urlopen(Request(url, b"{}", headers), timeout=60) as answer:
        found = json.load(answer)
    [credential] = found["storage-credentials"]
    return found["file-scan-tasks"], credential


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
    catalogs = {
        name: {
            "uri": lake.arco.uri,
            "warehouse": "lake",
            "credential": reader_of(lake, table),
            "scope": ALL_ROLES,
            "oauth2-server-uri": f"{lake.arco.uri}{TOKENS}",
            "header.X-Iceberg-Access-Delegation": "vended-credentials",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "scan-planning-mode": "server",
        }
        for name, table in {"one": "t", "other": "closed"}.items()
    }
    (tmp_path / "spark").mkdir()
    with spark_shell(catalogs, tmp_path / "spark") as sql:
        yield sql


@pytest.mark.slow
def test_spark_reads_by_a_plan_what_its_principal_may_read(spark: Sql, lake: Lake) -> None:
    for table in ("one.db.t", "other.db.closed"):
        assert sorted(spark(f"SELECT id FROM {table} WHERE id > 4")) == [(number,) for number in range(5, 20)]
    plans = len(lake.answered("plan"))
    assert plans >= 2
    for table in ("one.db.closed", "other.db.t"):
        with pytest.raises(EngineError, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark(f"SELECT * FROM {table}")
    assert len(lake.answered("plan")) == plans
