"""Tables that PyIceberg writes, on local files and on S3: the worker expires snapshots of them, and deletes their
files."""

import os
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import StaticTable

from arco_catalog.operations.load import load_table
from arco_catalog.operations.open import open_catalog
from arco_catalog.planning.upkeep_policy import SnapshotExpiry
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog as ServedCatalog
from arco_catalog.protocol.catalog import Session, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.upkeep.expiry import executor
from arco_catalog.upkeep.expiry.requests import request_expiry
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends.open import opener_in
from tests.engines.lake import lake
from tools.demo.server import WAREHOUSE
from tools.support.s3_servers import S3Server

BUCKET = "expired"
NAMESPACE = ("expiry",)
AT_ONCE = SnapshotExpiry(0, 1)


def write(client: Catalog) -> set[str]:
    """A table that is overwritten twice, and appended to. Returns its data files."""
    client.create_namespace(NAMESPACE)
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    table = client.create_table((*NAMESPACE, "t"), schema=rows.schema)
    table.append(rows)
    table.overwrite(rows)
    table.overwrite(rows)
    table.append(rows)
    return set(table.inspect.files()["file_path"].to_pylist())


def session_of(catalog: ServedCatalog) -> Session:
    deadline_ms = catalog.runtime.now_ms() + 60_000
    return catalog.session(OperationRequest("POST", "/", "", None, "tester", {"kind": "tests"}, deadline_ms), ALLOW_ALL)


@pytest.mark.parametrize("scheme", ["file", "s3"])
async def test_a_table_of_pyiceberg_keeps_its_rows_and_loses_old_files(
    scheme: str, tmp_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "FILES_AGE_MS", -10_000)
    access: dict[str, str] = {}
    store = f"file:{tmp_path / 'store'}"
    if scheme == "s3":
        s3_server.make_bucket(BUCKET)
        store = f"s3://{BUCKET}/catalog"
        access = {
            "s3.endpoint": s3_server.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": "testing",
            "s3.secret-access-key": "testing",
        }
        for name, value in s3_server.environment.items():
            monkeypatch.setenv(name, value)
    with lake("expired", store, tmp_path / "server.log", access) as opened:
        live = write(opened.bystander)
    catalog = await open_catalog(Settings(WAREHOUSE), store, (), SystemRuntime(), opener_in({**os.environ}))

    task = await request_expiry(session_of(catalog), NAMESPACE, "t", AT_ONCE)
    assert await task_worker(catalog).run_task(task), "the commit"
    assert await task_worker(catalog).run_task(task), "the deletion"

    state = await load_table(session_of(catalog), NAMESPACE, "t")
    table = StaticTable.from_metadata(state.metadata_location, properties=access)
    assert len(table.metadata.snapshots) == 1
    assert table.scan().to_arrow().column("id").to_pylist() == [1, 2, 3, 1, 2, 3]
    files = session_of(catalog).files
    there = [each async for each, _ in files.listed(table.location())]
    assert {each.rpartition("/")[2] for each in there if each.endswith(".parquet")} == {
        each.rpartition("/")[2] for each in live
    }
    lists = [each for each in there if "/snap-" in each]
    assert len(lists) == 1
