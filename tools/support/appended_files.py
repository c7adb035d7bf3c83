"""Writes the manifests and manifest lists of appends as engines do, and reads them as a reader of the table does. It
shares no code with the catalog."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import fastavro

from arco_catalog.iceberg.json import JsonObject, dumps
from storage_backends import ABSENT, Found, ObjectStore
from tools.support.manifests import avro

Entry = dict[str, Any]
"""An entry of a manifest list, or of a manifest, as Avro has it."""

REBASE = {"arco.append": "rebase"}
ALLOWED = {"arco.commit.appends": "rebase"}


def _field(number: int, name: str, type_: object, optional: bool = False) -> JsonObject:
    made: Any = {"name": name, "type": ["null", type_] if optional else type_, "field-id": number}
    return {**made, "default": None} if optional else made


def list_schema(version: int) -> JsonObject:
    """The schema of a manifest list's entries."""
    summary = {
        "type": "record",
        "name": "r508",
        "fields": [
            _field(509, "contains_null", "boolean"),
            _field(518, "contains_nan", "boolean", optional=True),
            _field(510, "lower_bound", "bytes", optional=True),
            _field(511, "upper_bound", "bytes", optional=True),
        ],
    }
    fields: list[Any] = [
        _field(500, "manifest_path", "string"),
        _field(501, "manifest_length", "long"),
        _field(502, "partition_spec_id", "int"),
        _field(517, "content", "int"),
        _field(515, "sequence_number", "long"),
        _field(516, "min_sequence_number", "long"),
        _field(503, "added_snapshot_id", "long"),
        *(_field(504 + n, f"{what}_files_count", "int") for n, what in enumerate(("added", "existing", "deleted"))),
        *(_field(512 + n, f"{what}_rows_count", "long") for n, what in enumerate(("added", "existing", "deleted"))),
        _field(507, "partitions", {"type": "array", "items": summary, "element-id": 508}, optional=True),
        _field(519, "key_metadata", "bytes", optional=True),
    ]
    if version >= 3:
        fields.append(_field(520, "first_row_id", "long", optional=True))
    return {"type": "record", "name": "manifest_file", "fields": fields}


def entry_schema(version: int) -> JsonObject:
    """The schema of a manifest's entries, of an unpartitioned table."""
    fields: list[Any] = [
        _field(134, "content", "int"),
        _field(100, "file_path", "string"),
        _field(101, "file_format", "string"),
        _field(102, "partition", {"type": "record", "name": "r102", "fields": []}),
        _field(103, "record_count", "long"),
        _field(104, "file_size_in_bytes", "long"),
    ]
    if version >= 3:
        fields.append(_field(142, "first_row_id", "long", optional=True))
    data_file: Any = {"type": "record", "name": "r2", "fields": fields}
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            _field(0, "status", "int"),
            _field(1, "snapshot_id", "long", optional=True),
            _field(3, "sequence_number", "long", optional=True),
            _field(4, "file_sequence_number", "long", optional=True),
            _field(2, "data_file", data_file),
        ],
    }


def new_file(path: str, rows: int = 1, **more: object) -> Entry:
    """A manifest's entry of a new data file. `more` replaces fields of the entry."""
    file = {
        "content": 0,
        "file_path": path,
        "file_format": "PARQUET",
        "partition": {},
        "record_count": rows,
        "file_size_in_bytes": 10 * rows,
    }
    entry = {"status": 1, "snapshot_id": None, "sequence_number": None, "file_sequence_number": None, "data_file": file}
    return {**entry, **more}


def with_metadata(schema: JsonObject, records: Sequence[Entry], metadata: Mapping[str, str]) -> bytes:
    """An Avro file with metadata in its header."""
    out = BytesIO()
    fastavro.writer(out, schema, records, codec="deflate", metadata=dict(metadata))
    return out.getvalue()


def manifest_metadata(version: int = 2, **more: str) -> dict[str, str]:
    """The metadata in the header of a manifest. `more` replaces it, with `_` for `-` in the names."""
    schema = dumps({"type": "struct", "schema-id": 0, "fields": []}).decode()
    found = {"schema": schema, "partition-spec": "[]", "partition-spec-id": "0", "content": "data"}
    return {**found, "format-version": str(version), **{name.replace("_", "-"): value for name, value in more.items()}}


