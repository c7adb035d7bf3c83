"""The settings that the console shows for engines work where they are pasted: on local files, on S3, and at a realm."""

import asyncio
import json
import shlex
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from arco_catalog.iceberg.json import JsonObject
from tests.cli.process import serving
from tests.console.chromium import CONSOLE
from tests.engines.spark_shell import spark_shell
from tests.support.served_realms import LOGINS, bootstrapped
from tools.support.s3_servers import S3Server

pytestmark = pytest.mark.needs("node", "console/node_modules/.complete")
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


def make_table(catalog: Catalog) -> Table:
    """A table of three rows."""
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    return table


def shown(uri: str, warehouse: str, table: Table, file_io: JsonObject, logins: Sequence[str] = ()) -> Mapping[str, str]:
    """What the console shows for a table, by the names of the engines."""
    target: JsonObject = {
        "uri": uri,
        "warehouse": warehouse,
        "realm": "",
        "logins": [*logins],
        "fileIo": file_io,
        "namespace": ["db"],
        "table": "t",
        "location": table.location(),
    }
    command = ["node", "browser/print-settings.mjs", json.dumps(target)]
    texts: Mapping[str, str] = json.loads(subprocess.run(command, cwd=CONSOLE, check=True, capture_output=True).stdout)
    return texts


def file_io_of(uri: str, warehouse: str) -> JsonObject:
    """The properties of files, as the server lets its clients know."""
    with urllib.request.urlopen(f"{uri}/v1/config?warehouse={warehouse}", timeout=30) as answer:
        found: JsonObject = json.load(answer).get("file-io", {})
    return found


def rows_where_it_is_pasted(text: str) -> int:
    names: dict[str, object] = {}
    exec(text, names)
    table = names["table"]
    assert isinstance(table, Table)
    return len(table.scan().to_arrow())


def of_spark(text: str) -> tuple[Mapping[str, str], str]:
    """The properties of the catalog, and the query, of a command for Spark."""
    words = shlex.split(text)
    begin = "spark.sql.catalog.arco."
    settings = (word.removeprefix(begin).partition("=") for word in words if word.startswith(begin))
    return {name: value for name, _, value in settings}, words[-1]


async def test_python_reads_local_files(tmp_path: Path) -> None:
    async with serving(f"file:{tmp_path}") as server:
        table = await asyncio.to_thread(make_table, load_catalog("rest", type="rest", uri=server.uri))
        texts = shown(server.uri, "arco", table, file_io_of(server.uri, "arco"))

        assert await asyncio.to_thread(rows_where_it_is_pasted, texts["PyIceberg"]) == 3


async def test_python_and_the_region_and_endpoint_of_s3(s3_server: S3Server, s3_endpoint: str) -> None:
    s3_server.make_bucket("shown")
    async with serving("s3://shown/lake", **s3_server.environment) as server:
        file_io = file_io_of(server.uri, "arco")
        given = {"s3.endpoint": s3_endpoint, "s3.region": "us-east-1"}
        table = await asyncio.to_thread(make_table, load_catalog("rest", type="rest", uri=server.uri, **given))
        texts = shown(server.uri, "arco", table, file_io)

        assert given.items() <= file_io.items()
        assert not [value for value in file_io.values() if value in (s3_server.access_key, s3_server.secret_key)]
        assert await asyncio.to_thread(rows_where_it_is_pasted, texts["PyIceberg"]) == 3


async def test_python_logs_in_at_a_realm(tmp_path: Path) -> None:
    root = await bootstrapped(f"file:{tmp_path}")
    async with serving(f"file:{tmp_path}", **LOGINS) as server:
        table = await asyncio.to_thread(make_table, root.catalog(server.uri))
        text = shown(server.uri, "arco", table, {}, ["client-credentials"])["PyIceberg"]
        text = text.replace("CLIENT_ID:CLIENT_SECRET", f"{root.client_id}:{root.secret}")

        assert await asyncio.to_thread(rows_where_it_is_pasted, text) == 3


@pytest.mark.slow
async def test_spark_reads_by_the_region_and_endpoint_of_s3(
    s3_server: S3Server, s3_endpoint: str, tmp_path: Path
) -> None:
    s3_server.make_bucket("shown-to-spark")
    async with serving("s3://shown-to-spark/lake", **s3_server.environment) as server:
        given = {"s3.endpoint": s3_endpoint, "s3.region": "us-east-1"}
        table = await asyncio.to_thread(make_table, load_catalog("rest", type="rest", uri=server.uri, **given))
        properties, query = of_spark(shown(server.uri, "arco", table, file_io_of(server.uri, "arco"))["Spark"])

        def run() -> int:
            with spark_shell({"arco": properties}, tmp_path) as sql:
                return len(sql(query))

        assert await asyncio.to_thread(run) == 3
