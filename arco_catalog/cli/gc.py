"""`arco gc`: counts the objects of catalogs to which no record leads any more, or that are older than the retention of
such objects; with --delete deletes them."""

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_owners
from arco_catalog.cli.output import failure_lines, table
from arco_catalog.cli.session import DAY_MS, carry_out, open_session, operator_request
from arco_catalog.operations.catalogs import DeployedCatalog, Owner
from arco_catalog.planning.collection import WHY, Kind
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.characters import escaped
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.telemetry.metrics import OF_COLLECTIONS
from arco_catalog.upkeep.collection.collect import collect, collect_all
from arco_catalog.upkeep.collection.report import CollectedCatalogs, as_document
from arco_catalog.upkeep.collection.stats import CollectionStats
from arco_catalog.upkeep.pace import Pace

if TYPE_CHECKING:
    from arco_catalog.cli.metrics_file import MetricsFile

MARGIN_MS = 60 * 1000
"""Time for a run to end after it stops beginning new work."""
HEADINGS = ("KIND", "COUNT", "BYTES", "OLDEST (UTC)", "WHY")


def run(
    options: CatalogOptions,
    seconds: int | None,
    *,
    delete: bool,
    as_json: bool,
    metrics_file: "MetricsFile | None" = None,
) -> int:
    """Collects garbage in each owner of state of a realm (catalogs, registry, delegation service), or of a store
    without a realm, for at most `seconds` (None: a day). With `delete` deletes it. Displays what can be deleted or was.
    A run with `delete` that reaches the end writes its metrics to `metrics_file`. Returns 1 if some record could not be
    read, or a catalog could not be opened or, with `delete`, is a copy, else 0. Raises `CliError`."""
    timeout_ms = DAY_MS if seconds is None else seconds * 1000 + MARGIN_MS
    runtime = SystemRuntime()
    request = operator_request(runtime, "gc", timeout_ms)
    progress = Progress(runtime.now_ms).report

    async def collection(session: Session) -> CollectionStats:
        deadline = session.deadline
        return await collect(
            session, delete=delete, progress=progress, should_stop=lambda: deadline.left_ms() <= MARGIN_MS
        )

    async def work() -> CollectedCatalogs:
        async with open_session(options, "gc", find_owners, writes=delete) as inventory:
            return [each async for each in collect_all(inventory, request, runtime, collection, margin_ms=MARGIN_MS)]

    results = carry_out(work)
    if as_json:
        print(json_text(as_document(results, delete=delete)))
    else:
        print("\n\n".join(_sections(results, delete=delete)))
    total = CollectionStats()
    for _, stats in results:
        total.add(stats)
    if metrics_file is not None and delete and not total.stopped:
        _write_metrics(metrics_file, total, runtime.now_ms())
    return 1 if total.unreadable_count else 0


def _write_metrics(file: "MetricsFile", total: CollectionStats, at_ms: int) -> None:
    """Writes the metrics of a completed collection of all owners of state, as `total` sums it up, to the file."""
    values = {
        "arco_collection_completed_timestamp_seconds": at_ms / 1000,
        "arco_collection_objects": total.count,
        "arco_state_objects": total.listed - total.count,
    }
    file.write(OF_COLLECTIONS, values)


class Progress:
    """Prints the progress of `arco gc` on stderr, at most once a second."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._pace = Pace(now_ms)

    def report(self, stats: CollectionStats) -> None:
        """Prints a line with the objects listed and to be collected so far on stderr, unless one was printed within the
        last second, or the run is younger than that."""
        if self._pace.is_due():
            print(
                f"arco: {stats.listed:,} objects listed so far, {stats.count:,} collected, or without --delete "
                "collectable",
                file=sys.stderr,
                flush=True,
            )


def _sections(results: CollectedCatalogs, *, delete: bool) -> Iterator[str]:
    """Yields the text for every owner of state (catalogs, a realm's registry, the delegation service) under a heading,
    which a catalog that is alone does not have."""
    for each, stats in results:
        yield _heading(each, alone=len(results) == 1) + as_text(stats, delete=delete)


def _heading(each: DeployedCatalog, *, alone: bool) -> str:
    """Returns the heading over the text of a catalog, of a realm's registry or of the delegation service; empty for a
    catalog that is `alone`."""
    match each.owner:
        case Owner.CATALOG:
            return "" if alone else escaped(f"Catalog {each.name}:\n")
        case Owner.REALM:
            return escaped(f"Registry of the realm {each.realm}:\n")
        case Owner.SERVICE:
            return "Delegation service:\n"


def as_text(stats: CollectionStats, *, delete: bool) -> str:
    """Formats the result for one owner of state: for each kind of object the count, size, oldest time and reason, then
    the sums; if there are any, the hints of tasks that were put again and the metadata files of views that were left; a
    note if it stopped before the end, so that a next run has to collect the rest; and the records that could not be
    read. `delete` is whether the objects were deleted or only can be."""
    lines = [
        (kind.value, f"{found.count:,}", f"{found.bytes:,}", format_time(found.oldest_ms), WHY[kind])
        for kind in Kind
        if (found := stats.kinds.get(kind)) is not None
    ]
    parts = [table(HEADINGS, lines), ""] if lines else []
    done = "were deleted" if delete else "can be deleted (dry run: --delete deletes them)"
    parts.append(f"{stats.count:,} objects with {stats.bytes:,} bytes {done}; {stats.listed:,} were listed.")
    if stats.hints_put:
        done = "were put again" if delete else "would be put again"
        parts.append(f"{stats.hints_put:,} hints that waiting tasks had lost {done}.")
    if stats.files_left:
        parts.append(
            f"{stats.files_left:,} metadata files of dropped views were left: another table or view may have "
            "registered them, or they are in no store of this catalog, or older than its restore from a backup."
        )
    if stats.stopped:
        parts.append("Stopped before the end; the next run collects the rest.")
    parts += failure_lines("Could not be read, and is kept:", stats.unreadable, stats.unreadable_count)
    return "\n".join(parts)
