"""A catalog of many tables in a folder, made in one stroke: what creates would leave, without their calls."""

from collections.abc import Sequence
from pathlib import Path

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.table import new_table_metadata, parse_create_table
from arco_catalog.state.locations import Location
from arco_catalog.state.paths import Paths
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.state.spilling import Limits
from tests.support.registry_builder import Objects, RegistryBuilder
from tools.support.arco_server import WAREHOUSE

NAMESPACE = "db"
COLUMNS: Sequence[JsonValue] = [
    {"id": place, "name": f"a_column_with_a_name_{place}", "type": "decimal(38, 10)", "required": False}
    for place in range(1, 65)
]
"""So many that a metadata file takes more than 6 KB: 10,000 of them are more than a server keeps."""


def make_tables(root: Path, names: Sequence[str]) -> None:
    """Writes a catalog whose namespace `db` holds these tables: one registry commit made them all."""
    for key, body in _objects(Location.parse(f"file://{root}"), names):
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)


def _objects(base: Location, names: Sequence[str]) -> Objects:
    runtime = SystemRuntime()
    builder = RegistryBuilder(base, Paths(WAREHOUSE), runtime, Limits())
    files = base.below(builder.paths.warehouse, "metadata")  # one folder for all: two a table would be most of the work
    alike = new_table_metadata(
        parse_create_table({"name": "t", "schema": {"type": "struct", "fields": [*COLUMNS]}}),
        location=base.uri,
        table_uuid=builder.uuid,
        now_ms=runtime.now_ms(),
    )
    yield from builder.namespace(NAMESPACE)
    for name in names:
        entity, home = builder.table(NAMESPACE, name)
        document: JsonObject = {**alike, "location": home.uri}
        yield from builder.state_of(entity, files, document)
    yield from builder.one_commit()
