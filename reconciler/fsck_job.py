"""Runs the job `fsck` on Spark: options, output and exit status (docs/fsck.md#on-spark)."""

import argparse
import asyncio
import sys
from collections.abc import Callable

from arco_catalog.iceberg.errors import NoSuchTable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.characters import escaped
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.upkeep.fsck.files import Scope
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.pace import Pace
from reconciler.fsck import FsckProgress, fsck
from reconciler.session import catalog_of, spark_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the job `fsck` to a command-line parser."""
    parser.add_argument("--data", action="store_true", help="check the files of tables, as this job always does")
    parser.add_argument(
        "--table", action="append", default=[], metavar="NAME", help="check only this table; may be repeated"
    )
    parser.add_argument("--after", default="", metavar="NAME", help="check only the tables after this name")


def run(parsed: argparse.Namespace) -> tuple[JsonObject, int]:
    """Runs the job `fsck`: checks a catalog with the files of its tables on Spark, and writes findings and counts to
    stderr. Returns the JSON of `arco fsck --data --json`, and the exit status: 0 if no finding is an error, otherwise
    1. Raises `NotFound` if there is no catalog, and `SystemExit` with a message if there is no such table."""
    config = catalog_of(parsed)
    scope = Scope(frozenset(parsed.table), parsed.after)
    progress = _StatusLine(SystemRuntime().now_ms).write
    with spark_of(parsed, "arco-fsck") as spark:
        try:
            report = asyncio.run(fsck(spark, config, scope, progress=progress, on_finding=_write))
        except NoSuchTable as error:
            raise SystemExit(f"reconciler: {error.message}") from error
    return report.to_json(), 0 if report.ok else 1


def _write(finding: Finding) -> None:
    """Writes a finding on standard error."""
    line = f"{finding.code.severity}: {finding.code} {finding.where}: {finding.found}"
    sys.stderr.write(f"{escaped(line)}\n")


class _StatusLine:
    """Writes the counts of a check to stderr, at most once a second and at the end, with the option by which a later
    run continues."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._pace = Pace(now_ms)

    def write(self, progress: FsckProgress) -> None:
        """Writes a line with the counts to stderr, unless one was written, or this object was made, less than a second
        ago. When all tables are done, and there is at least one, the line is always written."""
        ended = 0 < progress.tables == progress.done
        if not (self._pace.is_due() or ended):
            return
        option = f"; --after {progress.up_to} continues from here" if progress.up_to and not ended else ""
        sys.stderr.write(
            f"{progress.examined:,} objects read, the files of {progress.done:,} of {progress.tables:,} tables, "
            f"{progress.findings:,} findings{escaped(option)}\n"
        )
