"""Tables of a realm on S3 whose files are opened by what a plan has, for principals that may read one of them."""

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from arco_catalog.cli.client_config import ALL_ROLES, TOKENS
from tests.engines.go_scanner import SCANNER, go_program
from tests.engines.shell import EngineError
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
