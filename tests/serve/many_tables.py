"""A catalog of many tables in a folder, made in one stroke: what creates would leave, without their calls."""

from collections.abc import Sequence
from pathlib import Path

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.iceberg.table import last_updated_ms, new_table_metadata, parse_create_table, table_uuid
from arco_catalog.state.access import encode_value
from arco_catalog.state.entries import NamespaceEntry, RelationEntry, holds
from arco_catalog.state.index import namespace_key, relation_key
from arco_catalog.state.locations import Location
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.registry import Head, Operation
from arco_catalog.state.runtime import SystemRuntime
from tests.serve.server import WAREHOUSE

NAMESPACE = "db"
COLUMNS: Sequence[JsonValue] = [
    {"id": place, "name": f"a_column_with_a_name_{place}", "type": "decimal(38, 10)", "required": False}
    for place in range(1, 65)
]
"""So many that a metadata file takes more than 6 KB: 10,000 of them are more than a server keeps."""

Edits = dict[str, JsonObject | None]


def make_tables(root: Path, names: Sequence[str]) -> None:
    """Writes a catalog whose namespace `db` holds these tables: one registry commit made them all."""
    _Maker(root).make(names)


class _Maker:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.base = Location.parse(f"file://{root}")
        self.paths = Paths(WAREHOUSE)
        self.runtime = SystemRuntime()
        self.files = self.base.below(self.paths.warehouse, "metadata")
        """One folder for all metadata files: two for each table would be most of the work."""
        self.document = new_table_metadata(
            parse_create_table({"name": "t", "schema": {"type": "struct", "fields": [*COLUMNS]}}),
            location=self.base.uri,
            table_uuid=self.runtime.uuid(),
            now_ms=self.runtime.now_ms(),
        )

    def make(self, names: Sequence[str]) -> None:
        edits = self.namespace()
        for name in names:
            edits |= self.table(name)
        commit = self.runtime.ulid()
        operation = Operation(self.runtime.ulid(), "create-table", {}, None)
        head = Head.empty().successor(commit=commit, at_ms=self.runtime.now_ms(), edits=edits, operations=[operation])
        self.keep(self.paths.registry_commit(commit), head.body)
        self.keep(self.paths.manifest, head.body)

    def namespace(self) -> Edits:
        location, value = self.base.below(self.paths.warehouse, NAMESPACE).uri, self.runtime.ulid()
        self.keep(self.paths.entity_value("namespace", value), encode_value({"location": location}))
        entry = NamespaceEntry.new(entity=self.runtime.ulid(), value=value, location=location)
        return {namespace_key((NAMESPACE,)): entry.json}

    def table(self, name: str) -> Edits:
        """Writes a table's metadata file and pointer, and returns its entries in the index."""
        entity = self.runtime.ulid()
        home = self.base.below(self.paths.warehouse, NAMESPACE, f"{name}-{entity}")
        document: JsonObject = {**self.document, "location": home.uri, "table-uuid": self.runtime.uuid()}
        file = self.files.below(f"00000-{entity}-1.metadata.json")
        self.keep("/".join(file.segments[len(self.base.segments) :]), dumps(document))
        pointer = Pointer.first(
            entity=entity,
            kind="table",
            move=entity,
            metadata=MetadataFile(file.uri, last_updated_ms(document)),
            facts={"table_uuid": table_uuid(document), "current_snapshot_id": None, "refs": {}},
        )
        self.keep(self.paths.pointer(entity), pointer.body)
        entry = RelationEntry.new(kind="table", entity=entity, uuid=table_uuid(document), locations=[home.normal])
        return {relation_key((NAMESPACE,), name): entry.json, **holds(entity, [home.normal], "live")}

    def keep(self, key: str, body: bytes) -> None:
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
