"""The job `collect` (docs/collection.md#collection-on-spark)."""

import argparse
import asyncio
import sys
from collections.abc import Callable

from arco_catalog.config.variables import ALLOWED_LOCATIONS, REALM, STORE, WAREHOUSE
from arco_catalog.iceberg.errors import NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.upkeep.collection.report import as_document
from arco_catalog.upkeep.collection.stats import CollectionStats
from arco_catalog.upkeep.pace import Pace
from reconciler.catalog_config import TIMEOUT_MS, own_environment
from reconciler.collect import MARGIN_MS, collect_on_spark
from reconciler.session import spark_of

NOT_THERE = 2
"""The exit status where there is nothing to collect from."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what it takes besides a catalog."""
    parser.add_argument("--delete", action="store_true", help="delete what is listed")
    parser.add_argument("--seconds", type=_positive, metavar="N", help="stop after so many; the next run goes on")


def run(parsed: argparse.Namespace) -> tuple[JsonObject, int]:
    """Tells how far it has come. Returns what `arco gc --json` prints, and 1 if anything could not be read."""
    said = {STORE.name: parsed.store, WAREHOUSE.name: parsed.warehouse, REALM.name: parsed.realm}
    said[ALLOWED_LOCATIONS.name] = ",".join(parsed.allowed_location) or None
    environment = {**own_environment(), **{name: value for name, value in said.items() if value is not None}}
    timeout_ms = TIMEOUT_MS if parsed.seconds is None else parsed.seconds * 1000 + MARGIN_MS
    runtime = SystemRuntime()
    progress = _Progress(runtime.now_ms).told
    with spark_of(parsed, "arco-collect") as spark:
        work = collect_on_spark(spark, environment, runtime, timeout_ms, delete=parsed.delete, progress=progress)
        try:
            collected = asyncio.run(work)
        except NotFound as error:
            sys.stderr.write(f"reconciler: {error.message}\n")
            raise SystemExit(NOT_THERE) from error
    unreadable = any(stats.unreadable_count for _, stats in collected)
    return as_document(collected, delete=parsed.delete), 1 if unreadable else 0


def _positive(said: str) -> int:
    number = int(said)
    if number < 1:
        raise ValueError(said)
    return number


class _Progress:
    """Tells how far a run has come, once a second."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._pace = Pace(now_ms)

    def told(self, stats: CollectionStats) -> None:
        """A line, unless there was one just before."""
        if self._pace.is_due():
            sys.stderr.write(f"{stats.listed:,} objects listed so far, {stats.count:,} to collect\n")
