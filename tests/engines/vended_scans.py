"""Tables of a realm on S3 whose files are opened by what a plan has, for principals that may read one of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog.rest import RestCatalog

from arco_catalog.cli.client_config import ALL_ROLES, TOKENS
from tests.engines.go_scanner import SCANNER, go_program
from tests.engines.shell import EngineError, Sql
from tests.stores.realm_lake import Lake

ROWS = pa.table({"id": pa.array(range(20), pa.int64()), "name": [f"n{number}" for number in range(20)]})


def make_tables(lake: Lake) -> None:
    """Two tables in the namespace `db`, of two files each."""
    writer = lake.client(lake.principal("writer", "CATALOG_MANAGE_CONTENT"))
    writer.create_namespace("db")
    for name in ("t", "closed"):
        table = writer.create_table(f"db.{name}", ROWS.schema)
        table.append(ROWS.slice(0, 10))
        table.append(ROWS.slice(10))


def reader_of(lake: Lake, table: str) -> str:
    """What a principal logs in with who may read one table, and nothing else."""
    login = lake.principal(f"reader-of-{table}")
    grant = {"type": "table", "namespace": ["db"], "tableName": table, "privilege": "TABLE_READ_DATA"}
    lake.manage("PUT", f"catalogs/lake/catalog-roles/reader-of-{table}/grants", {"grant": grant})
    return login


@dataclass(frozen=True)
class ScanPlan:
    """A plan of a whole table: its id, the paths of its data files, and its credential."""

    plan_id: str
    files: list[str]
    credential: dict[str, Any]


def plan(lake: Lake, login: str, table: str) -> ScanPlan:
    """Plans a scan of a whole table, as a client of vended credentials does. Raises `HTTPError`."""
    found = request(lake, login, table, "plan", b"{}")
    [credential] = found["storage-credentials"]
    return ScanPlan(found["plan-id"], [task["data-file"]["file-path"] for task in found["file-scan-tasks"]], credential)


def request(lake: Lake, login: str, table: str, path: str, body: bytes | None = None) -> dict[str, Any]:
    """The answer to a request about a table of the namespace `db`: a POST if it has a body. Raises `HTTPError`."""
    headers = {
        "Authorization": f"Bearer {lake.token(login)}",
        "Content-Type": "application/json",
        "X-Iceberg-Access-Delegation": "vended-credentials",
    }
    url = f"{lake.arco.uri}/v1/lake/namespaces/db/tables/{table}/{path}"
    with urlopen(Request(url, body, headers), timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def planning(lake: Lake, login: str) -> RestCatalog:
    """PyIceberg, for which the server plans scans."""
    return lake.client(login, **{"scan-planning-mode": "server"})


def planning_sparks(lake: Lake, logins: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Spark's settings of catalogs for which the server plans scans: they have no key, and no endpoint of S3."""
    return {
        name: {
            "uri": lake.arco.uri,
            "warehouse": "lake",
            "credential": login,
            "scope": ALL_ROLES,
            "oauth2-server-uri": f"{lake.arco.uri}{TOKENS}",
            "header.X-Iceberg-Access-Delegation": "vended-credentials",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "scan-planning-mode": "server",
        }
        for name, login in logins.items()
    }


def assert_spark_reads_by_plans_what_its_principals_may_read(spark: Sql, lake: Lake) -> None:
    """Spark has a catalog `one`, whose principal may read the table `t`, and one `other`, whose may read `closed`."""
    before = len(lake.answered("plan"))
    for table in ("one.db.t", "other.db.closed"):
        assert sorted(spark(f"SELECT * FROM {table} WHERE id > 4")) == [
            (number, f"n{number}") for number in range(5, 20)
        ]
    plans = len(lake.answered("plan"))
    assert plans >= before + 2
    for table in ("one.db.closed", "other.db.t"):
        with pytest.raises(EngineError, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark(f"SELECT * FROM {table}")
    assert len(lake.answered("plan")) == plans


def assert_iceberg_go_reads_what_its_principal_may_read(lake: Lake, scratch: Path) -> None:
    make_tables(lake)
    login = {
        "credential": reader_of(lake, "t"),
        "scope": ALL_ROLES,
        "oauth2-server-uri": f"{lake.arco.uri}{TOKENS}",
    }
    with go_program(SCANNER, lake.arco.uri, "lake", "db.t", scratch, login) as scan:
        found = scan("remote above")
        assert sorted(found) == [(str(number), f"n{number}") for number in range(16, 20)]
        assert len(lake.answered("plan")) == 1
        assert sorted(scan("local above")) == sorted(found)
    with (
        go_program(SCANNER, lake.arco.uri, "lake", "db.closed", scratch, login) as closed,
        pytest.raises((EngineError, RuntimeError)),
    ):
        closed("remote above")
    assert len(lake.answered("plan")) == 1
