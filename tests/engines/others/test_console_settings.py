"""DuckDB reads a table by the settings that the console shows: local files, and S3 at its region and endpoint."""

import asyncio
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from tests.cli.process import serving
from tests.console.test_settings import file_io_of, make_table, shown
from tests.engines.others.conftest import duckdb_shell
from tests.support.served_realms import LOGINS, bootstrapped
from tools.support.s3_servers import S3Server

pytestmark = pytest.mark.needs("node", "console/node_modules/.complete")


def rows_where_it_is_pasted(text: str, scratch: Path) -> int:
    """The rows that the last statement finds. Extensions are there already, but for the one with the chain of
    credentials."""
    *statements, query = (line.removesuffix(";") for line in text.splitlines() if not line.startswith("INSTALL"))
    with duckdb_shell(scratch, *statements) as sql:
        return len(sql(query))


async def test_local_files(tmp_path: Path) -> None:
    async with serving(f"file:{tmp_path}/store") as server:
        table = await asyncio.to_thread(make_table, load_catalog("rest", type="rest", uri=server.uri))
        text = shown(server.uri, "arco", table, {})["DuckDB"]

        assert await asyncio.to_thread(rows_where_it_is_pasted, text, tmp_path) == 3


async def test_a_login_at_a_realm(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    root = await bootstrapped(store)
    async with serving(store, **LOGINS) as server:
        table = await asyncio.to_thread(make_table, root.catalog(server.uri))
        text = shown(server.uri, "arco", table, {}, ["client-credentials"])["DuckDB"]
        text = text.replace("'CLIENT_ID'", f"'{root.client_id}'").replace("'CLIENT_SECRET'", f"'{root.secret}'")

        assert await asyncio.to_thread(rows_where_it_is_pasted, text, tmp_path) == 3


async def test_the_region_and_endpoint_of_s3(s3_server: S3Server, s3_endpoint: str, tmp_path: Path) -> None:
    s3_server.make_bucket("shown-to-duckdb")
    async with serving("s3://shown-to-duckdb/lake", **s3_server.environment) as server:
        given = {"s3.endpoint": s3_endpoint, "s3.region": "us-east-1"}
        table = await asyncio.to_thread(make_table, load_catalog("rest", type="rest", uri=server.uri, **given))
        text = shown(server.uri, "arco", table, file_io_of(server.uri, "arco"))["DuckDB"]
        keys = f"KEY_ID '{s3_server.access_key}', SECRET '{s3_server.secret_key}'"
        text = text.replace("PROVIDER credential_chain", keys)

        assert await asyncio.to_thread(rows_where_it_is_pasted, text, tmp_path) == 3
