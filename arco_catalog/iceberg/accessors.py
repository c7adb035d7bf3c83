"""What pointers, receipts and answers take from a metadata document."""

from collections.abc import Mapping
from typing import cast

from arco_catalog.iceberg import properties as props
from arco_catalog.iceberg.commit import Commit
from arco_catalog.iceberg.creation import CreateTable
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.metadata import NO_SNAPSHOT
from arco_catalog.iceberg.snapshots import MAIN, SnapshotRef, branch
from arco_catalog.iceberg.updates import SetLocation, SetProperties, TableUpdate


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
    """The highest sequence number given, 0 in v1."""
    return cast(int, metadata.get("last-sequence-number") or 0)


def current_snapshot_id(metadata: JsonObject) -> int | None:
    """The snapshot of main, None without one."""
    found = cast("int | None", metadata.get("current-snapshot-id"))
    return None if found == NO_SNAPSHOT else found


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


def explicit_locations(request: Commit | CreateTable | JsonObject) -> tuple[str, ...]:
    """Every location that a request names, each once: the table's own, and those where engines are told to write.

    Of a metadata document, the latter only. Allowed locations are held against these (design.md, section 5).
    """
    if isinstance(request, Commit):
        return tuple(dict.fromkeys(location for update in request.updates for location in _named_by(update)))
    if isinstance(request, CreateTable):
        return tuple(dict.fromkeys(filter(None, [request.location, *_paths(request.properties)])))
    return _paths(cast("dict[str, str]", request.get("properties") or {}))


def _named_by(update: TableUpdate) -> tuple[str, ...]:
    match update:
        case SetLocation(location):
            return (location,)
        case SetProperties(properties):
            return _paths(properties)
        case _:
            return ()


def written_locations(metadata: JsonObject) -> tuple[str, ...]:
    """Where a table's properties tell engines to write, besides the table's own location."""
    return _paths(cast("dict[str, str]", metadata.get("properties") or {}))


def _paths(properties: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(properties[name] for name in (props.METADATA_PATH, *props.DATA_PATHS) if properties.get(name))
