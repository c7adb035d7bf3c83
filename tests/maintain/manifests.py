"""Snapshots of data files and delete files, as engines write them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.load import load_table
from reconciler.maintain.figures import Figures
from tests.maintain.lake import Lake
from tests.support.table_files import write
from tools.support.catalog_fixture import NS
from tools.support.manifests import avro

DATA, POSITION, EQUALITY = range(3)
PATH_ID = 2147483546
"""The id of the column `file_path` of position deletes."""
BOUNDS: JsonObject = {
    "type": "array",
    "logicalType": "map",
    "items": {
        "type": "record",
        "name": "k126_v127",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
    },
}
LIST: JsonObject = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "type": "string"},
        {"name": "manifest_length", "type": "long"},
        {"name": "partition_spec_id", "type": "int"},
        {"name": "content", "type": "int"},
        {"name": "sequence_number", "type": "long"},
    ],
}
ENTRY: JsonObject = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        {"name": "status", "type": "int"},
        {"name": "sequence_number", "type": ["null", "long"], "default": None},
        {
            "name": "data_file",
            "type": {
                "type": "record",
                "name": "r2",
                "fields": [
                    {"name": "content", "type": "int"},
                    {"name": "file_path", "type": "string"},
                    {"name": "file_format", "type": "string"},
                    {
                        "name": "partition",
                        "type": {
                            "type": "record",
                            "name": "r102",
                            "fields": [{"name": "part", "type": ["null", "int"], "default": None}],
                        },
                    },
                    {"name": "record_count", "type": "long"},
                    {"name": "file_size_in_bytes", "type": "long"},
                    {"name": "referenced_data_file", "type": ["null", "string"], "default": None},
                    {"name": "lower_bounds", "type": ["null", BOUNDS], "default": None},
                    {"name": "upper_bounds", "type": ["null", {**BOUNDS, "items": "k126_v127"}], "default": None},
                ],
            },
        },
    ],
}


@dataclass(frozen=True)
class File:
    """A file that a manifest lists: `of` is the data file that a delete file says it is of, `within` the first and last
    path that it has deletes of."""

    path: str
    content: int = DATA
    size: int = 500 << 20
    records: int = 1_000
    sequence: int | None = 1
    part: int | None = None
    of: str | None = None
    within: tuple[str, str] | None = None
    format: str = "PARQUET"

    def entry(self) -> Mapping[str, object]:
        """As a manifest has it."""
        lower, upper = self.within or (None, None)
        return {
            "status": 1,
            "sequence_number": self.sequence,
            "data_file": {
                "content": self.content,
                "file_path": self.path,
                "file_format": self.format,
                "partition": {"part": self.part},
                "record_count": self.records,
                "file_size_in_bytes": self.size,
                "referenced_data_file": self.of,
                "lower_bounds": lower and [{"key": PATH_ID, "value": lower.encode()}],
                "upper_bounds": upper and [{"key": PATH_ID, "value": upper.encode()}],
            },
        }


async def snapshot_of(lake: Lake, name: str, files: Sequence[File], *, spec: int = 0, sequence: int = 1) -> Figures:
    """Commits a snapshot of these files alone, one manifest of data and one of deletes. Returns the figures."""
    state = await load_table(lake.fixture.session(), NS, name)
    document = loads(state.metadata)
    assert isinstance(document, dict)
    folder, listed = f"{document['location']}/metadata", []
    for content in (DATA, POSITION):
        entries = [file.entry() for file in files if bool(file.content) is bool(content)]
        body = avro(ENTRY, entries)
        path = await write(lake.store, f"{folder}/{lake.runtime.uuid()}.avro", body)
        listed.append({"manifest_path": path, "manifest_length": len(body), "content": content})
    more = {"partition_spec_id": spec, "sequence_number": sequence}
    where = await write(
        lake.store, f"{folder}/{lake.runtime.uuid()}.avro", avro(LIST, [{**each, **more} for each in listed])
    )
    number = int(str(document["last-sequence-number"])) + 1
    snapshot: JsonObject = {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": lake.runtime.now_ms(),
        "manifest-list": where,
        "summary": {"operation": "overwrite"},
        "schema-id": 0,
    }
    added: JsonObject = {"action": "add-snapshot", "snapshot": snapshot}
    current: JsonObject = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": number, "type": "branch"}
    await lake.fixture.commit({"requirements": [], "updates": [added, current]}, name)
    return await lake.figures(name)
