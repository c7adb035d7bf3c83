"""What pointers, receipts and answers take from a metadata document."""

from collections.abc import Iterable, Mapping
from typing import cast

from arco_catalog.iceberg import properties as props
from arco_catalog.iceberg.commit import Commit
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.metadata import NO_SNAPSHOT
from arco_catalog.iceberg.snapshots import MAIN, SnapshotRef, branch
from arco_catalog.iceberg.table_creation import CreateTable
from arco_catalog.iceberg.updates import (
    AddSnapshot,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetStatistics,
)


def table_uuid(metadata: JsonObject) -> str | None:
    """The table's uuid; old v1 tables may have none."""
    return cast("str | None", metadata.get("table-uuid"))


def location(metadata: JsonObject) -> str:
    """The table's base location."""
    return cast(str, metadata["location"])


def last_updated_ms(metadata: JsonObject) -> int:
    """When the document was made, in milliseconds since 1970."""
    return cast(int, metadata["last-updated-ms"])


def last_sequence_number(metadata: JsonObject) -> int:
    """The highest sequence number that was assigned; 0 in format version 1, which has none."""
    return cast(int, metadata.get("last-sequence-number") or 0)


def current_snapshot_id(metadata: JsonObject) -> int | None:
    """The id of the current snapshot, which is main's; None if there is none (-1 in a stored document)."""
    found = cast("int | None", metadata.get("current-snapshot-id"))
    return None if found == NO_SNAPSHOT else found


def manifest_lists(metadata: JsonObject) -> tuple[str, ...]:
    """The manifest list of every snapshot, each once; the manifests themselves where an old v1 snapshot lists those."""
    snapshots = cast("list[JsonObject]", metadata.get("snapshots") or [])
    named: list[str | None] = []
    for snapshot in snapshots:
        named.append(cast("str | None", snapshot.get("manifest-list")))
        named += cast("list[str]", snapshot.get("manifests") or [])
    return distinct(named)


def leading_files(metadata: JsonObject) -> tuple[str, ...]:
    """The files that a document leads to at once, each once: manifest lists, and files of statistics."""
    statistics: list[str | None] = []
    for name in ("statistics", "partition-statistics"):
        files = cast("list[JsonObject]", metadata.get(name) or [])
        statistics += [cast("str | None", file.get("statistics-path")) for file in files]
    return distinct([*manifest_lists(metadata), *statistics])


def added_leading_files(commit: Commit) -> tuple[str, ...]:
    """Those of these that a commit adds."""
    named: list[str | None] = []
    for update in commit.updates:
        if isinstance(update, AddSnapshot):
            named.append(update.snapshot.get("manifest-list"))
            named += update.snapshot.get("manifests") or []
        elif isinstance(update, SetStatistics | SetPartitionStatistics):
            named.append(update.file["statistics-path"])
    return distinct(named)


def allows_deletes(metadata: JsonObject) -> bool:
    """Whether the table lets its files be deleted (`gc.enabled`), as tables do unless they say otherwise."""
    properties = cast("dict[str, str]", metadata.get("properties") or {})
    return properties.get(props.GC_ENABLED, "true").lower() == "true"


def refs(metadata: JsonObject) -> JsonObject:
    """Branches and tags by name; main is there whenever the table has a current snapshot."""
    named = cast(JsonObject, metadata.get("refs") or {})
    current = current_snapshot_id(metadata)
    return {MAIN: cast(JsonObject, branch(current)), **named} if current is not None else dict(named)


def visible_snapshots_only(metadata: JsonObject) -> JsonObject:
    """The document for `snapshots=refs`: without the snapshots that no branch or tag names. All else stays."""
    named = {cast(SnapshotRef, ref)["snapshot-id"] for ref in refs(metadata).values()}
    snapshots = cast("list[JsonObject]", metadata.get("snapshots") or [])
    visible = [snapshot for snapshot in snapshots if snapshot["snapshot-id"] in named]
    return {**metadata, "snapshots": cast(JsonValue, visible)}


def explicit_locations(request: Commit | CreateTable) -> tuple[str, ...]:
    """Every location that a request names, each once: the table's own, and those where its properties direct engines to
    write.

    Allowed locations are held against these (docs/design/state.md#rule-2).
    """
    if isinstance(request, Commit):
        return locations_in(request.updates)
    return distinct([request.location, *paths_in(request.properties)])


def written_locations(metadata: JsonObject) -> tuple[str, ...]:
    """Where the properties of a table or view tell engines to write, besides its own location."""
    return distinct(paths_in(cast("dict[str, str]", metadata.get("properties") or {})))


def locations_in(updates: Iterable[object]) -> tuple[str, ...]:
    """Every location that updates of a table or a view name, each once."""
    named: list[str | None] = []
    for update in updates:
        if isinstance(update, SetLocation):
            named.append(update.location)
        elif isinstance(update, SetProperties):
            named.extend(paths_in(update.properties))
    return distinct(named)


def paths_in(properties: Mapping[str, str]) -> list[str | None]:
    """Where these properties send metadata and data."""
    return [properties.get(name) for name in (props.METADATA_PATH, *props.DATA_PATHS)]


def distinct(locations: Iterable[str | None]) -> tuple[str, ...]:
    """Each location once, in order; None and the empty one are none."""
    return tuple(dict.fromkeys(location for location in locations if location))
