"""What clients send to make a view."""

from collections.abc import Mapping

from arco_catalog.iceberg.json import JsonObject
from tests.support.catalog_fixture import schema


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
