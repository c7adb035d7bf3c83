"""Tables with manifests of any number of data and delete files, which exist in name only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.manifests import FieldSummary, ManifestFile
from arco_catalog.state.manifest_lists import encode_manifest_list
from storage_backends import ANY, ObjectStore
from tools.support import entry_files


def entry(path: str, *, status: int = 1, x: tuple[int, int] | None = None, **fields: Any) -> dict[str, Any]:
    """An entry of a file of ten rows; its column 1, a long, has values from `x[0]` to `x[1]`. It states that the
    snapshot `added_by` has added it, that of its manifest if there is none."""
    inherited = {} if status == 1 else {"sequence_number": 1, "file_sequence_number": 1}
    statistics: dict[str, Any] = {}
    if x is not None:
        lower, upper = ({1: each.to_bytes(8, "little", signed=True)} for each in x)
        statistics = {
            "value_counts": {1: 10},
            "null_value_counts": {1: 0},
            "lower_bounds": lower,
            "upper_bounds": upper,
        }
    added_by = {"added_by": fields.pop("added_by")} if "added_by" in fields else {}
    described = {"file_path": path, "file_size_in_bytes": 100, **inherited, **statistics, **fields}
    return {**entry_files.entry(0, status, **described), **added_by}


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
        entries = [{**each, "snapshot_id": each.get("added_by", snapshot_id)} for each in manifest.entries]
        fields = (manifest.partition or {}).items()
        partition = [entry_files.optional(1000 + each, name, of) for each, (name, of) in enumerate(fields)]
        body = entry_files.entry_file(entries, entry_files.entry_schema(partition))
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
