"""What maintenance does to a table of small files: TPC-H's lineitem, in many files of many snapshots, before and after
one run of `arco pipeline run maintain`."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import requests
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tools.demo.data import generate
from tools.demo.engines import jars, pyiceberg_catalog, spark_session
from tools.demo.server import ARCO, WAREHOUSE, Server, serving
from tools.support.local_spark import environment

QUERY = """
SELECT sum(l_extendedprice * l_discount) FROM bench.lineitem
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24
"""
POLICIES: dict[str, JsonObject] = {
    "data-compaction": {},
    "metadata-compaction": {},
    "snapshot-expiry": {"config": {"max_snapshot_age_days": 0, "min_snapshot_to_keep": 5}},
    "orphan-file-removal": {"max_orphan_file_age_in_days": 1},
}
TIMES = 3


@dataclass(frozen=True)
class Shape:
    """How many files, in how many commits."""

    files: int
    commits: int


def many_files(catalog: Catalog, name: str, rows: pa.Table, shape: Shape) -> Table:
    """Makes a table of so many files, by so many commits. All rows are in it."""
    table = catalog.create_table(name, rows.schema)
    folder = Path(table.location().removeprefix("file://")) / "data"
    folder.mkdir(parents=True, exist_ok=True)
    size, each = -(-rows.num_rows // shape.files), -(-shape.files // shape.commits)
    made: list[str] = []
    for number in range(shape.files):
        file = folder / f"{number:06}.parquet"
        pq.write_table(rows.slice(number * size, size), file)
        made.append(file.as_uri())
        if len(made) == each or number == shape.files - 1:
            table.add_files(made, check_duplicate_files=False)
            made = []
    return table


def set_policies(server: Server, namespace: str, table: str, policies: dict[str, JsonObject]) -> None:
    """Makes policies, and attaches them to a table."""
    config = requests.get(f"{server.uri}/v1/config", params={"warehouse": WAREHOUSE}, timeout=30).json()
    where = f"{server.uri}/polaris/v1/{config['overrides']['prefix']}/namespaces/{namespace}/policies"
    target = {"target": {"type": "table-like", "path": [namespace, table]}}
    for kind, content in policies.items():
        name = f"{table}-{kind}"
        said: JsonObject = {"name": name, "type": f"system.{kind}", "content": json.dumps({"enable": True, **content})}
        requests.post(where, json=said, timeout=30).raise_for_status()
        requests.put(f"{where}/{name}/mappings", json=target, timeout=30).raise_for_status()


def command(server: Server, *more: str) -> list[str]:
    """The job on this machine."""
    where = ["--uri", server.uri, "--store", server.store, "--warehouse", WAREHOUSE, "--master", "local[2]"]
    fetched = [] if "--dry-run" in more else ["--jars", ",".join(map(str, jars("")))]
    return [str(ARCO), "pipeline", "run", "maintain", *where, *fetched, *more]


def measured(spark: SparkSession) -> tuple[float, object]:
    """Seconds that the query takes, the best of some, and its answer."""
    best, answer = float("inf"), None
    for _ in range(TIMES):
        begun = time.perf_counter()
        [[answer]] = spark.sql(QUERY).collect()
        best = min(best, time.perf_counter() - begun)
    return best, answer


def state_of(catalog: Catalog, name: str) -> dict[str, JsonValue]:
    """Files, bytes, manifests, snapshots, and the seconds that planning a scan of it takes."""
    table = catalog.load_table(name)
    begun = time.perf_counter()
    files = [task.file for task in table.scan().plan_files()]
    planned = time.perf_counter() - begun
    snapshot = table.current_snapshot()
    assert snapshot is not None
    folder = Path(table.location().removeprefix("file://"))
    there = [file for file in folder.rglob("*") if file.is_file()]
    return {
        "data_files": len(files),
        "bytes": sum(file.file_size_in_bytes for file in files),
        "manifests": len(snapshot.manifests(table.io)),
        "snapshots": len(table.metadata.snapshots),
        "plan_s": round(planned, 2),
        "files_in_folder": len(there),
        "bytes_in_folder": sum(file.stat().st_size for file in there),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--scale", type=float, default=0.5, help="of TPC-H: 1 is six million rows")
    parsed = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="arco-maintain-") as scratch:
        _bench(Path(scratch), Shape(parsed.files, parsed.commits), parsed.scale)


def _bench(scratch: Path, shape: Shape, scale: float) -> None:
    data = scratch / "tpch"
    data.mkdir()
    rows = generate(data, scale)["lineitem"]
    shutil.rmtree(data)
    with serving(f"file:{scratch / 'store'}", scratch / "server.log") as server:
        catalog = pyiceberg_catalog(server.uri, WAREHOUSE, {})
        catalog.create_namespace("bench")
        many_files(catalog, "bench.lineitem", rows, shape)
        print(f"{rows.num_rows:,} rows in {shape.files:,} files by {shape.commits:,} commits", flush=True)
        set_policies(server, "bench", "lineitem", POLICIES)
        before, answer = _look(server, catalog, scratch, "before")
        begun = time.perf_counter()
        done = subprocess.run(command(server), env={**os.environ, **environment()}, stdout=sys.stdout, check=False)
        print(f"maintained in {time.perf_counter() - begun:.0f} s, exit status {done.returncode}", flush=True)
        after, again = _look(server, catalog, scratch, "after")
        print(json.dumps({"before": before, "after": after}))
        if answer != again:
            raise SystemExit(f"the answer was {answer}, and is {again}")


def _look(server: Server, catalog: Catalog, scratch: Path, when: str) -> tuple[JsonObject, object]:
    state = state_of(catalog, "bench.lineitem")
    folder = scratch / when
    folder.mkdir()
    with spark_session(server.uri, WAREHOUSE, folder) as spark:
        seconds, answer = measured(spark)
    told: JsonObject = {**state, "query_s": round(seconds, 2)}
    print(f"{when}: {json.dumps(told)}", flush=True)
    return told, answer


if __name__ == "__main__":
    main()
