"""What a scan needs of a table's metadata, without the rest of the document."""

from collections.abc import Mapping, Sequence

from arco_catalog.iceberg.errors import IllegalArgument
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.json_pieces import let_go
from arco_catalog.iceberg.metadata import TableMetadata, complete
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.iceberg.scan_request import PlanRequest, Scan, appends_after, scan_of
from arco_catalog.iceberg.schema import Schema
from arco_catalog.iceberg.snapshots import Snapshot
from storage_backends.lazy_dataclass import dataclass

_KEPT = frozenset({"schemas", "schema", "partition-specs", "partition-spec", "snapshots"})


class StateNotFound(Exception):
    """The snapshot or the schema of a scan is not in the table's metadata any more."""


@dataclass(frozen=True, slots=True)
class ScanTable:
    """What a scan needs of a table's metadata: all schemas and partition specs by id, the schema to which filters are
    bound, and the snapshots whose manifest lists the scan reads, in order."""

    schemas: Mapping[int, Schema]
    specs: Mapping[int, PartitionSpec]
    schema: Schema
    snapshots: Sequence[Snapshot]


def requested(request: PlanRequest, document: JsonObject) -> tuple[Scan, ScanTable]:
    """Returns the scan that a request means, and what it needs of the table with this metadata, which is freed. Raises
    as `scan_of` does, and `StateNotFound` for metadata without the schema of the snapshot."""
    metadata = complete(document)
    scan = scan_of(request, metadata)
    return scan, _table(scan, metadata, document)


def table_of(scan: Scan, document: JsonObject) -> ScanTable:
    """Returns what a scan needs of the table with this metadata, which is freed. Raises `StateNotFound` if the scan's
    snapshots or its schema are not there any more."""
    return _table(scan, complete(document), document)


def _table(scan: Scan, metadata: TableMetadata, document: JsonObject) -> ScanTable:
    """Returns what a scan needs of a table's metadata, and frees the rest of the document. Raises `StateNotFound` if
    the metadata does not have the scan's schema or snapshots."""
    schemas = {each.get("schema-id", 0): each for each in metadata["schemas"]}
    if scan.schema_id not in schemas:
        raise StateNotFound(f"the table does not have schema {scan.schema_id}, by which the scan reads the snapshot")
    snapshots = _snapshots(scan, metadata)
    kept = {each["snapshot-id"] for each in snapshots}
    let_go([each for each in metadata["snapshots"] if each["snapshot-id"] not in kept])
    let_go([value for name, value in document.items() if name not in _KEPT])
    specs = {spec["spec-id"]: spec for spec in metadata["partition-specs"]}
    return ScanTable(schemas, specs, schemas[scan.schema_id], snapshots)


def _snapshots(scan: Scan, metadata: TableMetadata) -> Sequence[Snapshot]:
    """Returns the snapshots whose manifest lists a scan reads: none of a table without snapshots, the scan's own, or
    all appends after `scan.after` up to it. Raises `StateNotFound` if they are not there."""
    if scan.snapshot_id is None:
        return []
    snapshots = {each["snapshot-id"]: each for each in metadata["snapshots"]}
    if scan.snapshot_id not in snapshots:
        raise StateNotFound(f"the table has no snapshot {scan.snapshot_id}")
    if scan.after is None:
        return [snapshots[scan.snapshot_id]]
    try:
        return appends_after(scan.after, snapshots, scan.snapshot_id)
    except IllegalArgument as error:
        raise StateNotFound(error.message) from None
