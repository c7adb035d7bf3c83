"""The counts of a table by which maintenance is due, read from the metadata file and the manifests.

`system.files_health` would not do: it describes the snapshot that the last run of `compact` found, without a policy's
own file size and without the partition of small files, and writers may have added thousands of files since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from arco_catalog.iceberg import table
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.parsing import parse_metadata
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.current_file import current_file
from arco_catalog.state.worker_threads import off_loop
from reconciler.compact.values import long_of, object_of, objects_of, text_of
from reconciler.maintain.contents import NO_MANIFESTS, Contents, DataFile, Group, Manifests, read_contents

__all__ = ["DataFile", "Figures", "Group", "Manifests", "Ref", "Snapshot", "read_figures"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot in a table's metadata: id, parent, time, and the operation that made it."""

    id: int
    parent: int | None
    at_ms: int
    operation: str = ""
    """The operation that made it: `append`, `replace` (a rewrite), `overwrite` or `delete`; empty if unknown."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch or tag of a table to maintain. `max_age_ms` and `min_to_keep` are its own retention of snapshots, None
    if it has none."""

    name: str
    snapshot: int
    branch: bool
    max_age_ms: int | None = None
    min_to_keep: int | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """What decisions about the maintenance of a table need: its properties, snapshots and refs by one metadata file,
    and the files of its current snapshot. Counts of files and rows are of the current snapshot alone; without one, they
    are 0, and `snapshot_id` is None."""

    metadata_location: str
    location: str
    format_version: int
    properties: Mapping[str, str] = field(default_factory=dict)
    sorted: bool = False
    """Whether the table has a default sort order."""
    snapshot_id: int | None = None
    snapshots: Sequence[Snapshot] = ()
    refs: Sequence[Ref] = ()
    manifests: Manifests = NO_MANIFESTS
    groups: Sequence[Group] = ()
    delete_files: int = 0
    """The number of files of position deletes and equality deletes, and of deletion vectors."""
    records: int = 0
    elsewhere: Sequence[str] = ()
    """Files of the current snapshot outside of `location`: one for each folder, and any path with `.` or `..`."""

    @property
    def data_files(self) -> int:
        """The number of live data files in the current snapshot."""
        return sum(len(group.data) for group in self.groups)

    @property
    def bytes(self) -> int:
        """The size in bytes of all live data files in the current snapshot."""
        return sum(file.size for group in self.groups for file in group.data)

    def summary(self) -> JsonObject:
        """Returns the counts that a task's checkpoint contains; a row of `system.maintenance` has all but `records`."""
        return {
            "snapshot_id": self.snapshot_id,
            "data_files": self.data_files,
            "delete_files": self.delete_files,
            "bytes": self.bytes,
            "records": self.records,
            "manifests": len(self.manifests),
            "snapshots": len(self.snapshots),
        }


async def read_figures(session: Session, entity: str) -> Figures | None:
    """Reads the current metadata file of a table, given by the entity id, and the manifests of the current snapshot.
    Returns None if the table has no pointer. Raises `NotFound` if the metadata file does not exist, and
    `InternalError`, `Refusal`, `Unreadable` or `StoreError` for a file that can't be read."""
    found = await current_file(session, entity)
    if found is None:
        return None
    file, body = found
    document = await off_loop(len(body), partial(parse_metadata, body, file.location))
    session.files.forget(file.location)
    properties = object_of(document.get("properties"))
    current = long_of(document.get("current-snapshot-id"))
    kept = objects_of(document.get("snapshots"))
    snapshot = next((each for each in kept if each.get("snapshot-id") == current), None)
    contents = Contents() if snapshot is None else await read_contents(session, document, snapshot)
    orders = objects_of(document.get("sort-orders"))
    order = next((each for each in orders if each.get("order-id") == document.get("default-sort-order-id")), {})
    return Figures(
        metadata_location=file.location,
        location=table.location(document),
        format_version=long_of(document.get("format-version")) or 1,
        properties={name: str(value) for name, value in properties.items()},
        sorted=bool(objects_of(order.get("fields"))),
        snapshot_id=current if snapshot is not None else None,
        snapshots=[_snapshot(each) for each in kept],
        refs=_refs(document, current),
        manifests=contents.manifests,
        groups=contents.groups,
        delete_files=contents.delete_files,
        records=contents.records,
        elsewhere=contents.elsewhere,
    )


def _snapshot(snapshot: JsonObject) -> Snapshot:
    """Reads a snapshot in the metadata."""
    return Snapshot(
        long_of(snapshot.get("snapshot-id")) or 0,
        long_of(snapshot.get("parent-snapshot-id")),
        long_of(snapshot.get("timestamp-ms")) or 0,
        text_of(object_of(snapshot.get("summary")).get("operation")) or "",
    )


def _refs(document: JsonObject, current: int | None) -> Sequence[Ref]:
    """Reads the refs in the metadata, with main on the snapshot `current` if it is missing, unless that is None. The
    snapshot need not exist: `current` may be -1."""
    refs = [
        Ref(
            name,
            long_of(ref.get("snapshot-id")) or 0,
            ref.get("type") == "branch",
            long_of(ref.get("max-snapshot-age-ms")),
            long_of(ref.get("min-snapshots-to-keep")),
        )
        for name, ref in ((name, object_of(ref)) for name, ref in object_of(document.get("refs")).items())
    ]
    if current is None or any(ref.name == "main" for ref in refs):
        return refs
    return [*refs, Ref("main", current, branch=True)]  # writers of format v1 may write no refs
