"""Writes manifest lists as Avro files (table spec, "Manifest Lists")."""

import hashlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Final

from arco_catalog.iceberg.appends import NotRebasable
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.manifests import ManifestFile

_SYNC_BYTES: Final = 16


def _field(number: int, name: str, type_: JsonValue) -> JsonObject:
    """Returns a required field of the Avro schema of manifest lists."""
    return {"name": name, "type": type_, "field-id": number}


def _optional(number: int, name: str, type_: JsonValue) -> JsonObject:
    """Returns an optional field of the Avro schema of manifest lists."""
    return {"name": name, "type": ["null", type_], "default": None, "field-id": number}


_PARTITION: JsonObject = {
    "type": "record",
    "name": "r508",
    "fields": [
        _field(509, "contains_null", "boolean"),
        _optional(518, "contains_nan", "boolean"),
        _optional(510, "lower_bound", "bytes"),
        _optional(511, "upper_bound", "bytes"),
    ],
}
_FIELDS: Final[Sequence[JsonObject]] = (
    _field(500, "manifest_path", "string"),
    _field(501, "manifest_length", "long"),
    _field(502, "partition_spec_id", "int"),
    _field(517, "content", "int"),
    _field(515, "sequence_number", "long"),
    _field(516, "min_sequence_number", "long"),
    _field(503, "added_snapshot_id", "long"),
    _field(504, "added_files_count", "int"),
    _field(505, "existing_files_count", "int"),
    _field(506, "deleted_files_count", "int"),
    _field(512, "added_rows_count", "long"),
    _field(513, "existing_rows_count", "long"),
    _field(514, "deleted_rows_count", "long"),
    _optional(507, "partitions", {"type": "array", "items": _PARTITION, "element-id": 508}),
    _optional(519, "key_metadata", "bytes"),
)
_FIRST_ROW_ID: Final = _optional(520, "first_row_id", "long")


def encode_manifest_list(manifests: Sequence[ManifestFile], format_version: int, header: Sequence[int | None]) -> bytes:
    """Returns the file of a manifest list of format version 2 or 3. `header` has the id of the snapshot, that of its
    parent, its sequence number, and from version 3 on its first row id. Equal arguments give equal bytes. Raises
    `NotRebasable` if fastavro is not installed."""
    try:
        import fastavro  # deferred: few processes write manifest lists
    except ImportError as error:
        raise NotRebasable(f"no manifest list can be written: the package {error.name} is not installed") from error

    names = ("snapshot-id", "parent-snapshot-id", "sequence-number", "first-row-id")
    metadata = {name: str(value) for name, value in zip(names, header, strict=False) if value is not None}
    written = [*_FIELDS, *([_FIRST_ROW_ID] if format_version >= 3 else [])]
    out = BytesIO()
    fastavro.writer(
        out,
        {"type": "record", "name": "manifest_file", "fields": written},
        map(_record, manifests),
        codec="deflate",
        metadata={**metadata, "format-version": str(format_version)},
        sync_marker=hashlib.sha256(repr(header).encode()).digest()[:_SYNC_BYTES],
    )
    return out.getvalue()


def _record(manifest: ManifestFile) -> Mapping[str, object]:
    """Returns an entry of a manifest list as the Avro encoder takes it."""
    summaries = manifest.partitions
    return {**manifest._asdict(), "partitions": None if summaries is None else [each._asdict() for each in summaries]}
