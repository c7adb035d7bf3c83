"""The pipeline over a catalog with many receipts: `make bench-pipeline`, `python -m tools.bench.pipeline`.

Receipts and metadata files are made when they are read, as if commits had written them: each of a hundred tables got
snapshots during one day, and keeps ten. All else, the tables of `system` too, lies in a folder behind a server. So what
is measured is `compact` with its Spark, and no store of receipts: that adds its own time to each read.

Receipts a second are those of the whole job, Spark's start in it. Peak memory is that of each process by itself.
Dollars a million are what Amazon charges for three reads of S3 a receipt, and for the CPU time on Fargate.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkConf, SparkContext

from arco_catalog.state.runtime import SystemRuntime
from reconciler.catalog_config import CatalogConfig
from reconciler.compact.driver import compact
from reconciler.executors import OnSpark
from reconciler.system.opened import SystemTables
from tools.bench.prices import MILLION, S3
from tools.bench.synthetic_receipts import COUNT, open_synthetic
from tools.demo.server import WAREHOUSE, serving
from tools.support.environment import PROJECT
from tools.support.local_spark import environment, settings
from tools.support.process_tree import watched

SIZES = (10_000, 100_000, 1_000_000)
CORES = (1, 2)
CPU_HOUR = 0.03238
"""Dollars for a processor of Fargate's on ARM, without its memory."""
PROGRAMS = ("driver", "java", "python")
"""Whose memory is told: the driver, Spark, a worker. What else they start is small, and gone at once."""
READS = 3
"""Of the store, for each receipt: itself, and its metadata file for `commits` and for the other tables."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What one run took."""

    receipts: int
    cores: int
    seconds: float
    cpu_seconds: float
    peak_bytes: Mapping[str, int]

    def __str__(self) -> str:
        peaks = ", ".join(f"{name} {self.peak_bytes[name] / 1e6:,.0f}" for name in PROGRAMS if name in self.peak_bytes)
        dollars = MILLION * (READS * S3.get / 1_000 + self.cpu_seconds / self.receipts * CPU_HOUR / 3_600)
        return (
            f"| {self.receipts:,} | {self.cores} | {self.seconds:,.0f} | {self.receipts / self.seconds:,.0f} "
            f"| {self.cpu_seconds:,.0f} | {peaks} | {dollars:.2f} |"
        )


def measure(receipts: int, cores: int, folder: Path) -> Figure:
    """Fills the tables of an empty catalog. Raises `RuntimeError` if a receipt is missing."""
    store = f"file:{folder / 'store'}"
    with serving(store, folder / "server.log") as server:
        said = ["--job", server.uri, "--store", store, "--cores", str(cores)]
        with (folder / "job.log").open("wb") as log:
            began = time.perf_counter()
            process = subprocess.Popen(
                [sys.executable, "-m", "tools.bench.pipeline", *said],
                cwd=PROJECT,
                env={**os.environ, **environment(), COUNT: str(receipts), "PYTHONPATH": str(PROJECT)},
                stdout=subprocess.PIPE,
                stderr=log,
            )
            with process, watched(process.pid) as use:
                out, _ = process.communicate()
        seconds = time.perf_counter() - began
        if process.returncode != 0:
            raise RuntimeError((folder / "job.log").read_text()[-2_000:])
    rows = json.loads(out.splitlines()[-1])["rows"]
    if {rows[table] for table in ("commits", "tables", "snapshots")} != {receipts}:
        raise RuntimeError(f"of {receipts} receipts came {rows}")
    return Figure(receipts, cores, seconds, use.cpu_seconds, use.peak_bytes)


def job(uri: str, store: str, cores: int) -> None:
    """What is measured, in a process of its own. Prints its counts."""
    system = SystemTables.connect(uri, WAREHOUSE, {}, SystemRuntime())
    with tempfile.TemporaryDirectory() as scratch:
        conf = SparkConf().setAll([*settings(Path(scratch)).items(), ("spark.master", f"local[{cores}]")])
        with SparkContext(conf=conf) as spark:
            config = CatalogConfig(store, WAREHOUSE, opens=open_synthetic)
            stats = asyncio.run(compact(system, config, OnSpark(spark)))
    print(json.dumps(stats.to_json()))


def main(arguments: Sequence[str]) -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--receipts", type=int, nargs="+", default=SIZES, metavar="N")
    parser.add_argument("--cores", type=int, nargs="+", default=CORES, metavar="N")
    parser.add_argument("--folder", help="where the tables lie")
    parser.add_argument("--job", metavar="URI", help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.job:
        job(options.job, options.store, options.cores[0])
        return
    print("| receipts | cores | s | receipts a second | CPU s | peak MB | dollars a million |")
    print("| --: | --: | --: | --: | --: | --- | --: |", flush=True)
    for receipts in options.receipts:
        for cores in options.cores:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                print(measure(receipts, cores, Path(folder)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
