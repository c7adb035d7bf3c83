"""Tables with manifests of any number of data and delete files, which exist in name only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.manifests import FieldSummary, ManifestFile
from arco_catalog.state.manifest_lists import encode_manifest_list
from storage_backends import ANY, ObjectStore
from tools.support.manifests import avro

LONG = "long"


def _optional(number: int, name: str, type_: Any) -> JsonObject:
    return {"name": name, "type": ["null", type_], "default": None, "field-id": number}


def _map(number: int, name: str, key: int, value: int, type_: str) -> JsonObject:
    pair: JsonObject = {
        "type": "record",
        "name": f"k{key}_v{value}",
        "fields": [
            {"name": "key", "type": "int", "field-id": key},
            {"name": "value", "type": type_, "field-id": value},
        ],
    }
    return _optional(number, name, {"type": "array", "items": pair, "logicalType": "map"})


def entry_schema(partition: Mapping[str, str] | None = None) -> JsonObject:
    """The Avro schema of entries of a partition with these fields."""
    fields: list[JsonValue] = [
        {"name": name, "type": ["null", type_], "default": None, "field-id": 1000 + place}
        for place, (name, type_) in enumerate((partition or {}).items())
    ]
    data_file: JsonObject = {
        "type": "record",
        "name": "r2",
        "fields": [
            {"name": "content", "type": "int", "field-id": 134},
            {"name": "file_path", "type": "string", "field-id": 100},
            {"name": "file_format", "type": "string", "field-id": 101},
            {"name": "partition", "type": {"type": "record", "name": "r102", "fields": fields}, "field-id": 102},
            {"name": "record_count", "type": "long", "field-id": 103},
            {"name": "file_size_in_bytes", "type": "long", "field-id": 104},
            _map(108, "column_sizes", 117, 118, "long"),
            _map(109, "value_counts", 119, 120, "long"),
            _map(110, "null_value_counts", 121, 122, "long"),
            _map(125, "lower_bounds", 126, 127, "bytes"),
            _map(128, "upper_bounds", 129, 130, "bytes"),
            _optional(135, "equality_ids", {"type": "array", "items": "int", "element-id": 136}),
            _optional(143, "referenced_data_file", "string"),
            _optional(144, "content_offset", "long"),
            _optional(145, "content_size_in_bytes", "long"),
        ],
    }
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            {"name": "status", "type": "int", "field-id": 0},
            _optional(1, "snapshot_id", "long"),
            _optional(3, "sequence_number", "long"),
            _optional(4, "file_sequence_number", "long"),
            {"name": "data_file", "type": data_file, "field-id": 2},
        ],
    }


def entry(path: str, *, status: int = 1, x: tuple[int, int] | None = None, **fields: Any) -> dict[str, Any]:
    """An entry of a file of ten rows; its column 1, a long, has values from `x[0]` to `x[1]`."""
    ends = [
        None if x is None else [{"key": 1, "value": each.to_bytes(8, "little", signed=True)}] for each in x or (0, 0)
    ]
    counts = None if x is None else [{"key": 1, "value": 10}]
    data_file = {
        "content": 0,
        "file_path": path,
        "file_format": "PARQUET",
        "partition": {},
        "record_count": 10,
        "file_size_in_bytes": 100,
        "value_counts": counts,
        "null_value_counts": None if x is None else [{"key": 1, "value": 0}],
        "lower_bounds": ends[0],
        "upper_bounds": ends[1],
        **fields,
    }
    inherited = {} if status == 1 else {"sequence_number": 1, "file_sequence_number": 1}
    return {"status": status, **inherited, "data_file": data_file}


@dataclass(frozen=True)
class Manifest:
    """The entries of a manifest, of data files or delete files, and the summaries of its partitions."""

    entries: Sequence[dict[str, Any]]
    content: int = 0
    spec_id: int = 0
    partition: Mapping[str, str] | None = None
    summaries: Sequence[FieldSummary] | None = None
    sequence_number: int | None = None
    claimed: int | None = None
    """How many files the manifest list claims, if that is not the truth."""


@dataclass
class ScannedTable:
    """Writes manifests and manifest lists of a table into a store."""

    store: ObjectStore
    location: str
    root: str = "memory:///"
    """The location of the store's root."""
    written: dict[int, list[ManifestFile]] = field(default_factory=dict)
    """The manifest lists, by the ids of their snapshots."""

    async def snapshot(
        self,
        snapshot_id: int,
        manifests: Iterable[Manifest],
        *,
        parent: int | None = None,
        operation: str = "append",
        kept: bool = True,
    ) -> JsonObject:
        """Writes a snapshot with these manifests, and with `kept` those of its parent. Returns the snapshot."""
        listed = [*self.written[parent]] if kept and parent is not None else []
        for number, each in enumerate(manifests):
            listed.append(await self._manifest(f"{snapshot_id}-m{number}", snapshot_id, each))
        self.written[snapshot_id] = listed
        place = f"{self.location}/metadata/snap-{snapshot_id}.avro"
        body = encode_manifest_list(listed, 2, (snapshot_id, parent, snapshot_id))
        await self.store.put(place.removeprefix(self.root), body, ANY)
        snapshot: JsonObject = {
            "snapshot-id": snapshot_id,
            "sequence-number": snapshot_id,
            "timestamp-ms": 1_764_000_000_000 + snapshot_id,
            "manifest-list": place,
            "summary": {"operation": operation},
            "schema-id": 0,
        }
        return snapshot if parent is None else {**snapshot, "parent-snapshot-id": parent}

    async def _manifest(self, name: str, snapshot_id: int, manifest: Manifest) -> ManifestFile:
        place = f"{self.location}/metadata/{name}.avro"
        sequence = snapshot_id if manifest.sequence_number is None else manifest.sequence_number
        entries = [{"snapshot_id": snapshot_id, **each} for each in manifest.entries]
        body = avro(entry_schema(manifest.partition), entries)
        await self.store.put(place.removeprefix(self.root), body, ANY)
        added, existing, deleted = (sum(each["status"] == status for each in entries) for status in (1, 0, 2))
        if manifest.claimed is not None:
            added = manifest.claimed
        return ManifestFile(
            place,
            len(body),
            manifest.spec_id,
            manifest.content,
            sequence,
            sequence,
            snapshot_id,
            added,
            existing,
            deleted,
            10 * added,
            10 * existing,
            10 * deleted,
            manifest.summaries,
        )


def commit_of(*snapshots: JsonObject) -> JsonObject:
    """The commit that adds snapshots; the last one becomes the current one."""
    last = snapshots[-1]["snapshot-id"]
    added: list[JsonValue] = [{"action": "add-snapshot", "snapshot": each} for each in snapshots]
    main: JsonObject = {"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": last, "type": "branch"}
    return {"requirements": [], "updates": [*added, main]}
