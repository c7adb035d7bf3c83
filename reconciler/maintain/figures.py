"""The figures of a table by which maintenance decides: what its metadata and its manifests list.

They are read from the files themselves. `system.files_health` tells of the snapshot that a run of `compact` met, knows
neither a policy's own file size nor which small files lie together, and a writer may have added thousands since.
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
    """A snapshot that the table keeps."""

    id: int
    parent: int | None
    at_ms: int
    operation: str = ""
    """By which it came: `append`, `replace` (a rewrite), `overwrite` or `delete`."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch or tag, with its own retention where it has one."""

    name: str
    snapshot: int
    branch: bool
    max_age_ms: int | None = None
    min_to_keep: int | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """A table as it is in one metadata file."""

    metadata_location: str
    location: str
    format_version: int
    properties: Mapping[str, str] = field(default_factory=dict)
    sorted: bool = False
    """Whether it has a sort order of its own."""
    snapshot_id: int | None = None
    snapshots: Sequence[Snapshot] = ()
    refs: Sequence[Ref] = ()
    manifests: Manifests = NO_MANIFESTS
    groups: Sequence[Group] = ()
    delete_files: int = 0
    """All of them: deletion vectors and equality deletes, too."""
    records: int = 0
    elsewhere: Sequence[str] = ()
    """Files of the current snapshot that do not lie below `location`, one for each folder."""

    @property
    def data_files(self) -> int:
        """Live data files."""
        return sum(len(group.data) for group in self.groups)

    @property
    def bytes(self) -> int:
        """Of data files."""
        return sum(file.size for group in self.groups for file in group.data)

    def summary(self) -> JsonObject:
        """What a task and a report keep of it."""
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
    """A table as it is now; None where it has no pointer any more. Raises `NotFound` for one whose metadata file is
    gone, `Refusal`, `Unreadable` and `StoreError`."""
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


def _snapshot(said: JsonObject) -> Snapshot:
    return Snapshot(
        long_of(said.get("snapshot-id")) or 0,
        long_of(said.get("parent-snapshot-id")),
        long_of(said.get("timestamp-ms")) or 0,
        text_of(object_of(said.get("summary")).get("operation")) or "",
    )


def _refs(document: JsonObject, current: int | None) -> Sequence[Ref]:
    refs = [
        Ref(
            name,
            long_of(said.get("snapshot-id")) or 0,
            said.get("type") == "branch",
            long_of(said.get("max-snapshot-age-ms")),
            long_of(said.get("min-snapshots-to-keep")),
        )
        for name, said in ((name, object_of(said)) for name, said in object_of(document.get("refs")).items())
    ]
    if current is None or any(ref.name == "main" for ref in refs):
        return refs
    return [*refs, Ref("main", current, branch=True)]  # of a writer that knows no refs
