"""The delete manifests of a scan, and the tests by which their files matter to it."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from arco_catalog.iceberg.content_files import ContentFile
from arco_catalog.iceberg.expressions.filters import ScanFilter
from arco_catalog.iceberg.manifests import ManifestFile
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.iceberg.partition_keys import dropped_columns
from arco_catalog.iceberg.schema import Column, columns_of
from arco_catalog.operations.scans.scan_table import ScanTable
from arco_catalog.state.manifest_entries import EntrySelection


class ScanDeletes(NamedTuple):
    """The delete manifests, with live files, of the snapshot that a scan reads, and the ones of them in which the
    scan's filter may match (`matching`). `specs` are the partition specs of the table, `columns` the columns of all its
    schemas, by id, and `dropped` those that a later schema does not have; both are empty without such manifests.
    `selection_of` returns how the entries of a manifest are read for the scan, `types_of` the types of the partition
    values of a spec, and `may_match` whether a delete file may have deletes of rows that match the filter."""

    manifests: Sequence[ManifestFile]
    matching: Sequence[ManifestFile]
    specs: Mapping[int, PartitionSpec]
    columns: Mapping[int, Column]
    dropped: frozenset[int]
    selection_of: Callable[[ManifestFile], EntrySelection]
    types_of: Callable[[int], Sequence[str]]
    may_match: Callable[[ContentFile], bool]


def deletes_of_scan(
    table: ScanTable,
    of_scan: ScanFilter,
    deletes: Sequence[ManifestFile],
    may_match: Callable[[ManifestFile], bool],
) -> ScanDeletes:
    """Returns the ones of a snapshot's delete manifests with live files, the ones of them for which `may_match` is
    true, and the tests of their delete files for a scan with this filter. Reads none of them."""
    live = [each for each in deletes if each.live_files_count > 0]

    def selection_of(manifest: ManifestFile) -> EntrySelection:
        of_spec = of_scan.for_spec(manifest.partition_spec_id)
        spec = table.specs[manifest.partition_spec_id]
        return EntrySelection(spec, of_spec.partition_types, None, may_match=of_spec.partition_may_match)

    return ScanDeletes(
        live,
        [each for each in live if may_match(each)],
        table.specs,
        _columns_of(table) if live else {},
        dropped_columns(table.schemas) if live else frozenset(),
        selection_of,
        of_scan.types_of,
        lambda file: of_scan.for_spec(file.spec_id).file_may_match(file.statistics),
    )


def _columns_of(table: ScanTable) -> Mapping[int, Column]:
    """Returns the columns of all schemas of a table by their ids; a column that several schemas have as the one with
    the highest schema id has it."""
    return {column.id: column for _, schema in sorted(table.schemas.items()) for column in columns_of(schema)}
