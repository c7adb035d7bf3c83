"""Makes table metadata with any number of snapshots, as Spark would have written them."""

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.table import new_table_metadata, parse_create_table

NOW = 1_700_000_000_000
LOCATION = "s3://bucket/warehouse/table"


def snapshot(snapshot_id: int, location: str = LOCATION) -> JsonObject:
    """One snapshot as Spark writes it, in size too, of a table at a location."""
    return {
        "snapshot-id": 4_000_000_000_000_000_000 + snapshot_id,
        "sequence-number": snapshot_id,
        "timestamp-ms": NOW + snapshot_id,
        "manifest-list": f"{location}/metadata/snap-{snapshot_id}-1-0190c8de-6a3c-7e55-9cba.avro",
        "schema-id": 0,
        "summary": {
            "operation": "append",
            "spark.app.id": "local-1700000000000",
            "added-data-files": "1",
            "added-records": "1000",
            "added-files-size": "104857",
            "total-records": str(1000 * snapshot_id),
            "total-data-files": str(snapshot_id),
            "engine-name": "spark",
            "iceberg-version": "Apache Iceberg 1.11.0",
        },
    }


def table(snapshots: int, location: str = LOCATION) -> JsonObject:
    """A table at a location with that many snapshots, each of which was main once."""
    columns: list[JsonValue] = [
        {"id": column, "name": f"c{column}", "type": "long", "required": False} for column in range(1, 21)
    ]
    request = parse_create_table({"name": "t", "schema": {"type": "struct", "fields": columns}})
    uuid = "0190c8de-6a3c-7e55-9cba-3a4b9a2f1c01"
    document = new_table_metadata(request, location=location, table_uuid=uuid, now_ms=NOW)
    made = [snapshot(snapshot_id, location) for snapshot_id in range(1, snapshots + 1)]
    newest = made[-1]["snapshot-id"]
    return document | {
        "snapshots": list(made),
        "snapshot-log": [{"timestamp-ms": one["timestamp-ms"], "snapshot-id": one["snapshot-id"]} for one in made],
        "refs": {"main": {"type": "branch", "snapshot-id": newest}},
        "current-snapshot-id": newest,
        "last-sequence-number": snapshots,
        "last-updated-ms": NOW + snapshots,
    }
