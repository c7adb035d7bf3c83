"""Small JSON values to build tables and commits from."""

import json
from typing import Any, TypeAlias

from arco_catalog.iceberg.table import apply_commit, new_table_metadata, parse_commit, parse_create_table

Json: TypeAlias = Any
"""A JSON value whose shape is what a test is about."""

Object: TypeAlias = dict[str, Json]

UUID = "0190c8de-6a3c-7e55-9cba-3a4b9a2f1c01"
OTHER_UUID = "0190c8de-6a3c-7e55-9cba-3a4b9a2f1c02"
LOCATION = "file:///w/t"
NOW = 1_700_000_000_000


def column(column_id: int, name: str, of: Json = "long", *, required: bool = False, **rest: Json) -> Object:
    return {"id": column_id, "name": name, "type": of, "required": required, **rest}


def struct(*fields: Object) -> Object:
    return {"type": "struct", "fields": list(fields)}


def schema(*fields: Object, identifiers: list[Json] | None = None) -> Object:
    found = struct(*fields)
    return found if identifiers is None else {**found, "identifier-field-ids": identifiers}


def array(element_id: int, element: Json = "long") -> Object:
    return {"type": "list", "element-id": element_id, "element": element, "element-required": True}


def mapping(key_id: int, value_id: int, key: Json = "string", value: Json = "long") -> Object:
    return {
        "type": "map",
        "key-id": key_id,
        "key": key,
        "value-id": value_id,
        "value": value,
        "value-required": False,
    }


def spec(*fields: tuple[int, str, str], first_id: int | None = None) -> Object:
    """Fields are (source, transform, name); ids count from `first_id`, or are left out."""
    made: list[Object] = [{"source-id": source, "transform": how, "name": name} for source, how, name in fields]
    if first_id is not None:
        for position, field in enumerate(made):
            field["field-id"] = first_id + position
    return {"fields": made}


def order(*fields: tuple[int, str]) -> Object:
    """Fields are (source, transform)."""
    return {
        "fields": [
            {"source-id": source, "transform": transform, "direction": "asc", "null-order": "nulls-first"}
            for source, transform in fields
        ]
    }


TWO_COLUMNS = schema(column(1, "id", required=True), column(2, "at", "timestamptz"))


def create_request(**fields: Json) -> Object:
    """A create request for two columns, with fields replaced (`partition_spec` for `partition-spec`)."""
    return {"name": "t", "schema": TWO_COLUMNS} | {name.replace("_", "-"): value for name, value in fields.items()}


def new_table(version: int = 2, *, now_ms: int = NOW, **fields: Json) -> Object:
    properties = {"format-version": str(version), **fields.pop("properties", {})}
    request = parse_create_table(create_request(**fields, properties=properties))
    return new_table_metadata(request, location=LOCATION, table_uuid=UUID, now_ms=now_ms)


def commit_body(*updates: Object, requirements: list[Object] | None = None) -> Object:
    return {"requirements": requirements or [], "updates": list(updates)}


def try_commit(
    base: Object | None,
    *updates: Object,
    requirements: list[Object] | None = None,
    now_ms: int = NOW,
    base_location: str | None = "file:///w/t/metadata/00000-a.metadata.json",
) -> Object | None:
    parsed = parse_commit(commit_body(*updates, requirements=requirements))
    return apply_commit(base, parsed, now_ms=now_ms, base_location=base_location, name="ns.t")


def commit(
    base: Object | None,
    *updates: Object,
    requirements: list[Object] | None = None,
    now_ms: int = NOW,
    base_location: str | None = "file:///w/t/metadata/00000-a.metadata.json",
) -> Object:
    """The next metadata, where the updates have an effect."""
    result = try_commit(base, *updates, requirements=requirements, now_ms=now_ms, base_location=base_location)
    assert result is not None, "the commit had no effect"
    return result


def snapshot(snapshot_id: int, sequence: int | None = None, **fields: Json) -> Object:
    """A snapshot; its sequence number is its id unless given, its time a second after the last one's."""
    made: Object = {
        "snapshot-id": snapshot_id,
        "sequence-number": snapshot_id if sequence is None else sequence,
        "timestamp-ms": NOW + 1000 * (snapshot_id % 10),
        "manifest-list": f"{LOCATION}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return made | {name.replace("_", "-"): value for name, value in fields.items()}


def add_snapshot(snapshot_id: int, sequence: int | None = None, **fields: Json) -> Object:
    return {"action": "add-snapshot", "snapshot": snapshot(snapshot_id, sequence, **fields)}


def set_ref(name: str, snapshot_id: int, kind: str = "branch", **retention: Json) -> Object:
    ref = {key.replace("_", "-"): value for key, value in retention.items()}
    return {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": snapshot_id, **ref}


def append(snapshot_id: int, sequence: int | None = None, **fields: Json) -> list[Object]:
    """What an engine sends for an append to main."""
    return [add_snapshot(snapshot_id, sequence, **fields), set_ref("main", snapshot_id)]


def table_with_snapshots(*snapshot_ids: int, version: int = 2) -> Object:
    """Each snapshot was appended to main by a commit of its own."""
    table = new_table(version)
    parent: dict[str, Json] = {}
    for snapshot_id in snapshot_ids:
        rows: dict[str, Json] = {}
        if version >= 3:
            rows = {"first_row_id": table["next-row-id"], "added_rows": 10}
        sequence = 0 if version == 1 else snapshot_id
        table = commit(table, *append(snapshot_id, sequence, **parent, **rows), now_ms=NOW + 1000 * snapshot_id)
        parent = {"parent_snapshot_id": snapshot_id}
    return table


def ids(table: Object, list_name: str, id_name: str) -> list[Json]:
    return [entry[id_name] for entry in table[list_name]]


def history(table: Object) -> list[Json]:
    """The snapshots of the snapshot log, in order."""
    return ids(table, "snapshot-log", "snapshot-id")


def deep_copy(value: Object) -> Object:
    copied: Object = json.loads(json.dumps(value))
    return copied
