"""Applies updates of a table's history: snapshots, branches and tags, statistics."""

from collections.abc import Iterable

from arco_catalog.iceberg.draft import TableDraft
from arco_catalog.iceberg.errors import BadRequest, CommitFailed
from arco_catalog.iceberg.metadata import NO_SNAPSHOT
from arco_catalog.iceberg.shapes import MAX_LONG
from arco_catalog.iceberg.snapshots import (
    MAIN,
    Snapshot,
    SnapshotRef,
    StatisticsFile,
    check_ref,
    check_summary,
)


def add_snapshot(draft: TableDraft, snapshot: Snapshot) -> None:
    """Adds a snapshot to the draft, and raises the table's last sequence number and, from version 3 on, next row id.
    Raises `BadRequest` for a snapshot that exists or is not valid, or before the first schema, spec or sort order;
    `CommitFailed` if the commit is based on too old a state of the table and may be tried again.

    The sequence number of a snapshot without a parent may be older than the table's, because a replacement of the table
    may meet a concurrent commit. It never lowers the table's number, which no snapshot may exceed.
    """
    metadata = draft.metadata
    for kind, known in (
        ("schema", draft.schemas.by_id),
        ("partition spec", draft.specs.by_id),
        ("sort order", draft.orders.by_id),
    ):
        if not known:
            raise BadRequest(f"Attempting to add a snapshot before a {kind} is added")
    snapshot_id = snapshot["snapshot-id"]
    if snapshot_id == NO_SNAPSHOT:
        raise BadRequest(f"Cannot add a snapshot with the id {NO_SNAPSHOT}, which stands for no snapshot")
    if snapshot["timestamp-ms"] < 0:
        raise BadRequest(f"Invalid snapshot timestamp (cannot be negative): {snapshot['timestamp-ms']}")
    if snapshot_id in draft.snapshots:
        raise BadRequest(f"Snapshot already exists for id: {snapshot_id}")
    check_summary(snapshot)
    sequence, last = snapshot.get("sequence-number", 0), metadata["last-sequence-number"]
    if sequence < 0:
        raise BadRequest(f"Invalid sequence number of snapshot {snapshot_id} (cannot be negative): {sequence}")
    if metadata["format-version"] > 1 and sequence <= last and "parent-snapshot-id" in snapshot:
        raise _stale(
            f"Cannot add snapshot with sequence number {sequence} older than last sequence number {last}, or equal "
            "to it"
        )
    metadata["last-sequence-number"] = max(last, sequence)
    if metadata["format-version"] >= 3:
        _assign_rows(draft, snapshot)
    draft.snapshots[snapshot_id] = snapshot
    draft.added_snapshots[snapshot_id] = snapshot


def _assign_rows(draft: TableDraft, snapshot: Snapshot) -> None:
    """Checks the row ids of a v3 snapshot, and sets the table's next row id to the one after them. Raises `BadRequest`
    for missing or invalid row ids, and `CommitFailed` if the snapshot's first row id is lower than the table's next
    one, on whatever branch the snapshot is."""
    first, added = snapshot.get("first-row-id"), snapshot.get("added-rows")
    if first is None:
        raise BadRequest("Cannot add a snapshot: first-row-id is null")
    if added is None:
        raise BadRequest("Invalid added-rows (required when first-row-id is set): null")
    if added < 0:
        raise BadRequest(f"Invalid added-rows (cannot be negative): {added}")
    following = draft.metadata["next-row-id"]
    if first < following:
        raise _stale(f"Cannot add a snapshot, first-row-id is behind table next-row-id: {first} < {following}")
    if first + added > MAX_LONG:
        raise BadRequest(f"Invalid added-rows (first-row-id {first} + added-rows exceeds {MAX_LONG}): {added}")
    # `following + added`, as the reference has it, would give ids away twice where a client left a gap before `first`.
    draft.metadata["next-row-id"] = first + added


def _stale(reason: str) -> CommitFailed:
    """Returns the error for a commit that is based on an outdated state of the table."""
    return CommitFailed(f"Validation failed, please retry: {reason}")


def set_snapshot_ref(draft: TableDraft, name: str, ref: SnapshotRef) -> None:
    """Creates, moves or changes a branch or tag; one that is equal already stays, without a check of the snapshot. The
    snapshot of main is also the table's current snapshot, and a change of main, also one of retention only, adds an
    entry to the snapshot log.
    Raises `BadRequest` for an invalid ref or an unknown snapshot."""
    check_ref(name, ref)
    snapshot_id = ref["snapshot-id"]
    if not draft.refs.set(name, ref):
        return
    if snapshot_id not in draft.snapshots:
        raise BadRequest(f"Cannot set {name} to unknown snapshot: {snapshot_id}")
    if name == MAIN:
        added = draft.added_snapshots.get(snapshot_id)
        if added is not None:
            draft.added_as_main.add(snapshot_id)
        time = added["timestamp-ms"] if added is not None else draft.now_ms
        draft.metadata["current-snapshot-id"] = snapshot_id
        draft.metadata["snapshot-log"].append({"timestamp-ms": time, "snapshot-id": snapshot_id})


def remove_snapshot_ref(draft: TableDraft, name: str) -> None:
    """Removes a branch or tag, if it exists. Without main the table has no current snapshot; the snapshot log stays."""
    if draft.refs.remove(name) and name == MAIN:
        draft.metadata["current-snapshot-id"] = None


def remove_snapshots(draft: TableDraft, snapshot_ids: Iterable[int]) -> None:
    """Removes snapshots, their statistics and every ref to them, main included. Unknown ids are ignored."""
    gone = {snapshot_id for snapshot_id in snapshot_ids if draft.snapshots.pop(snapshot_id, None) is not None}
    if not gone:
        return
    draft.removed_snapshots = True
    for snapshot_id in gone:
        draft.statistics.pop(snapshot_id, None)
        draft.partition_statistics.pop(snapshot_id, None)
    for name in draft.refs.of_snapshots(gone):
        remove_snapshot_ref(draft, name)


def set_statistics(files: dict[int, list[StatisticsFile]], file: StatisticsFile) -> None:
    """Makes one file the only statistics file of a snapshot in `files`. The snapshot need not exist."""
    files[file["snapshot-id"]] = [file]


def remove_statistics(files: dict[int, list[StatisticsFile]], snapshot_id: int) -> None:
    """Removes the statistics files of a snapshot, if it has any."""
    files.pop(snapshot_id, None)
