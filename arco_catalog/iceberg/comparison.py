"""Compares two versions of a table, or of a view, by their metadata documents. Pure functions: the comparison of a
document with itself has no differences, and the comparison in the other direction exchanges `added` with `dropped`, and
`from` with `to`."""

from collections.abc import Mapping
from typing import cast

from arco_catalog.iceberg.accessors import current_snapshot_id
from arco_catalog.iceberg.differences import (
    compare_mappings,
    compare_numbered,
    compare_schemas,
    compare_value,
    is_equal,
)
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.metadata import TableMetadata, complete, current_schema
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.iceberg.schema import Schema
from arco_catalog.iceberg.snapshot_ancestry import compare_snapshots
from arco_catalog.iceberg.snapshot_summary import summary_counts
from arco_catalog.iceberg.sort import UNSORTED_ID, SortOrder
from arco_catalog.iceberg.summary import column_names, format_partition_field, format_sort_field
from arco_catalog.iceberg.view_metadata import ViewMetadata, complete_view, current_version

SIZES = {
    "records": "total-records",
    "data-files": "total-data-files",
    "delete-files": "total-delete-files",
    "bytes": "total-files-size",
}
"""The fields of a snapshot's summary with the size of the table."""


def compare_tables(before: JsonObject, after: JsonObject) -> JsonObject:
    """Returns what differs between two versions of a table: `fields`, schema, partition specs, sort orders, properties,
    branches and tags, sizes, and snapshots. `equal` is whether nothing of that differs. Raises `BadRequest` for a
    document without a current schema, or with ambiguous columns."""
    old, new = complete(before), complete(after)
    old_current, new_current = current_snapshot_id(before), current_snapshot_id(after)
    old_snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in old["snapshots"]}
    new_snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in new["snapshots"]}
    parts: JsonObject = {
        "fields": _compare_fields(before, after, ("format-version", "location", "table-uuid")),
        "schema": compare_schemas(current_schema(old), current_schema(new)),
        "partition-specs": _compare_specs(old, new),
        "sort-orders": _compare_orders(old, new),
        "properties": compare_mappings(old["properties"], new["properties"]),
        "refs": compare_mappings(cast(JsonObject, old["refs"]), cast(JsonObject, new["refs"])),
    }
    sizes = _sizes(old_snapshots, old_current), _sizes(new_snapshots, new_current)
    snapshots = compare_snapshots(old_snapshots, new_snapshots, old_current, new_current)
    unmoved = old_current == new_current and old_snapshots.keys() == new_snapshots.keys()
    return {
        "equal": is_equal(parts) and unmoved and sizes[0] == sizes[1],
        **parts,
        "size": {name: {"from": sizes[0][name], "to": sizes[1][name]} for name in SIZES},
        "snapshots": snapshots,
    }


def compare_views(before: JsonObject, after: JsonObject) -> JsonObject:
    """Returns what differs between two versions of a view: `fields`, schema, properties, SQL by dialect
    (`representations`), and versions of the SQL. `equal` is whether nothing of that differs. Raises `BadRequest` for a
    document with ambiguous columns."""
    old, new = complete_view(before), complete_view(after)
    old_version, new_version = cast(JsonObject, current_version(old)), cast(JsonObject, current_version(new))
    parts: JsonObject = {
        "fields": {
            **_compare_fields(before, after, ("format-version", "location", "view-uuid")),
            **_compare_fields(old_version, new_version, ("default-catalog", "default-namespace")),
        },
        "schema": compare_schemas(_schema_of_view(old), _schema_of_view(new)),
        "properties": compare_mappings(old["properties"], new["properties"]),
        "representations": compare_mappings(_definitions(old), _definitions(new)),
        "view-versions": _compare_view_versions(old, new),
    }
    return {"equal": is_equal(parts), **parts}


def _compare_fields(before: JsonObject, after: JsonObject, names: tuple[str, ...]) -> JsonObject:
    """Returns the named fields that differ, with their values before and after."""
    differences = {name: compare_value(before.get(name), after.get(name)) for name in names}
    return {name: difference for name, difference in differences.items() if difference is not None}


def _compare_specs(old: TableMetadata, new: TableMetadata) -> JsonObject:
    """Returns the partition specs that only one side has (`added`, `dropped`), with their fields as text, and under
    `default` the ids of the default specs, None if these are equal."""
    names = {**_names(old), **_names(new)}

    def describe(number: int, spec: PartitionSpec) -> JsonObject:
        fields = cast("list[JsonObject]", spec["fields"])
        return {"id": number, "fields": [format_partition_field(field, names) for field in fields]}

    before, after = ({spec.get("spec-id", 0): spec for spec in side["partition-specs"]} for side in (old, new))
    default = compare_value(old["default-spec-id"], new["default-spec-id"])
    return {"default": default, **compare_numbered(before, after, describe)}


def _compare_orders(old: TableMetadata, new: TableMetadata) -> JsonObject:
    """Returns the sort orders that only one side has (`added`, `dropped`), with their fields as text, and under
    `default` the ids of the default orders, None if these are equal."""
    names = {**_names(old), **_names(new)}

    def describe(number: int, order: SortOrder) -> JsonObject:
        fields = cast("list[JsonObject]", order["fields"])
        return {"id": number, "fields": [format_sort_field(field, names) for field in fields]}

    before, after = (
        {order.get("order-id", UNSORTED_ID): order for order in side["sort-orders"]} for side in (old, new)
    )
    default = compare_value(old["default-sort-order-id"], new["default-sort-order-id"])
    return {"default": default, **compare_numbered(before, after, describe)}


def _names(metadata: TableMetadata) -> Mapping[JsonValue, str]:
    """Returns the names of the columns of the current schema by id; inside structs with the names of these, and none
    inside lists and maps."""
    return dict(column_names(cast(JsonObject, current_schema(metadata))))


def _sizes(snapshots: Mapping[int, object], current: int | None) -> Mapping[str, int | None]:
    """Returns the size of a table by the summary of its current snapshot; 0 without one, None where it is unknown."""
    if current is None:
        return dict.fromkeys(SIZES, 0)
    counts = summary_counts(cast(JsonObject, snapshots.get(current) or {}), SIZES.values())
    return {name: counts[field] for name, field in SIZES.items()}


def _schema_of_view(view: ViewMetadata) -> Schema:
    """Returns the schema of a view's current version."""
    wanted = current_version(view)["schema-id"]
    return next(schema for schema in view["schemas"] if schema.get("schema-id", 0) == wanted)


def _definitions(view: ViewMetadata) -> Mapping[str, str]:
    """Returns the SQL of a view's current version by dialect in lower case. Representations that are no SQL are left
    out."""
    representations = current_version(view)["representations"]
    return {sql["dialect"].lower(): sql["sql"] for sql in representations if "dialect" in sql and "sql" in sql}


def _compare_view_versions(old: ViewMetadata, new: ViewMetadata) -> JsonObject:
    """Returns the ids of the versions of a view that only one side has (`added`, `dropped`), and under `current` the
    ids of the current versions, None if these are equal."""
    before, after = ({version["version-id"] for version in side["versions"]} for side in (old, new))
    added: list[JsonValue] = [*sorted(after - before)]
    dropped: list[JsonValue] = [*sorted(before - after)]
    current = compare_value(old["current-version-id"], new["current-version-id"])
    return {"current": current, "added": added, "dropped": dropped}
