"""Makes manifests with all fields of their entries, as Iceberg's Java library writes them, and reads their files."""

from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import Final

import fastavro

from arco_catalog.iceberg.content_files import ContentFile
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.manifests import DATA, ManifestFile
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.state.avro import ReadRange
from arco_catalog.state.manifest_entries import EntrySelection, read_entries


def field(number: int, name: str, of: JsonValue) -> JsonObject:
    """A field that each record has."""
    return {"name": name, "type": of, "field-id": number}


def optional(number: int, name: str, of: JsonValue) -> JsonObject:
    """A field that may be null."""
    return {"name": name, "type": ["null", of], "default": None, "field-id": number}


def _pairs(key: int, value: int, of: str) -> JsonObject:
    pair: JsonObject = {
        "type": "record",
        "name": f"k{key}_v{value}",
        "fields": [field(key, "key", "int"), field(value, "value", of)],
    }
    return {"type": "array", "items": pair, "logicalType": "map"}


STATISTICS: Sequence[JsonObject] = (
    optional(108, "column_sizes", _pairs(117, 118, "long")),
    optional(109, "value_counts", _pairs(119, 120, "long")),
    optional(110, "null_value_counts", _pairs(121, 122, "long")),
    optional(137, "nan_value_counts", _pairs(138, 139, "long")),
    optional(125, "lower_bounds", _pairs(126, 127, "bytes")),
    optional(128, "upper_bounds", _pairs(129, 130, "bytes")),
)


def entry_schema(partition: Sequence[JsonObject] = (), version: int = 3) -> JsonObject:
    """The schema of the entries of a manifest in a format version, with these partition fields."""
    file: list[JsonValue] = [
        *([field(134, "content", "int")] if version > 1 else []),
        field(100, "file_path", "string"),
        field(101, "file_format", "string"),
        field(102, "partition", {"type": "record", "name": "r102", "fields": [*partition]}),
        field(103, "record_count", "long"),
        field(104, "file_size_in_bytes", "long"),
        *([field(105, "block_size_in_bytes", "long")] if version == 1 else []),
        *STATISTICS,
        optional(131, "key_metadata", "bytes"),
        optional(132, "split_offsets", {"type": "array", "items": "long", "element-id": 133}),
        *([optional(135, "equality_ids", {"type": "array", "items": "int", "element-id": 136})] if version > 1 else []),
        optional(140, "sort_order_id", "int"),
        *([optional(142, "first_row_id", "long")] if version > 2 else []),
        *([optional(143, "referenced_data_file", "string")] if version > 1 else []),
        *([optional(144, "content_offset", "long")] if version > 2 else []),
        *([optional(145, "content_size_in_bytes", "long")] if version > 2 else []),
    ]
    numbers = [optional(3, "sequence_number", "long"), optional(4, "file_sequence_number", "long")]
    fields: list[JsonValue] = [
        field(0, "status", "int"),
        field(1, "snapshot_id", "long") if version == 1 else optional(1, "snapshot_id", "long"),
        *(numbers if version > 1 else []),
        field(2, "data_file", {"type": "record", "name": "r2", "fields": file}),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": fields}


def entry(number: int = 0, status: int = 1, /, **changes: object) -> dict[str, object]:
    """An entry as fastavro takes it: one of a data file without statistics, with these changes."""
    top = {name: changes.pop(name, None) for name in ("snapshot_id", "sequence_number", "file_sequence_number")}
    file: dict[str, object] = {
        "content": 0,
        "file_path": f"s3://bucket/t/data/{number:05}.parquet",
        "file_format": "PARQUET",
        "partition": {},
        "record_count": 10,
        "file_size_in_bytes": 1_000,
        "block_size_in_bytes": 64,
    }
    for name in (
        "column_sizes",
        "value_counts",
        "null_value_counts",
        "nan_value_counts",
        "lower_bounds",
        "upper_bounds",
    ):
        given = changes.pop(name, None)
        file[name] = (
            [{"key": key, "value": value} for key, value in given.items()] if isinstance(given, Mapping) else None
        )
    return {"status": status, **top, "data_file": {**file, **changes}}


def entry_file(
    entries: Iterable[Mapping[str, object]],
    schema: JsonObject | None = None,
    *,
    codec: str = "deflate",
    block: int = 64_000,
) -> bytes:
    """A manifest with these entries."""
    out = BytesIO()
    fastavro.writer(out, schema or entry_schema(), entries, codec=codec, sync_interval=block)
    return out.getvalue()


def listed(
    body: bytes, content: int = DATA, *, first_row_id: int | None = None, sequence_number: int = 7
) -> ManifestFile:
    """The entry of a manifest list for a manifest."""
    counts = (1_000, 0, 0, 10_000, 0, 0)
    return ManifestFile(
        "s3://bucket/t/metadata/m.avro",
        len(body),
        0,
        content,
        sequence_number,
        1,
        99,
        *counts,
        first_row_id=first_row_id,
    )


UNPARTITIONED: PartitionSpec = {"spec-id": 0, "fields": []}
EVERY: Final = EntrySelection(UNPARTITIONED, [], None)
"""Selects all live entries of an unpartitioned manifest, with all statistics."""


def identity_spec(*names: str) -> PartitionSpec:
    """A spec with a field of each of these names, which has the value of a column."""
    return {
        "spec-id": 0,
        "fields": [
            {"source-id": number, "field-id": 1_000 + number, "name": name, "transform": "identity"}
            for number, name in enumerate(names)
        ],
    }


def ranges_of(body: bytes) -> ReadRange:
    """A function that reads ranges of a file with these bytes."""

    async def read_range(start: int, length: int) -> bytes:
        return body[start : start + length]

    return read_range


async def read_files(
    body: bytes, selection: EntrySelection = EVERY, manifest: ManifestFile | None = None
) -> list[ContentFile]:
    """The files of the entries of a manifest that are selected. `manifest` is its entry in the manifest list."""
    found: list[ContentFile] = []
    async for files in read_entries(ranges_of(body), manifest or listed(body), selection):
        found += files
    return found
