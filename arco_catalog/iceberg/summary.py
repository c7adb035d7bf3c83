"""Summaries of a table or view for people, from its metadata alone."""

from collections.abc import Iterable, Mapping
from typing import cast

from arco_catalog.iceberg.accessors import current_snapshot_id, refs
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.snapshot_summary import read_count, summary_fields

MANY_SNAPSHOTS = 1_000
"""With more snapshots, a table's metadata is slow to read and to write."""
MANY_DATA_FILES = 100
SMALL_FILE_BYTES = 8 << 20
"""Many data files of a smaller average size make scans slow: engines write 128 to 512 MB if they can."""
DELETE_FILE_SHARE = 0.2
"""With more delete files for each data file, most scans have to merge some."""

_COUNTS = {
    "records": "total-records",
    "data_files": "total-data-files",
    "delete_files": "total-delete-files",
    "bytes": "total-files-size",
}


def table_summary(metadata: JsonObject, newest: int) -> JsonObject:
    """Returns what people want to know of a table: schema, partitioning, sort order, properties, branches and tags, the
    size by the current snapshot, and the latest snapshots, at most `newest`, the latest first."""
    snapshots = _objects(metadata.get("snapshots"))
    current = current_snapshot_id(metadata)
    latest = sorted(snapshots, key=lambda snapshot: _number(snapshot, "timestamp-ms"), reverse=True)[:newest]
    shown: list[JsonValue] = [_snapshot(snapshot, current) for snapshot in latest]
    schema = _current_schema(metadata)
    names = dict(column_names(schema))
    return {
        "format_version": metadata.get("format-version"),
        "location": metadata.get("location"),
        "updated_ms": metadata.get("last-updated-ms"),
        "schema": _columns(schema),
        "partitioned_by": [format_partition_field(field, names) for field in _partition_fields(metadata)],
        "sorted_by": [format_sort_field(field, names) for field in _sort_fields(metadata)],
        "properties": metadata.get("properties") or {},
        "refs": refs(metadata),
        "size": _size(snapshots, current),
        "snapshot_count": len(snapshots),
        "snapshots": shown,
    }


def view_summary(metadata: JsonObject) -> JsonObject:
    """Returns what people want to know of a view: the schema and all representations (SQL) of the current version, the
    properties, and the number of versions."""
    current = metadata.get("current-version-id")
    versions = _objects(metadata.get("versions"))
    version = _find(versions, "version-id", current)
    schema = _find(_objects(metadata.get("schemas")), "schema-id", version.get("schema-id"))
    return {
        "format_version": metadata.get("format-version"),
        "location": metadata.get("location"),
        "updated_ms": version.get("timestamp-ms"),
        "schema": _columns(schema),
        "properties": metadata.get("properties") or {},
        "version": current,
        "version_count": len(versions),
        "representations": version.get("representations") or [],
    }


def table_concerns(metadata: JsonObject) -> list[str]:
    """Returns a sentence with the remedy for each problem of a table: more than `MANY_SNAPSHOTS` snapshots; more than
    `MANY_DATA_FILES` data files of an average size below `SMALL_FILE_BYTES`; more delete files than `DELETE_FILE_SHARE`
    of the data files. Files are counted by the summary of the current snapshot."""
    snapshots = _objects(metadata.get("snapshots"))
    size = _size(snapshots, current_snapshot_id(metadata))
    concerns: list[str] = []
    if len(snapshots) > MANY_SNAPSHOTS:
        concerns.append(f"{len(snapshots):,} snapshots make its metadata large: expire old ones (expire_snapshots)")
    data_files, delete_files, total = (size.get(name) for name in ("data_files", "delete_files", "bytes"))
    if isinstance(data_files, int) and data_files > MANY_DATA_FILES and isinstance(total, int):
        average = total // data_files
        if average < SMALL_FILE_BYTES:
            concerns.append(
                f"{data_files:,} data files of {average >> 10:,} KB on average are small: compact them "
                "(rewrite_data_files)"
            )
    if isinstance(data_files, int) and isinstance(delete_files, int) and delete_files > DELETE_FILE_SHARE * data_files:
        concerns.append(
            f"{delete_files:,} delete files beside {data_files:,} data files make reads slow: compact them "
            "(rewrite_data_files, rewrite_position_delete_files)"
        )
    return concerns


def type_text(written: JsonValue) -> str:
    """Returns a type on one line, such as `list<struct<a: int, b: string>>`."""
    match written:
        case {"type": "struct", "fields": list(fields)}:
            inner = ", ".join(f"{field.get('name')}: {type_text(field.get('type'))}" for field in _objects(fields))
            return f"struct<{inner}>"
        case {"type": "list", "element": element}:
            return f"list<{type_text(element)}>"
        case {"type": "map", "key": key, "value": value}:
            return f"map<{type_text(key)}, {type_text(value)}>"
    return str(written)


