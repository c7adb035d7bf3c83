"""A table of Iceberg's own REST server, purged by the delegation service (docs/delegation.md)."""

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import load_catalog

from tests.cli.process import running
from tests.serve.test_delegation_service import EXECUTE, call
from tests.support.foreign_tables import ForeignTable, files
from tools.bench.peers.servers import reference


@pytest.mark.optional(".jars/reference-server/complete")
async def test_a_table_of_the_reference_server_is_purged(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(50), pa.int64())})
    warehouse = tmp_path / "warehouse"
    with reference(f"file://{warehouse}", tmp_path, {}, {}) as theirs:
        catalog = load_catalog("theirs", type="rest", uri=theirs.uri)
        catalog.create_namespace("db")
        for name in ("t", "neighbour"):
            made = catalog.create_table(f"db.{name}", schema=rows.schema)
            made.append(rows)
            made.append(rows)
            made.delete("id < 5")
        table = catalog.load_table("db.t")
        catalog.drop_table("db.t")  # which leaves the files
        known = ForeignTable("t", table.location(), table.metadata_location, str(table.metadata.table_uuid))
        sums = [file for file in files(warehouse / "db/t") if file.endswith(".crc")]  # Hadoop's, which nobody names
        count = len(files(warehouse / "db/t")) - len(sums)
        kept = files(warehouse / "db/neighbour")

        arguments = ("--store", f"file:{tmp_path}/service", "--port", "0", "--delegation-location", f"file:{warehouse}")
        realm = ("--delegation-realm", "theirs")
        async with running("delegation-service", *arguments, *realm) as service:
            status, told = await call(f"{service.uri}{EXECUTE}", known.payload())

        assert (status, told["status"]) == (200, "COMPLETED_SUCCESS"), told
        assert sums
        assert files(warehouse / "db/t") == []
        assert told["execution_result"]["files_deleted"] == count
        assert told["execution_result"]["left_behind"] == 0
        assert files(warehouse / "db/neighbour") == kept
        assert catalog.load_table("db.neighbour").scan().to_arrow().num_rows == 90