@dataclass
class Lake:
    """The files of a table in memory:// locations of a store."""

    store: ObjectStore
    url: str = "memory:///"
    reads: int = field(default=0)

    async def write(self, location: str, body: bytes) -> None:
        """Writes a file."""
        await self.store.put(location.removeprefix(self.url), body, ABSENT)

    async def read(self, location: str) -> bytes:
        """The bytes of a file, which must exist."""
        found = await self.store.get(location.removeprefix(self.url))
        assert isinstance(found, Found), location
        return found.body

    async def records(self, location: str) -> list[Entry]:
        """The records of an Avro file."""
        return [dict(each) for each in fastavro.reader(BytesIO(await self.read(location))) if isinstance(each, dict)]

    async def manifests(self, snapshot: Any) -> list[Entry]:
        """The manifest list of a snapshot, which is none without one."""
        return [] if snapshot is None else await self.records(str(snapshot["manifest-list"]))

    async def append(
        self,
        document: Any,
        snapshot_id: int,
        files: Sequence[Entry] = (),
        *,
        branch: str = "main",
        summary: Mapping[str, str] | None = None,
        more: Mapping[str, object] | None = None,
        listed: Mapping[str, object] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Any:
        """The commit of an append of one manifest, built on a loaded document as an engine builds it, with its files
        written. `more` replaces fields of the snapshot, `listed` those of the new entry of the list, `metadata` that in
        the manifest's header."""
        version = max(2, document["format-version"])
        parent = _head(document, branch)
        files = files or [new_file(f"{document['location']}/data/{snapshot_id}.parquet")]
        folder = f"{document['location']}/metadata"
        body = with_metadata(entry_schema(version), files, {**manifest_metadata(version), **(metadata or {})})
        await self.write(f"{folder}/{snapshot_id}-m0.avro", body)
        sequence, rows = (
            document.get("last-sequence-number", 0) + 1,
            sum(each["data_file"]["record_count"] for each in files),
        )
        first_row = document.get("next-row-id", 0)
        entry: Entry = {
            "manifest_path": f"{folder}/{snapshot_id}-m0.avro",
            "manifest_length": len(body),
            "partition_spec_id": 0,
            "content": 0,
            "sequence_number": sequence,
            "min_sequence_number": sequence,
            "added_snapshot_id": snapshot_id,
            "added_files_count": len(files),
            "existing_files_count": 0,
            "deleted_files_count": 0,
            "added_rows_count": rows,
            "existing_rows_count": 0,
            "deleted_rows_count": 0,
            "first_row_id": first_row,
            **(listed or {}),
        }
        location = f"{folder}/snap-{snapshot_id}-0.avro"
        await self.write(location, avro(list_schema(version), [entry, *await self.manifests(parent)]))
        snapshot: Any = {
            "snapshot-id": snapshot_id,
            "sequence-number": sequence,
            "timestamp-ms": document["last-updated-ms"],
            "manifest-list": location,
            "schema-id": document["current-schema-id"],
            "summary": {
                "operation": "append",
                "added-data-files": str(len(files)),
                "added-records": str(rows),
                **_totals(parent, len(files), rows),
                **(REBASE if summary is None else summary),
            },
        }
        if parent is not None:
            snapshot["parent-snapshot-id"] = parent["snapshot-id"]
        if version >= 3:
            snapshot |= {"first-row-id": first_row, "added-rows": rows}
        return commit_of(document, {**snapshot, **(more or {})}, branch)

    async def compact(self, document: Any, snapshot_id: int) -> Any:
        """The commit that puts the files of main into one manifest, for a table of format version 2."""
        parent, folder = _head(document, "main"), f"{document['location']}/metadata"
        files: list[Entry] = []
        for manifest in await self.manifests(parent):
            number = manifest["sequence_number"]
            for each in await self.records(manifest["manifest_path"]):
                own = each["sequence_number"] or number
                kept = {"status": 0, "snapshot_id": each["snapshot_id"] or manifest["added_snapshot_id"]}
                files.append({**each, **kept, "sequence_number": own, "file_sequence_number": own})
        body = with_metadata(entry_schema(2), files, manifest_metadata(2))
        await self.write(f"{folder}/{snapshot_id}-m0.avro", body)
        sequence = document["last-sequence-number"] + 1
        entry: Entry = {
            "manifest_path": f"{folder}/{snapshot_id}-m0.avro",
            "manifest_length": len(body),
            "partition_spec_id": 0,
            "content": 0,
            "sequence_number": sequence,
            "min_sequence_number": min(each["sequence_number"] for each in files),
            "added_snapshot_id": snapshot_id,
            "added_files_count": 0,
            "existing_files_count": len(files),
            "deleted_files_count": 0,
            "added_rows_count": 0,
            "existing_rows_count": sum(each["data_file"]["record_count"] for each in files),
            "deleted_rows_count": 0,
        }
        location = f"{folder}/snap-{snapshot_id}-0.avro"
        await self.write(location, avro(list_schema(2), [entry]))
        snapshot = {
            "snapshot-id": snapshot_id,
            "parent-snapshot-id": parent["snapshot-id"],
            "sequence-number": sequence,
            "timestamp-ms": document["last-updated-ms"],
            "manifest-list": location,
            "schema-id": document["current-schema-id"],
            "summary": {**parent["summary"], "operation": "replace"},
        }
        return commit_of(document, snapshot)

    async def rows(self, document: Any, branch: str = "main") -> Counter[str]:
        """The data files of a branch, each counted as often as the branch has it, and its rows in the name."""
        found: Counter[str] = Counter()
        for manifest in await self.manifests(_head(document, branch)):
            for each in await self.records(manifest["manifest_path"]):
                if each["status"] != 2:
                    found[each["data_file"]["file_path"].rpartition("/")[2]] += 1
        return found


def commit_of(document: Any, snapshot: Any, branch: str = "main") -> Any:
    """The commit of a new snapshot of a branch, with the requirements that engines make."""
    parent = _head(document, branch)
    requirements = [
        {"type": "assert-ref-snapshot-id", "ref": branch, "snapshot-id": parent and parent["snapshot-id"]},
        {"type": "assert-table-uuid", "uuid": document["table-uuid"]},
    ]
    ref = {"ref-name": branch, "type": "branch", "snapshot-id": snapshot["snapshot-id"]}
    updates = [{"action": "add-snapshot", "snapshot": snapshot}, {"action": "set-snapshot-ref", **ref}]
    return {"requirements": requirements, "updates": updates}


def _head(document: Any, branch: str) -> Any:
    ref = document.get("refs", {}).get(branch)
    return ref and next(each for each in document["snapshots"] if each["snapshot-id"] == ref["snapshot-id"])


def _totals(parent: Any, files: int, rows: int) -> dict[str, str]:
    before = {} if parent is None else parent["summary"]
    added = {"total-data-files": files, "total-records": rows, "total-files-size": 10 * rows, "total-delete-files": 0}
    return {name: str(int(before.get(name, 0)) + number) for name, number in added.items()}
