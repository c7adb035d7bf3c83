"""Makes manifests and manifest lists as engines write them."""

from collections.abc import Sequence
from io import BytesIO

import fastavro

from arco_catalog.iceberg.json import JsonObject

LIST_SCHEMA: JsonObject = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "partition_spec_id", "type": "int", "field-id": 502},
        {"name": "content", "type": "int", "field-id": 517},
    ],
}
ENTRY_SCHEMA: JsonObject = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        {"name": "snapshot_id", "type": ["null", "long"], "default": None, "field-id": 1},
        {
            "name": "data_file",
            "field-id": 2,
            "type": {
                "type": "record",
                "name": "r2",
                "fields": [
                    {"name": "content", "type": "int", "field-id": 134},
                    {"name": "file_path", "type": "string", "field-id": 100},
                    {"name": "partition", "type": {"type": "record", "name": "r102", "fields": []}, "field-id": 102},
                    {"name": "file_size_in_bytes", "type": "long", "field-id": 104},
                    {
                        "name": "lower_bounds",
                        "type": ["null", {"type": "map", "values": "bytes"}],
                        "default": None,
                        "field-id": 125,
                    },
                ],
            },
        },
    ],
}


def manifest(paths: Sequence[str], *, codec: str = "deflate", block: int = 16_000) -> bytes:
    """A manifest that names these files, each of ten bytes."""
    records = [
        {
            "status": 1,
            "snapshot_id": 7,
            "data_file": {
                "content": 0,
                "file_path": path,
                "partition": {},
                "file_size_in_bytes": 10,
                "lower_bounds": {"1": b"\x00" * 8},
            },
        }
        for path in paths
    ]
    return avro(ENTRY_SCHEMA, records, codec=codec, block=block)


def manifest_list(paths: Sequence[str]) -> bytes:
    """A manifest list that names these manifests."""
    return avro(
        LIST_SCHEMA,
        [{"manifest_path": path, "manifest_length": 99, "partition_spec_id": 0, "content": 0} for path in paths],
    )


def avro(schema: JsonObject, records: Sequence[object], *, codec: str = "deflate", block: int = 16_000) -> bytes:
    """An Avro file."""
    out = BytesIO()
    fastavro.writer(out, schema, records, codec=codec, sync_interval=block)
    return out.getvalue()
