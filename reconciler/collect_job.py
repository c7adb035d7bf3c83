"""Runs the job `collect` on Spark: options, output and exit status (docs/collection.md#collection-on-spark)."""

import argparse
import asyncio
import sys
from collections.abc import Callable

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.upkeep.collection.report import as_document
from arco_catalog.upkeep.collection.stats import CollectionStats
from arco_catalog.upkeep.pace import Pace
from reconciler.catalog_config import TIMEOUT_MS, environment_with
from reconciler.collect import MARGIN_MS, collect_on_spark
from reconciler.session import spark_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the job `collect` to a command-line parser."""
    parser.add_argument("--delete", action="store_true", help="delete what is listed")
    parser.add_argument("--seconds", type=_positive, metavar="N", help="stop after N seconds; the next run continues")


def run(parsed: argparse.Namespace) -> tuple[JsonObject, int]:
    """Runs the job `collect` on Spark: counts the objects that the catalogs, registries and delegation service of the
    deployment no longer need, with `--delete` deletes them, and writes the growing counts to stderr, at most once a
    second. Returns the JSON of `arco gc --json`, and the exit status: 1 if an object or a catalog could not be read,
    otherwise 0. Raises the errors of `collect_on_spark`, such as `NotFound` if there is no catalog."""
    environment = environment_with(parsed)
    timeout_ms = TIMEOUT_MS if parsed.seconds is None else parsed.seconds * 1000 + MARGIN_MS
    runtime = SystemRuntime()
    progress = _StatusLine(runtime.now_ms).write
    with spark_of(parsed, "arco-collect") as spark:
        work = collect_on_spark(spark, environment, runtime, timeout_ms, delete=parsed.delete, progress=progress)
        collected = asyncio.run(work)
    unreadable = any(stats.unreadable_count for _, stats in collected)
    return as_document(collected, delete=parsed.delete), 1 if unreadable else 0


def _positive(text: str) -> int:
    """Returns the whole number in an option's value. Raises `ValueError` unless it is one of at least 1."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


class _StatusLine:
    """Writes the counts of a collection to stderr, at most once a second."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._pace = Pace(now_ms)

    def write(self, stats: CollectionStats) -> None:
        """Writes a line with these counts to stderr, unless one was written, or this object was made, less than a
        second ago."""
        if self._pace.is_due():
            sys.stderr.write(
                f"{stats.listed:,} objects listed so far, {stats.count:,}, listed or not, no longer needed\n"
            )
