"""What clients send: bodies of requests, and the keys that make them idempotent."""

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


def uuid7(now_ms: int, runtime: Runtime) -> str:
    """A fresh idempotency key of a time."""
    raw = bytearray(uuid.UUID(runtime.uuid()).bytes)
    raw[:6] = now_ms.to_bytes(6, "big")
    raw[6] = 0x70 | raw[6] & 0x0F
    return str(uuid.UUID(bytes=bytes(raw)))
