"""Makes the rows of the system tables `tables`, `views`, `columns`, `refs` and `snapshots` for a metadata file.

If the file was deleted before it was read, or cannot be read, rows of `tables`, `views` and `snapshots` have only the
fields of the receipt, and their column `metadata_gone` is true or null; `columns` and `refs` get no rows.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.iceberg.summary import type_text
from reconciler.compact.values import (
    int_of,
    long_of,
    object_of,
    objects_of,
    properties_of,
    text_of,
    texts_of,
    time_of,
)
from reconciler.compact.version import Metadata, MissingMetadata, Version
from reconciler.system.definition import Row
from reconciler.system.tables import COLUMNS, REFS, SNAPSHOTS, TABLES, VIEWS

_COUNTS: Final = {
    "added_data_files": "added-data-files",
    "deleted_data_files": "deleted-data-files",
    "added_records": "added-records",
    "deleted_records": "deleted-records",
    "added_bytes": "added-files-size",
    "removed_bytes": "removed-files-size",
    "total_records": "total-records",
    "total_data_files": "total-data-files",
    "total_delete_files": "total-delete-files",
    "total_bytes": "total-files-size",
}


def project(version: Version, document: Metadata) -> Iterator[tuple[str, Row]]:
    """Iterates over the rows that a version of a table or view adds to the tables made of metadata, with the names of
    the tables; the rows of `columns` only if the version may have another schema than the one before. `document` is the
    version's metadata, or why there is none."""
    if version.is_view:
        yield VIEWS.name, _view_row(version, document)
    else:
        yield TABLES.name, _table_row(version, document)
        for row in _snapshot_rows(version, document):
            yield SNAPSHOTS.name, row
        for row in _ref_rows(version, document):
            yield REFS.name, row
    if version.sets_schema and not isinstance(document, MissingMetadata):
        for row in _column_rows(version, document):
            yield COLUMNS.name, row


def _table_row(version: Version, document: Metadata) -> Row:
    """Returns the row of a table's version: without metadata only what its commit states."""
    if isinstance(document, MissingMetadata):
        return {
            **version.columns,
            "table_uuid": version.uuid,
            "snapshot_id": version.snapshot_id,
            "metadata_gone": document.value,
        }
    snapshots = objects_of(document.get("snapshots"))
    current = next((each for each in snapshots if each.get("snapshot-id") == version.snapshot_id), {})
    summary = object_of(current.get("summary"))
    return {
        **version.columns,
        "table_uuid": text_of(document.get("table-uuid")) or version.uuid,
        "format_version": int_of(document.get("format-version")),
        "location": text_of(document.get("location")),
        "properties": properties_of(document.get("properties")),
        "schema_id": int_of(document.get("current-schema-id")),
        "partition_spec": _default_fields(document, "partition-specs", "spec-id", "default-spec-id"),
        "sort_order": _default_fields(document, "sort-orders", "order-id", "default-sort-order-id"),
        "snapshot_id": version.snapshot_id,
        "snapshots": len(snapshots),
        "records": long_of(summary.get("total-records")),
        "data_files": long_of(summary.get("total-data-files")),
        "bytes": long_of(summary.get("total-files-size")),
        "metadata_gone": False,
    }


def _default_fields(document: JsonObject, many: str, field: str, default: str) -> str | None:
    """Returns the fields of the default partition spec or sort order as JSON text; None if the metadata has none.
    `many` is the list in the metadata, `field` the id in an element, `default` the field with the default id."""
    default_id = document.get(default)
    found = next((each for each in objects_of(document.get(many)) if each.get(field) == default_id), None)
    return None if found is None else dumps(found.get("fields"), sort_keys=True).decode()


def _view_row(version: Version, document: Metadata) -> Row:
    """Returns the row of a view's version: without metadata only what its commit states."""
    if isinstance(document, MissingMetadata):
        return {**version.columns, "view_uuid": version.uuid, "metadata_gone": document.value}
    current = document.get("current-version-id")
    found = next((each for each in objects_of(document.get("versions")) if each.get("version-id") == current), {})
    written = [each for each in objects_of(found.get("representations")) if each.get("type") == "sql"]
    return {
        **version.columns,
        "view_uuid": text_of(document.get("view-uuid")) or version.uuid,
        "format_version": int_of(document.get("format-version")),
        "location": text_of(document.get("location")),
        "properties": properties_of(document.get("properties")),
        "version_id": int_of(current),
        "dialects": texts_of([each.get("dialect") for each in written]),
        "sql": text_of(written[0].get("sql")) if written else None,
        "metadata_gone": False,
    }