def _size(snapshots: Iterable[JsonObject], current: int | None) -> JsonObject:
    """Returns the counts in the summary of the snapshot with the id `current`, null for each that it does not have. All
    counts are 0 if `current` is None, because a table without a snapshot is empty."""
    if current is None:
        return dict.fromkeys(_COUNTS, 0)
    fields = next((summary_fields(each) for each in snapshots if each.get("snapshot-id") == current), {})
    return {name: read_count(fields.get(field)) for name, field in _COUNTS.items()}


def _snapshot(snapshot: JsonObject, current: int | None) -> JsonObject:
    """Returns the summary of a snapshot for people; `current` is the id of the table's current one, None without
    one."""
    fields = summary_fields(snapshot)
    return {
        "snapshot_id": snapshot.get("snapshot-id"),
        "parent_id": snapshot.get("parent-snapshot-id"),
        "at_ms": snapshot.get("timestamp-ms"),
        "operation": fields.get("operation"),
        "added_records": read_count(fields.get("added-records")),
        "deleted_records": read_count(fields.get("deleted-records")),
        "total_records": read_count(fields.get("total-records")),
        "current": snapshot.get("snapshot-id") == current,
    }


def _current_schema(metadata: JsonObject) -> JsonObject:
    """Returns the current schema. Early v1 tables have one schema, and no list of them. Empty if there is none."""
    schemas = _objects(metadata.get("schemas"))
    return _find(schemas, "schema-id", metadata.get("current-schema-id")) or _object(metadata.get("schema"))


def _columns(schema: JsonObject) -> list[JsonValue]:
    """Returns the top-level columns of a schema for people: id, name, type on one line, whether it is required, and
    comment."""
    return [
        {
            "id": field.get("id"),
            "name": field.get("name"),
            "type": type_text(field.get("type")),
            "required": field.get("required") is True,
            "doc": field.get("doc"),
        }
        for field in _objects(schema.get("fields"))
    ]


def column_names(struct: JsonObject, prefix: str = "") -> Iterable[tuple[JsonValue, str]]:
    """Yields the id and name of every column at the top level and inside structs, with the names of these in front,
    joined by dots. Columns inside lists and maps are left out."""
    for field in _objects(struct.get("fields")):
        name = f"{prefix}{field.get('name')}"
        yield field.get("id"), name
        yield from column_names(_object(field.get("type")), f"{name}.")


def _partition_fields(metadata: JsonObject) -> list[JsonObject]:
    """Returns the fields of the default partition spec; of early v1 tables, which have no list of specs, the fields of
    their one spec. Empty if there is none."""
    specs = _objects(metadata.get("partition-specs"))
    spec = _find(specs, "spec-id", metadata.get("default-spec-id"))
    return _objects(spec.get("fields") if spec else metadata.get("partition-spec"))


def _sort_fields(metadata: JsonObject) -> list[JsonObject]:
    """Returns the fields of the table's default sort order; empty if the document does not have that."""
    order = _find(_objects(metadata.get("sort-orders")), "order-id", metadata.get("default-sort-order-id"))
    return _objects(order.get("fields"))


def format_sort_field(field: JsonObject, names: Mapping[JsonValue, str]) -> str:
    """Returns a field of a sort order as text, such as `bucket[16](id) asc nulls-first`. `names` has the names of
    columns by their ids."""
    return f"{format_partition_field(field, names)} {field.get('direction')} {field.get('null-order')}"


def format_partition_field(field: JsonObject, names: Mapping[JsonValue, str]) -> str:
    """Returns a field of a partition spec as text, such as `bucket[16](id)`; for an identity only the column. `names`
    has the names of columns by their ids; a column that is not there is written as `column 7`, with the id."""
    sources = field.get("source-ids") or [field.get("source-id")]
    source_ids = sources if isinstance(sources, list) else [sources]
    columns = ", ".join(
        names.get(source, f"column {source}") for source in source_ids if not isinstance(source, dict | list)
    )
    transform = field.get("transform")
    return columns if transform == "identity" else f"{transform}({columns})"


def _find(objects: Iterable[JsonObject], field: str, value: JsonValue) -> JsonObject:
    """Returns the first of the objects whose field has this value, {} if there is none."""
    return next((each for each in objects if each.get(field) == value), {})


def _objects(value: JsonValue) -> list[JsonObject]:
    """Returns the objects in an array, without other elements; empty for any other value."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _object(value: JsonValue) -> JsonObject:
    """Returns the value if it is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


def _number(document: JsonObject, name: str) -> int:
    """Returns the number in a field of a document; 0 if it is missing, null or 0."""
    return cast(int, document.get(name) or 0)
