"""Makes what clients send: bodies of requests, and the keys that make them idempotent."""

import uuid
from collections.abc import Mapping

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.runtime import Runtime


def schema(*columns: str) -> JsonObject:
    """Optional long columns."""
    fields: list[JsonValue] = [
        {"id": place, "name": name, "type": "long", "required": False} for place, name in enumerate(columns, 1)
    ]
    return {"type": "struct", "fields": fields}


def set_property(name: str, value: str) -> JsonObject:
    """A commit that sets one property."""
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: value}}]}


def creation_updates() -> list[JsonValue]:
    """The updates of a commit that creates a table with the column `x`, without partitions and order."""
    return [
        {"action": "add-schema", "schema": schema("x")},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]


def transaction(commit: JsonObject, *names: str) -> JsonObject:
    """A CommitTransactionRequest that makes the same commit to tables of the namespace `db`."""
    changes: list[JsonValue] = [{"identifier": {"namespace": ["db"], "name": name}, **commit} for name in names]
    return {"table-changes": changes}


def renaming(source: str, destination: str) -> JsonObject:
    """A RenameTableRequest for two names in the namespace `db`."""
    return {
        "source": {"namespace": ["db"], "name": source},
        "destination": {"namespace": ["db"], "name": destination},
    }


def append_snapshot(number: int, timestamp_ms: int, manifest_list: str) -> JsonObject:
    """A commit that adds a snapshot with this manifest list, and makes it the newest of main."""
    snapshot: JsonObject = {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": timestamp_ms,
        "manifest-list": manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    main: JsonObject = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": number, "type": "branch"}
    return {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": snapshot}, main]}


def append(location: str, snapshot_id: int, parent: int | None) -> JsonObject:
    """A commit that appends a snapshot to main of a table, whose current snapshot must be the parent. Its manifest list
    does not exist."""
    body = append_snapshot(snapshot_id, 1_700_000_000_000, f"{location}/metadata/snap-{snapshot_id}.avro")
    return {**body, "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent}]}


def view_request(name: str = "v", properties: Mapping[str, str] | None = None) -> JsonObject:
    """A CreateViewRequest."""
    return {
        "name": name,
        "schema": schema("x"),
        "view-version": {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {},
            "default-namespace": ["db"],
            "representations": [{"type": "sql", "sql": "select 1 as x", "dialect": "spark"}],
        },
        "properties": {**(properties or {})},
    }


def scan_report(table: str = "t") -> JsonObject:
    """What an engine reports of a scan."""
    return {
        "report-type": "scan-report",
        "table-name": table,
        "snapshot-id": 1,
        "filter": {"type": "and", "left": True, "right": {"type": "gt", "term": "x", "value": 5}},
        "schema-id": 0,
        "projected-field-ids": [1],
        "projected-field-names": ["x"],
        "metrics": {
            "total-planning-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 2},
            "result-data-files": {"unit": "count", "value": 3},
        },
        "metadata": {"engine-name": "spark"},
    }


def commit_report(table: str = "t") -> JsonObject:
    """What an engine reports of a commit."""
    return {
        "report-type": "commit-report",
        "table-name": table,
        "snapshot-id": 1,
        "sequence-number": 1,
        "operation": "append",
        "metrics": {"attempts": {"unit": "count", "value": 1}},
    }


def uuid7(now_ms: int, runtime: Runtime) -> str:
    """A fresh idempotency key of a time."""
    raw = bytearray(uuid.UUID(runtime.uuid()).bytes)
    raw[:6] = now_ms.to_bytes(6, "big")
    raw[6] = 0x70 | raw[6] & 0x0F
    return str(uuid.UUID(bytes=bytes(raw)))
