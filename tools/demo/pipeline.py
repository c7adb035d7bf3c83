"""Runs the pipeline on the demo's lake: `python -m tools.demo.pipeline [--store URL]`.

Spark and PyIceberg work on TPC-H, a query tells of itself by events, `maintain` carries out policies, `compact` fills
the tables of `system`, and Spark answers what people ask of them.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import Row

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.tasks.retry import TaskPolicies
from reconciler.catalog_config import CatalogConfig
from reconciler.compact.driver import compact
from reconciler.compact.stats import CompactStats
from reconciler.executors import SparkExecutors
from reconciler.maintain import procedures
from reconciler.maintain.budget import Budget
from reconciler.maintain.driver import Maintenance
from reconciler.maintain.outcome_rows import MaintenanceTable
from reconciler.maintain.report import Report
from reconciler.packages import shipped
from reconciler.system import questions
from reconciler.system.opened import SystemTables
from tools.demo import pyiceberg_steps, spark_steps
from tools.demo.data import TABLES, generate
from tools.demo.engines import pyiceberg_catalog, pyiceberg_properties, spark_session
from tools.demo.lake import Lake, title
from tools.demo.policies import set_policies
from tools.demo.progress import Progress
from tools.demo.server import WAREHOUSE, Server, serving
from tools.demo.spark_steps import in_files
from tools.support.emulators import S3_SERVERS, store_server
from tools.support.environment import exported
from tools.support.local_spark import environment
from tools.support.openlineage import Query, dataset

STEPS = (
    spark_steps.make_namespaces,
    spark_steps.make_tables,
    spark_steps.load,
    spark_steps.append,
    spark_steps.merge,
    spark_steps.delete_rows,
    spark_steps.drop_and_recreate,
    pyiceberg_steps.create_and_append,
    pyiceberg_steps.change_rows,
)
AROUND = 6
"""Data, server, Spark; the query, the pipeline's two jobs."""
POLICIES: Mapping[str, JsonObject] = {
    "data-compaction": {"config": {"min-input-files": 2}},
    "snapshot-expiry": {"config": {"max_snapshot_age_days": 0, "min_snapshot_to_keep": 1}},
}
"""Of lineitem."""
SHOWN = 8
"""Rows of an answer."""


def main() -> int:
    """Zero if every question that can be asked was answered."""
    parser = argparse.ArgumentParser(prog="pipeline", description="The demo's lake as tables, and what they answer.")
    parser.add_argument("--store", help="URL of a store without a catalog in it (default: a new folder)")
    parser.add_argument("--s3-server", choices=S3_SERVERS, default="moto", help="what an s3:// store runs on")
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="arco-pipeline-"))
    store = arguments.store or f"file:{scratch / 'store'}"
    progress = Progress(len(STEPS) + AROUND)
    try:
        with exported(environment()), store_server(store, arguments.s3_server):
            run(progress, scratch, store)
    except BaseException:
        progress.note(f"\nlogs and data are left in {scratch}")
        raise
    shutil.rmtree(scratch)
    progress.note(f"\n{progress.seconds:.0f} s")
    return 0


def run(progress: Progress, scratch: Path, store: str) -> None:
    """All steps, and the answers."""
    with ExitStack() as stack:
        with progress.step("TPC-H at scale 0.01"):
            (scratch / "tpch").mkdir()
            files = generate(scratch / "tpch", 0.01)
        with progress.step("arco serve --metrics store") as result:
            server = stack.enter_context(serving(store, scratch / "server.log", "--metrics", "store"))
            result.append(f"{server.uri} over {store}")
        with progress.step("Spark and PyIceberg connect"):
            spark = stack.enter_context(spark_session(server.uri, WAREHOUSE, scratch, store))
            for name in TABLES:
                spark.read.parquet(str(scratch / "tpch" / f"{name}.parquet")).createOrReplaceTempView(in_files(name))
            lake = Lake(spark, pyiceberg_catalog(server.uri, WAREHOUSE, pyiceberg_properties(store)), files)
        for step in STEPS:
            with progress.step(title(step)):
                step(lake)
        with progress.step("A query that sends events of its run"):
            tell(lake, server)
        with progress.step("maintain, by policies of lineitem") as result:
            outcomes = carry_out(lake, server)
            result.append("procedures: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()))
        with progress.step("compact") as result:
            stats = fill(lake, server)
            result.append(f"{sum(stats.rows.values()):,} rows from {stats.read:,} objects in {stats.commits} commits")
        for table, rows in sorted(stats.rows.items()):
            progress.note(f"  system.{table}: {rows:,} rows")
        for question in questions.ALL:
            progress.note(f"\n{question.description}  SELECT * FROM system.{question.name}")
            answer = lake.sql(f"SELECT * FROM rest.system.{question.name} ORDER BY 1, 2")
            for line in lines([name for name, _ in question.columns], answer):
                progress.note(f"  {line}")


def tell(lake: Lake, server: Server) -> None:
    """A query that sums up a table into another, with the events that OpenLineage's integration would send of it."""
    lake.sql("CREATE TABLE rest.tpch.turnover (status STRING, orders BIGINT) USING iceberg")
    read, written = (lake.pyiceberg.load_table(f"tpch.{name}") for name in ("orders", "turnover"))
    query = Query(server.uri, "demo.append_data.tpch_turnover")
    query.start([read], [written])
    lake.sql("INSERT INTO rest.tpch.turnover SELECT o_orderstatus, count(*) FROM rest.tpch.orders GROUP BY 1")
    query.complete([dataset(read)], [written.refresh()])


def carry_out(lake: Lake, server: Server) -> Mapping[str, int]:
    """Has policies of a table carried out; how many procedures had which outcome."""
    set_policies(server.uri, "tpch", "lineitem", {**POLICIES})
    rows = MaintenanceTable(system_of(server), SystemRuntime())

    async def work() -> Mapping[str, int]:
        async with CatalogConfig(server.store, WAREHOUSE).session() as session:
            budget = Budget.of(SystemRuntime(), None, None)
            maintenance = Maintenance(session, rows, budget, Report(lambda text: None))
            await maintenance.run(procedures.SparkProcedures(lake.spark, "rest"), TaskPolicies())
            return maintenance.stats.outcomes

    return asyncio.run(work())


def system_of(server: Server) -> SystemTables:
    """The tables of `system`. Trino would know the catalog as `rest`."""
    return SystemTables.connect(server.uri, WAREHOUSE, pyiceberg_properties(server.store), SystemRuntime(), "rest")


def fill(lake: Lake, server: Server) -> CompactStats:
    """Brings `system` up to date, by the demo's own Spark."""
    spark = lake.spark.sparkContext
    with shipped(spark):
        return asyncio.run(compact(system_of(server), CatalogConfig(server.store, WAREHOUSE), SparkExecutors(spark)))


def lines(columns: Sequence[str], rows: Sequence[Row]) -> Sequence[str]:
    """A table as text."""
    cells = [columns, *([_shown(cell) for cell in row] for row in rows[:SHOWN])]
    widths = [max(len(row[place]) for row in cells) for place in range(len(columns))]
    made = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    more = len(rows) - SHOWN
    return [*made, f"({more} more)"] if more > 0 else made if rows else [*made, "(nothing)"]


def _shown(cell: object) -> str:
    text = "" if cell is None else f"{cell:,}" if isinstance(cell, int) and abs(cell) < 10**15 else str(cell)
    return text if len(text) <= 40 else f"{text[:39]}…"


if __name__ == "__main__":
    sys.exit(main())
