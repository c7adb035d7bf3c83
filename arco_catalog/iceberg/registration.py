"""Checks that this catalog can commit on a metadata file that a client registers (REST spec, `registerTable`).

It makes the checks of every reader, and those on which later commits rely. Other content of the file is not checked.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import TypeVar, cast

from arco_catalog.iceberg.checkpoint import Checkpoint, no_deadline
from arco_catalog.iceberg.encryption import ENCRYPTED_KEY
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.metadata import (
    MetadataLogEntry,
    TableMetadata,
    complete,
    current_schema,
    default_order,
    default_spec,
)
from arco_catalog.iceberg.numbered import unique_ids
from arco_catalog.iceberg.partition import PARTITION_FIELD, PARTITION_SPEC, check_names, check_spec
from arco_catalog.iceberg.properties import SUPPORTED_FORMAT_VERSION
from arco_catalog.iceberg.schema import SCHEMA, columns_by_id
from arco_catalog.iceberg.shapes import (
    INT,
    LONG,
    NAME,
    OBJECT,
    STRING,
    STRINGS,
    Shape,
    ShapeError,
    check,
    list_of,
    map_of,
    record,
)
from arco_catalog.iceberg.snapshots import (
    MAIN,
    ONE_MINUTE_MS,
    PARTITION_STATISTICS_FILE,
    SNAPSHOT,
    SNAPSHOT_LOG_ENTRY,
    SNAPSHOT_REF,
    STATISTICS_FILE,
    check_log_times,
)
from arco_catalog.iceberg.sort import SORT_ORDER, check_order

T = TypeVar("T")

_LOG_ENTRY = record(MetadataLogEntry, required={"metadata-file": STRING, "timestamp-ms": LONG})

LAST_MS = 253_402_214_400_000
"""The end of the times that are allowed: the start of 9999-12-31, the last day whose year has four digits."""


def _calendar_ms(value: JsonValue) -> int:
    """Returns a time that has a calendar date, because receipts are filed by day. Raises `ShapeError` for any other
    value."""
    ms = LONG(value)
    if not 0 <= ms < LAST_MS:
        raise ShapeError(f"expected a time in milliseconds since 1970, before 9999-12-31, found {ms}")
    return ms


def _shapes(checkpoint: Checkpoint) -> Mapping[int, Shape[JsonObject]]:
    """Returns the checks of a document, by its format version. `checkpoint` is called for every ref, and for every
    element of the lists except v1's `partition-spec`."""

    def each(element: Shape[T]) -> Shape[T]:
        def shape(value: JsonValue) -> T:
            checkpoint()
            return element(value)

        return shape

    always: Mapping[str, Shape[object]] = {"location": NAME, "last-updated-ms": _calendar_ms, "last-column-id": INT}
    optional: Mapping[str, Shape[object]] = {
        "properties": STRINGS,
        "current-snapshot-id": LONG,
        "refs": map_of(each(SNAPSHOT_REF)),
        "snapshots": list_of(each(SNAPSHOT)),
        "statistics": list_of(each(STATISTICS_FILE)),
        "partition-statistics": list_of(each(PARTITION_STATISTICS_FILE)),
        "snapshot-log": list_of(each(SNAPSHOT_LOG_ENTRY)),
        "metadata-log": list_of(each(_LOG_ENTRY)),
        "encryption-keys": list_of(each(ENCRYPTED_KEY)),
    }
    structure: Mapping[str, Shape[object]] = {
        "schemas": list_of(each(SCHEMA)),
        "current-schema-id": INT,
        "partition-specs": list_of(each(PARTITION_SPEC)),
        "default-spec-id": INT,
        "last-partition-id": INT,
        "sort-orders": list_of(each(SORT_ORDER)),
        "default-sort-order-id": INT,
    }
    v1: Mapping[str, Shape[object]] = {"table-uuid": NAME, "schema": SCHEMA, "partition-spec": list_of(PARTITION_FIELD)}
    v2: Mapping[str, Shape[object]] = {"table-uuid": NAME, "last-sequence-number": LONG}
    v3: Mapping[str, Shape[object]] = {"next-row-id": LONG}
    return {
        1: record(JsonObject, required=always, optional={**optional, **structure, **v1}),
        2: record(JsonObject, required={**always, **structure, **v2}, optional=optional),
        3: record(JsonObject, required={**always, **structure, **v2, **v3}, optional=optional),
    }


def check_registered(metadata: JsonValue, checkpoint: Checkpoint = no_deadline) -> JsonObject:
    """Returns `metadata` itself if it is that of a table on which this catalog can commit, in a supported format
    version. Raises `BadRequest` otherwise, and what `checkpoint` raises."""
    document = check(OBJECT, metadata, "metadata")
    version = check(record(JsonObject, {"format-version": INT}), document, "metadata")["format-version"]
    shape = _shapes(checkpoint).get(version) if isinstance(version, int) else None
    if shape is None:
        raise BadRequest(
            f"Cannot read metadata of the unsupported format version {version} (supported: 1 to "
            f"{SUPPORTED_FORMAT_VERSION})"
        )
    checked = check(shape, document, "metadata")
    _refuse_null_ids(document)
    if version == 1:
        _check_v1(checked)
    checkpoint()
    table = complete(checked)
    _check_ids(table)
    _check_structure(table, checkpoint)
    _check_snapshots(table)
    checkpoint()
    _check_logs(table)
    return document


