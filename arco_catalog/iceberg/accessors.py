"""Reads parts of table and view metadata that other packages need: ids, locations, times, files, branches and tags; and
the locations and files that a commit names."""

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
    """Returns the table's uuid; None if there is none, as in old tables of format version 1."""
    return cast("str | None", metadata.get("table-uuid"))


def location(metadata: JsonObject) -> str:
    """Returns the base location of the table or view."""
    return cast(str, metadata["location"])


def last_updated_ms(metadata: JsonObject) -> int:
    """Returns the time of the table's last update (`last-updated-ms`), in milliseconds since 1970."""
    return cast(int, metadata["last-updated-ms"])


def last_sequence_number(metadata: JsonObject) -> int:
    """Returns the highest sequence number that was assigned; 0 in format version 1, which has none."""
    return cast(int, metadata.get("last-sequence-number") or 0)


def current_snapshot_id(metadata: JsonObject) -> int | None:
    """Returns the id of the current snapshot, which is that of the branch main; None if there is none (-1 in a stored
    document)."""
    found = cast("int | None", metadata.get("current-snapshot-id"))
    return None if found == NO_SNAPSHOT else found


def manifest_lists(metadata: JsonObject) -> tuple[str, ...]:
    """Returns the manifest list of every snapshot, each once; for old snapshots of format version 1 that list
    manifests, the paths of these."""
    snapshots = cast("list[JsonObject]", metadata.get("snapshots") or [])
    named: list[str | None] = []
    for snapshot in snapshots:
        named.append(cast("str | None", snapshot.get("manifest-list")))
        named += cast("list[str]", snapshot.get("manifests") or [])
    return distinct(named)


def leading_files(metadata: JsonObject) -> tuple[str, ...]:
    """Returns the files to which a document refers directly, each once: manifest lists, manifests of old snapshots
    without a list, and files of column and partition statistics."""
    statistics: list[str | None] = []
    for name in ("statistics", "partition-statistics"):
        files = cast("list[JsonObject]", metadata.get(name) or [])
        statistics += [cast("str | None", file.get("statistics-path")) for file in files]
    return distinct([*manifest_lists(metadata), *statistics])


def added_leading_files(commit: Commit) -> tuple[str, ...]:
    """Returns the manifest lists, the manifests of old snapshots without a list, and the statistics files that the
    updates of a commit add, each once."""
    named: list[str | None] = []
    for update in commit.updates:
        if isinstance(update, AddSnapshot):
            named.append(update.snapshot.get("manifest-list"))
            named += update.snapshot.get("manifests") or []
        elif isinstance(update, SetStatistics | SetPartitionStatistics):
            named.append(update.file["statistics-path"])
    return distinct(named)


def allows_deletes(metadata: JsonObject) -> bool:
    """Whether the table allows that its files are deleted: its property `gc.enabled` is `true` in any case of letters,
    or missing."""
    properties = cast("dict[str, str]", metadata.get("properties") or {})
    return properties.get(props.GC_ENABLED, "true").lower() == "true"


def refs(metadata: JsonObject) -> JsonObject:
    """Returns the branches and tags by name. If the table has a current snapshot, main is always among them."""
    named = cast(JsonObject, metadata.get("refs") or {})
    current = current_snapshot_id(metadata)
    return {MAIN: cast(JsonObject, branch(current)), **named} if current is not None else dict(named)


def visible_snapshots_only(metadata: JsonObject) -> JsonObject:
    """Returns the document for `snapshots=refs`: without the snapshots that neither a branch nor a tag names. All other
    fields stay."""
    named = {cast(SnapshotRef, ref)["snapshot-id"] for ref in refs(metadata).values()}
    snapshots = cast("list[JsonObject]", metadata.get("snapshots") or [])
    visible = [snapshot for snapshot in snapshots if snapshot["snapshot-id"] in named]
    return {**metadata, "snapshots": cast(JsonValue, visible)}


def explicit_locations(request: Commit | CreateTable) -> tuple[str, ...]:
    """Returns every location that a request for a table names, each once: the table's own, and those to which its
    properties direct engines to write data or metadata. A request that names none gives an empty tuple.

    These are compared with the allowed locations (docs/design/state.md#rule-2).
    """
    if isinstance(request, Commit):
        return locations_in(request.updates)
    return distinct([request.location, *paths_in(request.properties)])


def written_locations(metadata: JsonObject) -> tuple[str, ...]:
    """Returns the locations to which the properties of a table or view direct engines to write, besides its own
    location."""
    return distinct(paths_in(cast("dict[str, str]", metadata.get("properties") or {})))


def locations_in(updates: Iterable[object]) -> tuple[str, ...]:
    """Returns every location that updates of a table or a view name, each once: in `SetLocation`, and in properties
    that direct engines to write. Other updates are ignored."""
    named: list[str | None] = []
    for update in updates:
        if isinstance(update, SetLocation):
            named.append(update.location)
        elif isinstance(update, SetProperties):
            named.extend(paths_in(update.properties))
    return distinct(named)


def paths_in(properties: Mapping[str, str]) -> list[str | None]:
    """Returns the locations of metadata and data that these properties set; None for each property that is absent."""
    return [properties.get(name) for name in (props.METADATA_PATH, *props.DATA_PATHS)]


def distinct(locations: Iterable[str | None]) -> tuple[str, ...]:
    """Returns each location once, in order, without None and the empty one."""
    return tuple(dict.fromkeys(location for location in locations if location))
