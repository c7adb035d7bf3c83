"""`arco reconcile`: writes the missing receipts of commits whose writers crashed, in every catalog of a realm or in the
one of a store; with --dry-run only lists them."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_inventory
from arco_catalog.cli.output import failure_lines, table
from arco_catalog.cli.session import DAY_MS, carry_out, open_session, operator_request
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.catalogs import DeployedCatalog
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.characters import escaped
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.telemetry.metrics import OF_WALKS
from arco_catalog.upkeep.reconcile import reconcile
from arco_catalog.upkeep.reconcile_all import reconcile_all

if TYPE_CHECKING:
    from arco_catalog.cli.metrics_file import MetricsFile

MARGIN_MS = 60 * 1000
"""Time for a run to end after it stops beginning new work."""
REPORT_MS = 1000
"""Minimum time between two lines of progress."""
HEADINGS = ("COMMITTED (UTC)", "TABLE", "BY", "WHY", "METADATA FILE")


def run(
    options: CatalogOptions, seconds: int | None, *, dry: bool, as_json: bool, metrics_file: "MetricsFile | None" = None
) -> int:
    """Walks the tables and views that have changed since the last run, in every catalog of a realm or in the one of a
    store; begins no walk after `seconds` (None: a day). Writes the missing receipts, or with `dry` none, and displays
    what was found. A run that reaches the end, and is not `dry`, writes its metrics to `metrics_file`. Returns 1 if
    some metadata could not be read, a walk did not end in time, or a catalog could not be opened, else 0. Raises
    `CliError`."""
    timeout_ms = DAY_MS if seconds is None else seconds * 1000 + MARGIN_MS
    runtime = SystemRuntime()
    request = operator_request(runtime, "reconcile", timeout_ms)
    progress = Progress(runtime.now_ms).report

    async def walk(session: Session) -> ReconcileStats:
        deadline = session.deadline
        return await reconcile(session, dry=dry, progress=progress, should_stop=lambda: deadline.left_ms() <= MARGIN_MS)

    async def work() -> list[tuple[DeployedCatalog, ReconcileStats]]:
        async with open_session(options, "reconcile", find_inventory, writes=not dry) as inventory:
            return [
                each async for each in reconcile_all(inventory.catalogs, request, runtime, walk, margin_ms=MARGIN_MS)
            ]

    walked = carry_out(work)
    print(json_text(as_document(walked)) if as_json else "\n\n".join(_sections(walked, dry=dry)))
    total = _total(walked)
    if metrics_file is not None and not dry and not total.stopped:
        _write_metrics(metrics_file, total, runtime.now_ms())
    return 1 if total.unreadable else 0


def _write_metrics(file: "MetricsFile", total: ReconcileStats, at_ms: int) -> None:
    """Writes the metrics of a completed walk."""
    values = {
        "arco_reconcile_completed_timestamp_seconds": at_ms / 1000,
        "arco_reconcile_receipts_written": total.written,
        "arco_reconcile_pointers_walked": total.walked,
        "arco_reconcile_pointers_unreadable": total.unreadable_count,
    }
    file.write(OF_WALKS, values)


def _total(walked: Sequence[tuple[DeployedCatalog, ReconcileStats]]) -> ReconcileStats:
    """Returns new statistics that add up the walks of all these catalogs."""
    total = ReconcileStats()
    for _, stats in walked:
        total.add(stats)
    return total


def as_document(walked: Sequence[tuple[DeployedCatalog, ReconcileStats]]) -> JsonObject:
    """Returns the sums of the counts of all catalogs, with examples of missing receipts and of what could not be read;
    in a realm also the counts and examples of each catalog, under `catalogs`."""
    total = _total(walked)
    if len(walked) == 1 and walked[0][0].realm is None:
        return total.to_json()
    each: list[JsonValue] = [{"name": catalog.name, **stats.to_json()} for catalog, stats in walked]
    return {**total.to_json(), "catalogs": each}


def _sections(walked: Sequence[tuple[DeployedCatalog, ReconcileStats]], *, dry: bool) -> Iterator[str]:
    """Yields the text for each catalog, in a realm under a heading; one sentence without catalogs."""
    for catalog, stats in walked:
        heading = "" if catalog.realm is None else escaped(f"Catalog {catalog.name}:\n")
        yield heading + as_text(stats, dry=dry)
    if not walked:
        yield "This realm has no catalogs."


class Progress:
    """Displays the progress of `arco reconcile` on stderr: the first line with the first report, then at most one line
    in `REPORT_MS` milliseconds."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._next_ms = 0

    def report(self, stats: ReconcileStats) -> None:
        """Prints a line with the tables walked and the receipts found missing so far on stderr, unless one was printed
        within the last `REPORT_MS`."""
        now_ms = self._now_ms()
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + REPORT_MS
        print(
            f"arco: {stats.walked:,} walked and {stats.unchanged:,} unchanged of {stats.pointers:,} listed so far, "
            f"{stats.missing_count:,} receipts missing, {stats.written:,} written",
            file=sys.stderr,
            flush=True,
        )


def as_text(stats: ReconcileStats, *, dry: bool) -> str:
    """Formats the result for one catalog: counts, whether a next run has to resume, the missing receipts that `stats`
    lists with the reason, how many more there are, and what could not be read. `dry` is whether nothing was written."""
    parts = [
        f"{stats.pointers:,} tables and views: {stats.unchanged:,} unchanged, {stats.walked:,} walked, "
        f"{stats.incomplete:,} of them not to the end; {stats.orphaned:,} pointers are of creates that did not commit.",
        f"{stats.missing_count:,} of {stats.files:,} commits walked had no receipt; "
        + ("nothing was written (dry run)." if dry else f"{stats.written:,} were written."),
    ]
    if stats.stopped:
        parts.append("Stopped before the end; the next run resumes from here.")
    if stats.missing:
        parts += ["", table(HEADINGS, [*map(_missing, stats.missing)])]
        if stats.missing_count > len(stats.missing):
            parts.append(f"... and {stats.missing_count - len(stats.missing):,} more")
    parts += failure_lines("Could not be read:", stats.unreadable, stats.unreadable_count)
    return "\n".join(parts)


def _missing(missing: JsonObject) -> tuple[str, ...]:
    """Returns the row of a missing receipt in the table: time, table or entity, principal, what is missing, and the
    metadata file."""
    # The field names the object that proves the commit: its pending receipt, or its metadata file.
    restored = missing.get("told_by") == missing.get("metadata_location")
    return (
        format_time(missing.get("metadata_ms")),
        format_text(missing.get("table")) if missing.get("table") else f"entity {format_text(missing.get('entity'))}",
        format_text(missing.get("principal")),
        "both receipts are gone; found in metadata" if restored else "pending receipt only: its writer stopped",
        format_text(missing.get("metadata_location")),
    )
