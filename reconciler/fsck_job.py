"""The job `fsck` (docs/fsck.md#on-spark)."""

import argparse
import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace

from arco_catalog.config.variables import MAX_METADATA
from arco_catalog.iceberg.errors import NoSuchTable, NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.characters import escaped
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.upkeep.fsck.files import Scope
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.pace import Pace
from reconciler.catalog_config import own_environment
from reconciler.fsck import FsckProgress, fsck
from reconciler.session import catalog_of, spark_of

NOT_THERE = 2
"""The exit status where there is nothing to check."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what it takes besides a catalog."""
    parser.add_argument("--data", action="store_true", help="look at the files of tables, as this job always does")
    parser.add_argument(
        "--table", action="append", default=[], metavar="NAME", help="of this table alone; several times"
    )
    parser.add_argument("--after", default="", metavar="NAME", help="of the tables behind this name: goes on there")


def run(parsed: argparse.Namespace) -> tuple[JsonObject, int]:
    """Prints a line for each finding, and how far it has come. Returns what `arco fsck --data --json` prints, and 1 if
    an error is left."""
    config = replace(catalog_of(parsed), max_metadata_bytes=MAX_METADATA.read(own_environment()))
    scope = Scope(frozenset(parsed.table), parsed.after)
    progress = _Progress(SystemRuntime().now_ms).told
    with spark_of(parsed, "arco-fsck") as spark:
        try:
            report = asyncio.run(fsck(spark, config, scope, progress=progress, tell=_tell))
        except (NotFound, NoSuchTable) as error:
            sys.stderr.write(f"reconciler: {error.message}\n")
            raise SystemExit(1 if isinstance(error, NoSuchTable) else NOT_THERE) from error
    return report.to_json(), 0 if report.ok else 1


def _tell(finding: Finding) -> None:
    said = f"{finding.diagnosis.severity}: {finding.code} {finding.where}: {finding.found}"
    sys.stderr.write(f"{escaped(said)}\n")


class _Progress:
    """Tells how far a check has come, once a second, and where one that is cut goes on."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._pace = Pace(now_ms)

    def told(self, progress: FsckProgress) -> None:
        """A line, unless there was one just before."""
        ended = 0 < progress.tables == progress.done
        if not (self._pace.is_due() or ended):
            return
        on = f"; --after {progress.up_to} goes on from here" if progress.up_to and not ended else ""
        sys.stderr.write(
            f"{progress.examined:,} objects looked at, the files of {progress.done:,} of {progress.tables:,} tables, "
            f"{progress.findings:,} findings{escaped(on)}\n"
        )
