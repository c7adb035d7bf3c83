"""Runs the job `compact` on Spark: options, output and exit status (docs/pipeline.md)."""

import argparse
import asyncio
import sys

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.runtime import SystemRuntime
from reconciler.compact.driver import compact
from reconciler.compact.stats import CompactStats
from reconciler.executors import SparkExecutors
from reconciler.session import catalog_of, spark_of
from reconciler.system import connection


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the job `compact` to a command-line parser."""
    connection.add_arguments(parser)


def run(parsed: argparse.Namespace) -> tuple[JsonObject, int]:
    """Runs the job `compact`, and writes a line to stderr for each commit, and where a batch has no rows for a
    table. Returns the counts and the exit status: 1 if an object could not be read, otherwise 0. Raises the errors of
    `system_tables` and of `compact`."""
    system = connection.system_tables(parsed, SystemRuntime())
    with spark_of(parsed, "arco-compact") as spark:
        stats = asyncio.run(compact(system, catalog_of(parsed), SparkExecutors(spark), progress=_show))
    return stats.to_json(), 1 if stats.unreadable_count else 0


def _show(stats: CompactStats) -> None:
    """Writes the numbers of a run on standard error: objects read, commits, and new rows by table."""
    rows = ", ".join(f"{count:,} {table}" for table, count in stats.rows.items())
    sys.stderr.write(f"{stats.read:,} objects read, {stats.commits:,} commits: {rows or 'nothing new'}\n")
