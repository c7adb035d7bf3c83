"""Explains a scan: how many manifests and files of a table it reads, and what rules the others out."""

from contextlib import aclosing
from functools import partial
from typing import Final

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.expressions.binding import BoundPredicate
from arco_catalog.iceberg.expressions.filters import ScanFilter
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.manifests import DATA, ManifestFile
from arco_catalog.iceberg.primitives import base_name
from arco_catalog.iceberg.scan_request import PlanRequest
from arco_catalog.operations.load import load_current
from arco_catalog.operations.scans.manifest_source import AT_ONCE, ManifestSource
from arco_catalog.operations.scans.planner import scan_filter
from arco_catalog.operations.scans.scan_table import ScanTable, requested
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.index import Namespace
from arco_catalog.state.manifest_entries import EntrySelection
from storage_backends.lazy_dataclass import dataclass

TIMES: Final = frozenset({"date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
"""The types of dates and times."""


@dataclass(slots=True)
class FileCounts:
    """The files of some manifests: `files` in all of them, those ruled out by the partitions of whole manifests
    (`by_manifest`), by their own partition, or by the statistics of their columns; and those that are read, with their
    rows and bytes. Of `whole` files every row matches by their partition."""

    manifests: int = 0
    manifests_read: int = 0
    files: int = 0
    by_manifest: int = 0
    by_partition: int = 0
    by_statistics: int = 0
    read: int = 0
    whole: int = 0
    rows: int = 0
    size: int = 0

    @property
    def json(self) -> JsonObject:
        """The counts of a scan's manifests and files as JSON, as `arco plan --json` prints them."""
        return {
            "manifests": {"all": self.manifests, "read": self.manifests_read},
            "files": {
                "all": self.files,
                "read": self.read,
                "ruled-out-by-manifest": self.by_manifest,
                "ruled-out-by-partition": self.by_partition,
                "ruled-out-by-statistics": self.by_statistics,
                "match-whole": self.whole,
            },
            "rows": self.rows,
            "size-in-bytes": self.size,
        }


async def explain(session: Session, namespace: Namespace, name: str, filter_: JsonValue) -> JsonObject:
    """Explains, for `arco plan`, a scan of the current snapshot of a table with a filter: returns the counts of its
    data files and of its delete files. Reads all manifests that may have matching files, and no data files. Raises
    `NoSuchTable`, `BadRequest` for a filter that does not fit the schema or compares a date or time with a number, and
    the errors of `ManifestSource`."""
    found = await load_current(session, namespace, name, "table")
    location = found.pointer.metadata.location
    request: PlanRequest = {"filter": filter_, "case-sensitive": False}
    scan, table = await session.files.parse(location, found.metadata, partial(requested, request))
    filters = scan_filter(scan, table)
    for predicate in filters.predicates:
        _refuse_number(predicate)
    source = ManifestSource(session)
    data, deletes = FileCounts(), FileCounts()
    for snapshot in table.snapshots:
        listed = await source.manifests(snapshot)
        await source.take_memory(listed.data_memory)
        manifests = listed.all()
        for manifest in manifests:
            _count_manifest(data if manifest.content == DATA else deletes, manifest, _may_match(filters, manifest))
        matching = [each for each in manifests if each.live_files_count and _may_match(filters, each)]
        for batch in batches(matching, AT_ONCE):
            await gather(*(_count(source, table, filters, each, data, deletes) for each in batch))
    return {"snapshot-id": scan.snapshot_id, "data": data.json, "deletes": deletes.json}


def _refuse_number(predicate: BoundPredicate) -> None:
    """Raises `BadRequest` if a date or time is compared with a number. Iceberg takes the number for days or
    microseconds since 1970; in SQL, in which people write conditions, it is an error."""
    numbers = [literal.value for literal in predicate.original.literals if type(literal.value) is int]
    if base_name(predicate.type) in TIMES and numbers:
        name = predicate.column.name
        raise BadRequest(
            f"The column {name[:200]!r} is a {predicate.type}, and is compared with the number {numbers[0]}: "
            "write a date or time in single quotes"
        )


def _count_manifest(counts: FileCounts, manifest: ManifestFile, matches: bool) -> None:
    """Adds to `counts` a manifest and the live files in it: as one that is read if it `matches` the filter and has live
    files, and the files as excluded by the manifest if it does not match."""
    live = manifest.live_files_count
    counts.manifests += 1
    counts.manifests_read += matches and live > 0
    counts.files += live
    counts.by_manifest += 0 if matches else live


async def _count(
    source: ManifestSource,
    table: ScanTable,
    filters: ScanFilter,
    manifest: ManifestFile,
    data: FileCounts,
    deletes: FileCounts,
) -> None:
    """Reads the entries of a manifest, and adds to `data` or `deletes`, by its content, the files that may match, with
    rows, bytes and how many of them match as a whole by the partition, and the files that partition or statistics
    exclude."""
    of_spec, counts = filters.for_spec(manifest.partition_spec_id), data if manifest.content == DATA else deletes
    selection = EntrySelection(
        spec=table.specs[manifest.partition_spec_id],
        partition_types=of_spec.partition_types,
        columns=filters.column_ids,
        may_match=of_spec.partition_may_match,
    )
    selected = 0
    async with aclosing(source.entries(manifest, selection)) as batches:
        async for batch in batches:
            selected += len(batch.files)
            files = [each for each in batch.files if of_spec.file_may_match(each.statistics)]
            counts.by_statistics += len(batch.files) - len(files)
            counts.read += len(files)
            counts.rows += sum(each.statistics.record_count for each in files)
            counts.size += sum(each.size for each in files)
            counts.whole += sum(of_spec.residual_json(each.partition) is True for each in files)
    counts.by_partition += max(0, manifest.live_files_count - selected)


def _may_match(filters: ScanFilter, manifest: ManifestFile) -> bool:
    """Whether a manifest may have files that match the filter, by its summaries of partitions. Raises `BadRequest` if
    the table does not have the manifest's partition spec."""
    try:
        return filters.for_spec(manifest.partition_spec_id).manifest_may_match(manifest.partitions)
    except KeyError:
        spec = manifest.partition_spec_id
        raise BadRequest(
            f"The scan can't be explained: the table metadata has no partition spec {spec}, which manifests of it use"
        ) from None
