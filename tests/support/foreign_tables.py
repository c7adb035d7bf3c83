"""Tables of another catalog: PyIceberg's own, over local files, whose state is in its process's memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
from pyiceberg.catalog.memory import InMemoryCatalog

from arco_catalog.iceberg.json import JsonObject, JsonValue

ROWS = pa.table({"id": pa.array(range(20), pa.int64())})


@dataclass(frozen=True)
class ForeignTable:
    """A table as its catalog knows it."""

    name: str
    location: str
    metadata_location: str
    uuid: str

    @property
    def folder(self) -> Path:
        return Path(self.location.removeprefix("file://"))

    def files(self) -> list[str]:
        """All its files that are left."""
        return files(self.folder)

    def payload(
        self, config: Mapping[str, str] | None = None, *, entity: str | None = None, **parameters: JsonValue
    ) -> JsonObject:
        """What its catalog sends to have it purged."""
        return {
            "common_payload": {"operation_type": "SYNCHRONOUS_TABLE_PURGE", "realm_identifier": "theirs"},
            "operation_parameters": {
                "table_identity": {
                    "table_entity_id": entity or f"entity-of-{self.name}",
                    "catalog_name": "theirs",
                    "namespace_levels": ["db"],
                    "table_name": self.name,
                },
                "metadata_location": self.metadata_location,
                "metadata": {"location": self.location, "table-uuid": self.uuid, "format-version": 2},
                "config": dict(config or {}),
                **parameters,
            },
        }


def files(folder: Path) -> list[str]:
    """All files in a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def foreign_table(
    folder: Path, name: str = "t", properties: Mapping[str, str] | None = None, *, appends: int = 2
) -> ForeignTable:
    """A table with data, deletes and statistics files as PyIceberg writes them, in a folder of its catalog's."""
    with InMemoryCatalog(
        "theirs", warehouse=f"file://{folder}", **{"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}
    ) as catalog:
        catalog.create_namespace_if_not_exists("db")
        table = catalog.create_table(f"db.{name}", schema=ROWS.schema, properties=dict(properties or {}))
        for _ in range(appends):
            table.append(ROWS)
        if appends:
            table.delete("id < 5")
        return ForeignTable(name, table.location(), table.metadata_location, str(table.metadata.table_uuid))
