"""A table's metadata document: its shape, the fields that older writers leave out, and its current parts (table spec,
"Table Metadata Fields")."""

from typing import TypedDict, cast

from arco_catalog.iceberg.encryption import EncryptedKey
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.partition import PartitionSpec, last_field_id, numbered
from arco_catalog.iceberg.schema import Schema
from arco_catalog.iceberg.snapshots import MAIN, Snapshot, SnapshotLogEntry, SnapshotRef, StatisticsFile, branch
from arco_catalog.iceberg.sort import UNSORTED_ID, SortOrder, unsorted

MetadataLogEntry = TypedDict("MetadataLogEntry", {"metadata-file": str, "timestamp-ms": int})

_Always = TypedDict(
    "_Always",
    {
        "format-version": int,
        "table-uuid": str,
        "location": str,
        "last-sequence-number": int,
        "last-updated-ms": int,
        "last-column-id": int,
        "current-schema-id": int,
        "schemas": list[Schema],
        "default-spec-id": int,
        "partition-specs": list[PartitionSpec],
        "last-partition-id": int,
        "default-sort-order-id": int,
        "sort-orders": list[SortOrder],
        "properties": dict[str, str],
        "current-snapshot-id": int | None,
        "refs": dict[str, SnapshotRef],
        "snapshots": list[Snapshot],
        "statistics": list[StatisticsFile],
        "partition-statistics": list[StatisticsFile],
        "snapshot-log": list[SnapshotLogEntry],
        "metadata-log": list[MetadataLogEntry],
    },
)
_Sometimes = TypedDict(
    "_Sometimes",
    {
        "schema": Schema,  # v1 only, as partition-spec
        "partition-spec": JsonValue,
        "next-row-id": int,  # v3 only
        "encryption-keys": list[EncryptedKey],
    },
    total=False,
)


class TableMetadata(_Always, _Sometimes):
    """A table's metadata document with the fields that a writer may leave out filled in, as `complete` and `empty`
    return it.

    An empty `table-uuid` or `location` is not known yet; `current-snapshot-id` is None if there is no snapshot.
    """


NO_SNAPSHOT = -1
_KNOWN = frozenset(TableMetadata.__annotations__)


def empty(format_version: int) -> TableMetadata:
    """Returns the metadata with which a create starts: without objects. The ids of the current schema and of the
    default spec and order are 0, that of the current snapshot is None, and the last ids are 0 for columns and 999 for
    partition fields."""
    metadata: TableMetadata = {
        "format-version": format_version,
        "table-uuid": "",
        "location": "",
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": 0,
        "current-schema-id": 0,
        "schemas": [],
        "default-spec-id": 0,
        "partition-specs": [],
        "last-partition-id": last_field_id([]),
        "default-sort-order-id": 0,
        "sort-orders": [],
        "properties": {},
        "current-snapshot-id": None,
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }
    if format_version >= 3:
        metadata["next-row-id"] = 0
    return metadata


def complete(metadata: JsonObject) -> TableMetadata:
    """Returns the document with the fields that the specification allows a writer to leave out, filled in as the
    reference implementation does when it reads. A known field with null counts as left out. The
    current snapshot -1 becomes None, and a v1 document gets the last sequence number 0, whatever it has.

    The result is a new object that shares its values, unknown fields included, with `metadata`.
    """
    given: JsonObject = {name: value for name, value in metadata.items() if value is not None or name not in _KNOWN}
    filled = {**empty(cast(int, given["format-version"])), **given}
    completed = cast(TableMetadata, filled)
    if completed["format-version"] == 1:
        _complete_v1(completed, given)
    if completed["current-snapshot-id"] == NO_SNAPSHOT:
        completed["current-snapshot-id"] = None
    current = completed["current-snapshot-id"]
    if current is not None and MAIN not in completed["refs"]:
        completed["refs"] = {MAIN: branch(current), **completed["refs"]}
    return completed


def _complete_v1(metadata: TableMetadata, given: JsonObject) -> None:
    """Adds to metadata of version 1 what it may lack: the lists of schemas and specs, made of the single ones, ids of
    partition fields, the highest of these, and the unsorted order. Sets the last sequence number to 0."""
    metadata["last-sequence-number"] = 0
    if "schemas" not in given:
        schema = metadata["schema"]
        metadata["current-schema-id"] = schema.get("schema-id", 0)
        metadata["schemas"] = [cast(Schema, {"schema-id": 0, **schema})]
    if "partition-specs" not in given:
        metadata["default-spec-id"] = 0
        metadata["partition-specs"] = [cast(PartitionSpec, {"spec-id": 0, "fields": given.get("partition-spec", [])})]
    metadata["partition-specs"] = [
        spec if all("field-id" in field for field in spec["fields"]) else numbered(spec)
        for spec in metadata["partition-specs"]
    ]
    if "last-partition-id" not in given:
        metadata["last-partition-id"] = last_field_id(metadata["partition-specs"])
    if "sort-orders" not in given:
        metadata["sort-orders"] = [unsorted()]


def written(metadata: TableMetadata) -> JsonObject:
    """Returns the document in the form in which it is stored and sent: a new object with the fields of its format
    version, and without a uuid or current snapshot that it does not have, where the version allows that."""
    document = cast(JsonObject, dict(metadata))
    version = metadata["format-version"]
    if version == 1:
        document["schema"] = cast(JsonValue, current_schema(metadata))
        document["partition-spec"] = cast(JsonValue, default_spec(metadata)["fields"])
        del document["last-sequence-number"]
    else:
        document.pop("schema", None)
        document.pop("partition-spec", None)
    if not metadata["table-uuid"]:
        del document["table-uuid"]
    if metadata["current-snapshot-id"] is None:
        # From version 3 on there is no -1, and the REST specification has no null: what is not there is left out.
        if version < 3:
            document["current-snapshot-id"] = NO_SNAPSHOT
        else:
            del document["current-snapshot-id"]
    return document


def current_schema(metadata: TableMetadata) -> Schema:
    """Returns the table's current schema. Raises `BadRequest` if it has none."""
    wanted = metadata["current-schema-id"]
    for schema in metadata["schemas"]:
        if schema.get("schema-id", 0) == wanted:
            return schema
    raise BadRequest(f"The current-schema-id of the table metadata is {wanted}, which is the id of no schema in it")


def default_spec(metadata: TableMetadata) -> PartitionSpec:
    """Returns the partition spec with which new files are written. Raises `BadRequest` if there is none."""
    wanted = metadata["default-spec-id"]
    for spec in metadata["partition-specs"]:
        if spec.get("spec-id", 0) == wanted:
            return spec
    raise BadRequest(
        f"The default-spec-id of the table metadata is {wanted}, which is the id of no partition spec in it"
    )


def default_order(metadata: TableMetadata) -> SortOrder:
    """Returns the sort order in which new files are written; the unsorted order if that is the default and the document
    lists only others, at least one. Raises `BadRequest` if the document has any other default order without listing
    it, or lists no order."""
    wanted = metadata["default-sort-order-id"]
    for order in metadata["sort-orders"]:
        if order.get("order-id", 0) == wanted:
            return order
    if wanted == UNSORTED_ID and metadata["sort-orders"]:
        return unsorted()  # some writers do not list it
    raise BadRequest(
        f"The default-sort-order-id of the table metadata is {wanted}, which is the id of no sort order in it"
    )
