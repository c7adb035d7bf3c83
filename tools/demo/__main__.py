"""Runs the demo: `python -m tools.demo [--store URL] [--short]`."""

import argparse
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pyiceberg

from tools.demo import pyiceberg_steps, spark_steps
from tools.demo.checks import Mismatch
from tools.demo.data import TABLES, generate
from tools.demo.engines import pyiceberg_catalog, pyiceberg_properties, spark_session
from tools.demo.lake import Lake, title
from tools.demo.progress import Progress
from tools.demo.receipts import list_commits
from tools.demo.server import WAREHOUSE, serving
from tools.demo.spark_steps import in_files
from tools.support.emulators import S3_SERVERS, store_server

STEPS = (*spark_steps.STEPS, *pyiceberg_steps.STEPS)
BEFORE_AND_AFTER = 4  # data, server, Spark; receipts


def main() -> int:
    """Zero if both engines and the receipts agree with the generated files."""
    parser = argparse.ArgumentParser(prog="demo", description="Spark and PyIceberg work on TPC-H through the catalog.")
    parser.add_argument(
        "--store",
        help="file:/folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix, without a catalog in it "
        "(default: a new folder)",
    )
    parser.add_argument(
        "--s3-server",
        choices=S3_SERVERS,
        default="moto",
        help="what an s3:// store runs on without AWS_ENDPOINT_URL_S3",
    )
    parser.add_argument("--short", action="store_true", help="a tenth of the data")
    arguments = parser.parse_args()

    scratch = Path(tempfile.mkdtemp(prefix="arco-demo-"))
    store = arguments.store or f"file:{scratch / 'store'}"
    progress = Progress(len(STEPS) + BEFORE_AND_AFTER)
    try:
        with store_server(store, arguments.s3_server):
            run(progress, scratch, store, scale=0.01 if arguments.short else 0.1)
    except Mismatch as mismatch:
        progress.note(f"\nMISMATCH  {mismatch}\nlogs and data are left in {scratch}")
        return 1
    except BaseException:
        progress.note(f"\nlogs and data are left in {scratch}")
        raise
    shutil.rmtree(scratch)
    progress.note(f"\nBoth engines and the receipts agree with the generated files. {progress.seconds:.0f} s")
    return 0


def run(progress: Progress, scratch: Path, store: str, scale: float) -> None:
    """All steps, in order, over one catalog."""
    with ExitStack() as stack:
        with progress.step(f"TPC-H at scale {scale}") as result:
            (scratch / "tpch").mkdir()
            files = generate(scratch / "tpch", scale)
            result.append(f"{sum(table.num_rows for table in files.values()):,} rows")
        with progress.step("arco serve") as result:
            server = stack.enter_context(serving(store, scratch / "server.log"))
            result.append(f"{server.uri} over {store}")
        with progress.step("Spark and PyIceberg connect") as result:
            spark = stack.enter_context(spark_session(server.uri, WAREHOUSE, scratch, store))
            for name in TABLES:
                spark.read.parquet(str(scratch / "tpch" / f"{name}.parquet")).createOrReplaceTempView(in_files(name))
            lake = Lake(spark, pyiceberg_catalog(server.uri, WAREHOUSE, pyiceberg_properties(store)), files)
            result.append(f"Spark {spark.version}, PyIceberg {pyiceberg.__version__}")
        for step in STEPS:
            with progress.step(title(step)) as result:
                if note := step(lake):
                    result.append(note)
        with progress.step("Each table's commits, from its receipts") as result:
            commits = list_commits(server, lake)
            result.append(f"{sum(map(len, commits.values()))} commits, each once")
        for table, lines in commits.items():
            progress.note(f"\n{table}: {len(lines)} commits")
            for line in lines:
                progress.note(f"  {line}")


if __name__ == "__main__":
    sys.exit(main())
