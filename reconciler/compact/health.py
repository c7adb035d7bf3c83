"""Counts the files in the manifests of a table's current snapshot, for the rows of `files_health`."""

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.avro import Unreadable
from reconciler.compact.values import long_of, object_of, objects_of, text_of, texts_of
from reconciler.compact.version import Version
from reconciler.live_files import SMALL, TARGET_BYTES, live_files, manifests_in
from reconciler.system.definition import Row


@dataclass(slots=True)
class Health:
    """The counts of the live files in a table's current snapshot. `target_bytes` is the table's target size of data
    files in bytes."""

    target_bytes: int
    manifests: int = 0
    data_files: int = 0
    small_files: int = 0
    delete_files: int = 0
    records: int = 0
    small_bytes: int = 0
    largest_bytes: int = 0
    partitions: dict[str, int] = field(default_factory=dict)
    """The bytes of data files by partition."""

    def add(self, file: JsonObject) -> None:
        """Counts a live file, given by the field `data_file` of its manifest entry: a delete file only as one more, a
        data file with records, bytes and partition."""
        if file.get("content"):  # absent in format v1, which has no delete files
            self.delete_files += 1
            return
        size = long_of(file.get("file_size_in_bytes")) or 0
        self.data_files += 1
        self.records += long_of(file.get("record_count")) or 0
        self.largest_bytes = max(self.largest_bytes, size)
        if size < SMALL * self.target_bytes:
            self.small_files += 1
            self.small_bytes += size
        partition = repr(file.get("partition"))
        self.partitions[partition] = self.partitions.get(partition, 0) + size

    def columns(self) -> Mapping[str, object]:
        """Returns the counts as columns of `files_health`. A count too large for a column is None."""
        counts = {
            "data_files": self.data_files,
            "small_files": self.small_files,
            "delete_files": self.delete_files,
            "manifests": self.manifests,
            "records": self.records,
            "bytes": sum(self.partitions.values()),
            "small_bytes": self.small_bytes,
            "largest_bytes": self.largest_bytes,
            "partitions": len(self.partitions),
            "largest_partition_bytes": max(self.partitions.values(), default=0),
        }
        return {name: long_of(count) for name, count in counts.items()}


@dataclass(frozen=True, slots=True)
class SnapshotManifests:
    """The part of a table's metadata by which the manifests of its current snapshot are found. It has no arrays and
    objects of the metadata, which may be freed."""

    snapshots: int
    target_bytes: int
    snapshot: JsonObject


def find_snapshot_manifests(version: Version, document: JsonObject) -> SnapshotManifests | None:
    """Returns what `health_row` needs of a table's metadata: the number of snapshots, the target size of files
    (`TARGET_BYTES` if none is set), and where the manifests of the version's snapshot are listed. None if there is no
    such snapshot."""
    snapshots = objects_of(document.get("snapshots"))
    current = next((each for each in snapshots if each.get("snapshot-id") == version.snapshot_id), None)
    if version.snapshot_id is None or current is None:
        return None
    target_bytes = long_of(object_of(document.get("properties")).get("write.target-file-size-bytes"))
    snapshot: JsonObject = {"manifest-list": text_of(current.get("manifest-list"))}
    if isinstance(current.get("manifests"), list):
        snapshot["manifests"] = [*texts_of(current.get("manifests"))]
    return SnapshotManifests(len(snapshots), target_bytes or TARGET_BYTES, snapshot)


async def health_row(session: Session, version: Version, found: SnapshotManifests) -> Row:
    """Returns the row of `files_health` for a version of a table: the counts of the files in its snapshot's manifests,
    or why a manifest or the manifest list can't be read. Raises `StoreError`."""
    health = Health(found.target_bytes)
    counted: Mapping[str, object]
    try:
        for manifest in await manifests_in(session, found.snapshot):
            path = text_of(manifest.get("manifest_path"))
            if path is None:
                continue
            health.manifests += 1
            async with aclosing(live_files(session, path)) as files:
                async for file in files:
                    health.add(file)
        counted = health.columns()
    except (Refusal, Unreadable) as error:
        counted = {"unreadable": str(error)}
    return {
        **version.commit_columns,
        "snapshot_id": version.snapshot_id,
        "target_bytes": health.target_bytes,
        "snapshots": found.snapshots,
        **counted,
    }
