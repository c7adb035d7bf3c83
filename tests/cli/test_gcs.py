"""`arco serve` over GCS, and PyIceberg on it by the settings that the server prints: on a fake of ours that speaks
GCS's protocol, and on fake-gcs-server. PyArrow's own client of GCS writes and reads the tables' files there."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import Catalog

from arco_catalog.cli.client_config import client_config
from tests.cli.in_process import arco
from tests.cli.process import serving
from tests.support.gcs_protocol_fake import gcs_protocol_fake
from tools.support.gcs_servers import GcsServer, fake_gcs_server

Start = Callable[[], AbstractContextManager[GcsServer]]
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": pa.array(["a", None, "ç"], pa.string())})


def pasted(printed: str) -> Catalog:
    """The catalog of a user who pastes the block for PyIceberg."""
    block = printed.split("# PyIceberg\n")[1].split("\n\n# Trino")[0]
    names: dict[str, Catalog] = {}
    exec(block, names)
    return names["catalog"]


def work_on(catalog: Catalog) -> None:
    """Makes a table, changes it, and reads it as of each snapshot."""
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    table.delete("id = 2")

    read = catalog.load_table("db.t")
    assert read.location().startswith("gs://lake/catalog/arco/")
    assert read.metadata_location.startswith(read.location())
    assert sorted(read.scan().to_arrow()["id"].to_pylist()) == [1, 1, 3, 3]
    [first, *_] = read.metadata.snapshots
    assert read.scan(snapshot_id=first.snapshot_id).to_arrow() == ROWS

    elsewhere = catalog.create_table("db.elsewhere", ROWS.schema, location="gs://other/allowed/t")
    elsewhere.append(ROWS)
    assert catalog.load_table("db.elsewhere").scan().to_arrow() == ROWS


@pytest.mark.parametrize("client", ["wire", "sdk"])
@pytest.mark.parametrize(
    "start", [gcs_protocol_fake, pytest.param(fake_gcs_server, marks=pytest.mark.needs("go"))], ids=["ours", "theirs"]
)
async def test_pyiceberg_works_on_tables_in_gcs(start: Start, client: str) -> None:
    with start() as gcs:
        for bucket in ("lake", "other"):
            gcs.make_bucket(bucket)
        environment = {**gcs.environment, "ARCO_GCS_CLIENT": client}
        options = ("--workers", "1", "--allowed-location", "gs://other/allowed")
        async with serving("gs://lake/catalog", *options, **environment) as server:
            with pasted(client_config(server.uri, "arco", "gs://lake/catalog", environment)) as catalog:
                await asyncio.to_thread(work_on, catalog)
            ended = await server.stop()
        report = await arco("ls", "-R", "--store", "gs://lake/catalog", **environment)

    assert "READ-ONLY" not in ended.err
    assert ended.err.count("the store does not support conditional DELETE") == (start is fake_gcs_server)
    assert report.code == 0
    assert "db.elsewhere" in report.out
