"""The reconciler's job: `spark-submit reconciler/job.py`, or `python -m reconciler` (docs/reconciler.md)."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence

try:
    from pyspark import SparkConf, SparkContext
except ModuleNotFoundError as error:
    raise SystemExit("reconciler: pyspark is not installed: pip install 'arco-catalog[spark]'") from error

from arco_catalog.operations.reconcile_stats import ReconcileStats
from reconciler.catalog_config import CatalogConfig
from reconciler.packages import shipped
from reconciler.spark import reconcile


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a line for each finished part and, on the last line, the counts as JSON. Returns 1 if something could not
    be read."""
    parser = argparse.ArgumentParser(prog="reconciler", description="Write missing receipts of commits.")
    parser.add_argument("--store", required=True, help="URL of the store: s3://bucket/prefix or file:/folder")
    parser.add_argument("--warehouse", required=True, help="name of the catalog in it")
    parser.add_argument("--allowed-location", nargs="+", action="extend", default=[], help="as given to `arco serve`")
    parser.add_argument("--dry-run", action="store_true", help="report missing receipts; write nothing")
    options = parser.parse_args(arguments)
    config = CatalogConfig(options.store, options.warehouse, tuple(options.allowed_location))
    with SparkContext.getOrCreate(SparkConf().setAppName("arco-reconcile")) as spark, shipped(spark):
        stats = asyncio.run(reconcile(spark, config, dry=options.dry_run, progress=_show))
    sys.stdout.write(json.dumps(stats.to_json(), ensure_ascii=False) + "\n")
    return 1 if stats.unreadable else 0


def _show(stats: ReconcileStats) -> None:
    due = stats.pointers - stats.orphaned - stats.unchanged
    sys.stderr.write(
        f"{stats.walked:,} of {due:,} tables walked: {stats.files:,} files, {stats.missing_count:,} receipts missing, "
        f"{stats.written:,} written\n"
    )


if __name__ == "__main__":
    sys.exit(main())
