"""The figures of a table by which maintenance decides: what its metadata and its manifests list.

They are read from the files themselves. `system.files_health` tells of the snapshot that a run of `compact` met, knows
neither a policy's own file size nor which small files lie together, and a writer may have added thousands since.
"""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from arco_catalog.iceberg import table
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.parsing import parse_metadata
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.current_file import current_file
from reconciler.compact.values import long_of, object_of, objects_of, text_of
from reconciler.live_files import live_files, manifests_in

POSITION_DELETES = 1
"""The content of a file of position deletes, deletion vectors among them."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot that the table keeps."""

    id: int
    parent: int | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch or tag, with its own retention where it has one."""

    name: str
    snapshot: int
    branch: bool
    max_age_ms: int | None = None
    min_to_keep: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The files of one partition that may be rewritten together: bytes of each."""

    data: tuple[int, ...] = ()
    position_deletes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifests:
    """The sizes of a snapshot's manifests: of data files, and of delete files."""

    data: tuple[int, ...] = ()
    deletes: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.data) + len(self.deletes)


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
    manifests: Manifests = Manifests()
    groups: Sequence[Group] = ()
    delete_files: int = 0
    """All of them: deletion vectors and equality deletes, too."""
    records: int = 0

    @property
    def data_files(self) -> int:
        """Live data files."""
        return sum(len(group.data) for group in self.groups)

    @property
    def bytes(self) -> int:
        """Of data files."""
        return sum(sum(group.data) for group in self.groups)

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
    document = parse_metadata(body, file.location)
    session.files.forget(file.location)
    properties = object_of(document.get("properties"))
    current = long_of(document.get("current-snapshot-id"))
    kept = objects_of(document.get("snapshots"))
    snapshot = next((each for each in kept if each.get("snapshot-id") == current), None)
    counted = _Counted()
    if snapshot is not None:
        await counted.read(session, snapshot)
    orders = objects_of(document.get("sort-orders"))
    order = next((each for each in orders if each.get("order-id") == document.get("default-sort-order-id")), {})
    return Figures(
        metadata_location=file.location,
        location=table.location(document),
        format_version=long_of(document.get("format-version")) or 1,
        properties={name: str(value) for name, value in properties.items()},
        sorted=bool(objects_of(order.get("fields"))),
        snapshot_id=current if snapshot is not None else None,
        snapshots=[
            Snapshot(long_of(each.get("snapshot-id")) or 0, long_of(each.get("parent-snapshot-id")), _at(each))
            for each in kept
        ],
        refs=_refs(document, current),
        manifests=Manifests(tuple(counted.data_manifests), tuple(counted.delete_manifests)),
        groups=[Group(tuple(data), tuple(deletes)) for data, deletes in counted.groups.values()],
        delete_files=counted.delete_files,
        records=counted.records,
    )


def _at(snapshot: JsonObject) -> int:
    return long_of(snapshot.get("timestamp-ms")) or 0


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


@dataclass(slots=True)
class _Counted:
    data_manifests: list[int] = field(default_factory=list)
    delete_manifests: list[int] = field(default_factory=list)
    groups: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    delete_files: int = 0
    records: int = 0

    async def read(self, session: Session, snapshot: JsonObject) -> None:
        for manifest in await manifests_in(session, snapshot):
            sizes = self.delete_manifests if manifest.get("content") else self.data_manifests
            sizes.append(long_of(manifest.get("manifest_length")) or 0)
            path = text_of(manifest.get("manifest_path"))
            if path is not None:
                async with aclosing(live_files(session, path)) as files:
                    async for file in files:
                        self._add(file)

    def _add(self, file: JsonObject) -> None:
        size = long_of(file.get("file_size_in_bytes")) or 0
        data, deletes = self.groups.setdefault(repr(file.get("partition")), ([], []))
        content = file.get("content")
        if not content:  # v1 has none
            data.append(size)
            self.records += long_of(file.get("record_count")) or 0
            return
        self.delete_files += 1
        if content == POSITION_DELETES and str(file.get("file_format")).lower() != "puffin":
            deletes.append(size)