def _snapshot_rows(version: Version, document: Metadata) -> Iterator[Row]:
    """Yields the rows of snapshots that a version has added; without metadata they have only the id, and the columns
    of the commit."""
    shared = version.commit_columns
    if isinstance(document, MissingMetadata):
        for snapshot in version.added_snapshot_ids:
            yield {**shared, "snapshot_id": snapshot, "metadata_gone": document.value}
        return
    for each in _added_snapshots(version, document):
        snapshot_id = long_of(each.get("snapshot-id"))
        summary = object_of(each.get("summary"))
        yield {
            **shared,
            "snapshot_id": snapshot_id,
            "parent_id": long_of(each.get("parent-snapshot-id")),
            "sequence_number": long_of(each.get("sequence-number")),
            "snapshot_at": time_of(each.get("timestamp-ms")),
            "operation": text_of(summary.get("operation")),
            "manifest_list": text_of(each.get("manifest-list")),
            "schema_id": int_of(each.get("schema-id")),
            **{name: long_of(summary.get(counted)) for name, counted in _COUNTS.items()},
            "summary": properties_of(summary),
            "metadata_gone": False,
        }


def _added_snapshots(version: Version, document: JsonObject) -> list[JsonObject]:
    """Returns the snapshots that the commit of a version has added, as the receipt names them. A receipt written
    without knowledge of the commit names none: then the snapshots that are younger than the previous metadata file."""
    snapshots = objects_of(document.get("snapshots"))
    if not version.restored:
        added = set(version.added_snapshot_ids)
        return [each for each in snapshots if long_of(each.get("snapshot-id")) in added]
    log = objects_of(document.get("metadata-log"))
    since_ms = (long_of(log[-1].get("timestamp-ms")) if log else None) or 0
    later = (each for each in snapshots if (long_of(each.get("timestamp-ms")) or 0) > since_ms)
    return [each for each in later if long_of(each.get("snapshot-id")) is not None]


def _ref_rows(version: Version, document: Metadata) -> Iterator[Row]:
    """Yields the rows of refs that a version has; for metadata without refs, the branch `main` at the current snapshot,
    if there is one. Yields none without metadata."""
    if isinstance(document, MissingMetadata):
        return
    found: Mapping[str, JsonObject] = {
        name: object_of(ref) for name, ref in object_of(document.get("refs")).items()
    } or ({} if version.snapshot_id is None else {"main": {"type": "branch", "snapshot-id": version.snapshot_id}})
    for name, ref in found.items():
        yield {
            **version.columns,
            "ref": name,
            "ref_type": text_of(ref.get("type")),
            "snapshot_id": long_of(ref.get("snapshot-id")),
        }


def _column_rows(version: Version, document: JsonObject) -> Iterator[Row]:
    """Yields the rows of the columns in a version's schema, and of the fields of structs in them, at any level."""
    schema = _current_schema(version, document)
    shared: Row = {
        **version.columns,
        "current": version.newest_schema,
        "entity_type": "view" if version.is_view else "table",
    }
    for position, (name, field) in enumerate(_fields(schema), 1):
        yield {
            **shared,
            "schema_id": int_of(schema.get("schema-id")),
            "field_id": int_of(field.get("id")),
            "position": position,
            "column_name": name,
            "data_type": type_text(field.get("type")),
            "nullable": field.get("required") is not True,
            "comment": text_of(field.get("doc")),
        }


def _current_schema(version: Version, document: JsonObject) -> JsonObject:
    """Returns the schema of a version, of a view that of the current view version; if the list of schemas does not have
    it, the field `schema` of old metadata, or else an empty object."""
    schemas = objects_of(document.get("schemas"))
    schema_id = document.get("current-schema-id")
    if version.is_view:
        current = document.get("current-version-id")
        versions = objects_of(document.get("versions"))
        schema_id = next((each.get("schema-id") for each in versions if each.get("version-id") == current), None)
    return next((each for each in schemas if each.get("schema-id", 0) == schema_id), object_of(document.get("schema")))


def _fields(schema: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Iterates over every field of a schema and of the structs nested in it, at any level of lists and maps, each with
    the full name, of which the parts are joined by dots."""
    left: list[tuple[str, JsonObject | None, JsonObject]] = [("", None, schema)]
    while left:
        prefix, field, held = left.pop()
        if field is not None:
            prefix += text_of(field.get("name")) or ""
            yield prefix, field
            held, prefix = object_of(field.get("type")), f"{prefix}."
        inside = [(prefix, each, held) for each in objects_of(held.get("fields"))]
        parts = [part for part in ("element", "key", "value") if part in held]
        members = [(f"{prefix}{part}.", None, object_of(held[part])) for part in parts]
        left += reversed([*inside, *members])