def _refuse_null_ids(document: JsonObject) -> None:
    """Raises `BadRequest` for an id, or `identifier-field-ids`, that is null in the lists of schemas, specs and sort
    orders, in `partition-spec`, in `schema` without a list of schemas, or in the fields of these. Another optional
    field may be null instead of absent, but readers take an id that is present for a number."""
    single = "schema" if "schemas" not in document else "schemas"
    for name in (single, "partition-specs", "sort-orders", "partition-spec"):
        found = document.get(name) or []
        entries = cast("list[JsonObject]", [found] if isinstance(found, dict) else found)
        fields = [field for entry in entries for field in cast("list[JsonObject]", entry.get("fields") or [])]
        for entry in [*entries, *fields]:
            for id_name in ("schema-id", "identifier-field-ids", "spec-id", "order-id", "field-id"):
                if id_name in entry and entry[id_name] is None:
                    raise BadRequest(f"Invalid metadata.{name}: {id_name} must not be null")


def _check_v1(document: JsonObject) -> None:
    """Raises `BadRequest` if metadata of format version 1 is without `schema` and a list of schemas, if it is without
    `partition-spec` and a list of specs, or if one of these lists, or that of sort orders, is there without the current
    or default id. Early writers have one schema and one spec, later ones also lists of them."""
    for one, several, current in (
        ("schema", "schemas", "current-schema-id"),
        ("partition-spec", "partition-specs", "default-spec-id"),
    ):
        if several in document and current not in document:
            raise BadRequest(f"Invalid metadata: missing required field {current!r}")
        if several not in document and one not in document:
            raise BadRequest(f"Invalid metadata: missing required field {one!r}")
    if "sort-orders" in document and "default-sort-order-id" not in document:
        raise BadRequest("Invalid metadata: missing required field 'default-sort-order-id'")


def _check_ids(table: TableMetadata) -> None:
    """Fails if two schemas, specs, orders or snapshots of the metadata have one id."""
    unique_ids("schema-id", (schema.get("schema-id", 0) for schema in table["schemas"]))
    unique_ids("spec-id", (spec.get("spec-id", 0) for spec in table["partition-specs"]))
    unique_ids("order-id", (order.get("order-id", 0) for order in table["sort-orders"]))
    unique_ids("snapshot-id", (snapshot["snapshot-id"] for snapshot in table["snapshots"]))


def _check_structure(table: TableMetadata, checkpoint: Checkpoint) -> None:
    """Fails if the default spec or the default order does not exist or does not fit the current schema, if there is no
    current schema or `columns_by_id` fails for it, or if any spec has a field without an id, or with a name that
    `check_names` does not allow. The default order 0 need not be listed if others are."""
    columns = columns_by_id(current_schema(table))
    check_spec(default_spec(table), columns)
    check_order(default_order(table), columns)
    for spec in table["partition-specs"]:
        checkpoint()
        check_names(spec, columns)
        if any("field-id" not in field for field in spec["fields"]):
            raise BadRequest(f"Invalid metadata: partition spec {spec.get('spec-id', 0)} has fields without field-id")


def _check_snapshots(table: TableMetadata) -> None:
    """Fails if a snapshot has a higher sequence number than the table, if a branch or tag names a snapshot that is
    missing, or if the current snapshot is not that of main."""
    known = {snapshot["snapshot-id"] for snapshot in table["snapshots"]}
    last = table["last-sequence-number"]
    for snapshot in table["snapshots"]:
        if snapshot.get("sequence-number", 0) > last:
            raise BadRequest(
                f"Invalid snapshot with sequence number {snapshot['sequence-number']} "
                f"greater than last sequence number {last}"
            )
    for name, ref in table["refs"].items():
        if ref["snapshot-id"] not in known:
            raise BadRequest(f"Snapshot for reference {name} does not exist in the existing snapshots list")
    main = table["refs"].get(MAIN)
    main_id = main["snapshot-id"] if main is not None else None
    if table["current-snapshot-id"] != main_id:
        raise BadRequest(
            f"Current snapshot ID does not match main branch ({table['current-snapshot-id']} != {main_id})"
        )


def _check_logs(table: TableMetadata) -> None:
    """Fails if a time in the snapshot log or in the metadata log is more than a minute later than the next one, or the
    last time there than the table's last update."""
    check_log_times(table["snapshot-log"], table["last-updated-ms"])
    times = [entry["timestamp-ms"] for entry in table["metadata-log"]]
    if any(later - earlier < -ONE_MINUTE_MS for earlier, later in pairwise([*times, table["last-updated-ms"]])):
        raise BadRequest(
            "Invalid metadata: 'metadata-log' has a time that is more than a minute later than that of the next entry, "
            "or than 'last-updated-ms'"
        )
