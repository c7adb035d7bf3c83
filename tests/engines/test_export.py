"""`arco export` to Iceberg's own REST server: all tables are there, with equal rows."""

import asyncio
import json
from contextlib import closing
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import load_catalog

from tests.cli.in_process import arco
from tests.cli.process import serving
from tools.bench.peers.servers import reference

TABLES = (("sales", "orders"), ("sales", "2026", "visits"), ("web", "clicks"))


def _fill(uri: str) -> None:
    with closing(load_catalog("ours", type="rest", uri=uri, warehouse="arco")) as ours:
        for namespace in (("sales",), ("sales", "2026"), ("web",)):
            ours.create_namespace(namespace, {"comment": ".".join(namespace)})
        for place, name in enumerate(TABLES):
            rows = pa.table({"id": pa.array(range(10 + place), pa.int64())})
            made = ours.create_table(name, schema=rows.schema)
            made.append(rows)
            made.append(rows)
            made.delete("id < 3")


@pytest.mark.optional(".jars/reference-server/complete")
async def test_the_reference_server_registers_all_tables_and_reads_equal_rows(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/lake"
    async with serving(store, "--quiet") as server:
        await asyncio.to_thread(_fill, server.uri)
        view = {
            "name": "recent",
            "schema": {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]},
            "view-version": {
                "version-id": 1,
                "timestamp-ms": 1,
                "schema-id": 0,
                "summary": {},
                "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
                "default-namespace": ["sales"],
            },
            "properties": {},
        }
        assert (await server.call("POST", "/v1/arco/namespaces/sales/views", view))[0] == 200
    with reference(f"file://{tmp_path}/theirs", tmp_path, {}, {}) as theirs:
        to = ("export", "--store", store, "--to", theirs.uri, "--json")
        planned = json.loads((await arco(*to)).out)
        made = await arco(*to, "--apply")
        assert made.code == 0, made.out
        again = json.loads((await arco(*to, "--apply")).out)
        assert planned["counts"]["would make"] == 7
        assert json.loads(made.out)["counts"]["made"] == 7
        assert (again["counts"]["made"], again["counts"]["equal"]) == (0, 7)

        def compare(uri: str) -> None:
            with (
                closing(load_catalog("ours", type="rest", uri=uri, warehouse="arco")) as ours,
                closing(load_catalog("theirs", type="rest", uri=theirs.uri)) as there,
            ):
                for name in TABLES:
                    rows = ours.load_table(name).scan().to_arrow()
                    assert there.load_table(name).scan().to_arrow().sort_by("id") == rows.sort_by("id")
                    assert rows.num_rows > 0
                assert there.view_exists("sales.recent")
                assert there.load_namespace_properties(("sales", "2026"))["comment"] == "sales.2026"
                # From now on the other catalog commits: the next export finds that.
                there.load_table(TABLES[0]).append(pa.table({"id": pa.array([99], pa.int64())}))

        async with serving(store, "--quiet") as server:
            await asyncio.to_thread(compare, server.uri)
        moved = await arco(*to, "--apply")
        assert moved.code == 1
        [different] = [each for each in json.loads(moved.out)["objects"] if each["result"] == "different"]
        assert different["name"] == "sales.orders"
