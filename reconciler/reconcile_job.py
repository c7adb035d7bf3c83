"""Runs the job `reconcile` on Spark: options, output and exit status (docs/reconciler.md)."""

import argparse
import asyncio
import sys

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.reconcile_stats import ReconcileStats
from reconciler.session import catalog_of, spark_of
from reconciler.spark import reconcile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the job `reconcile` to a command-line parser."""
    parser.add_argument("--dry-run", action="store_true", help="report missing receipts; write nothing")


def run(parsed: argparse.Namespace) -> tuple[JsonObject, int]:
    """Runs the job `reconcile` on Spark: writes missing receipts of commits, or with `--dry-run` only counts them, and
    writes a line to stderr for every finished part. Returns the counts and the exit status: 1 if a record of a table or
    of the catalog could not be read, or a walk failed, otherwise 0. Raises the errors of `reconcile`."""
    with spark_of(parsed, "arco-reconcile") as spark:
        stats = asyncio.run(reconcile(spark, catalog_of(parsed), dry=parsed.dry_run, progress=_show))
    return stats.to_json(), 1 if stats.unreadable else 0


def _show(stats: ReconcileStats) -> None:
    """Writes the numbers of a run on standard error: tables and views walked and due, metadata files read, and
    receipts missing and written."""
    due = stats.pointers - stats.orphaned - stats.unchanged
    sys.stderr.write(
        f"{stats.walked:,} of {due:,} tables and views walked: {stats.files:,} files, {stats.missing_count:,} receipts "
        f"missing, {stats.written:,} written\n"
    )
