"""Snapshots, the branches and tags that name them, and their statistics files (table spec, "Snapshots", "Snapshot
References", "Table Statistics")."""

from collections.abc import Container, Sequence
from itertools import pairwise
from typing import TypedDict

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.shapes import INT, LONG, STRING, STRINGS, ShapeError, list_of, one_of, quoted, record

MAIN = "main"

_SnapshotId = TypedDict("_SnapshotId", {"snapshot-id": int, "timestamp-ms": int})
_SnapshotRest = TypedDict(
    "_SnapshotRest",
    {
        "parent-snapshot-id": int,
        "sequence-number": int,
        "manifest-list": str,
        "manifests": list[str],
        "summary": dict[str, str],
        "schema-id": int,
        "first-row-id": int,
        "added-rows": int,
        "key-id": str,
    },
    total=False,
)


class Snapshot(_SnapshotId, _SnapshotRest):
    """A snapshot of a table, its state at one time: id, parent, time, summary, and the manifest list, or the manifests,
    of its files."""


_RefTarget = TypedDict("_RefTarget", {"snapshot-id": int, "type": str})
_Retention = TypedDict(
    "_Retention", {"min-snapshots-to-keep": int, "max-snapshot-age-ms": int, "max-ref-age-ms": int}, total=False
)


class SnapshotRef(_RefTarget, _Retention):
    """A branch or tag of a table: the snapshot that it names, and its retention."""


SnapshotLogEntry = TypedDict("SnapshotLogEntry", {"snapshot-id": int, "timestamp-ms": int})
StatisticsFile = TypedDict("StatisticsFile", {"snapshot-id": int, "statistics-path": str, "file-size-in-bytes": int})
"""A file of column or of partition statistics."""

_snapshot = record(
    Snapshot,
    required={"snapshot-id": LONG, "timestamp-ms": LONG},
    optional={
        "parent-snapshot-id": LONG,
        "sequence-number": LONG,
        "manifest-list": STRING,
        "manifests": list_of(STRING),
        "summary": STRINGS,
        "schema-id": INT,
        "first-row-id": LONG,
        "added-rows": LONG,
        "key-id": STRING,
    },
)


def SNAPSHOT(value: JsonValue) -> Snapshot:  # noqa: N802 - a shape
    """Returns the value as a snapshot with a manifest list or, as in v1 tables, a list of the manifests (`manifests`),
    in tables of any format version. Raises `ShapeError` for any other value."""
    snapshot = _snapshot(value)
    if "manifest-list" not in snapshot and "manifests" not in snapshot:
        raise ShapeError("missing required field 'manifest-list' (or, as in v1 tables, 'manifests')")
    return snapshot


SNAPSHOT_REF = record(
    SnapshotRef,
    required={"snapshot-id": LONG, "type": one_of("branch", "tag")},
    optional={"min-snapshots-to-keep": INT, "max-snapshot-age-ms": LONG, "max-ref-age-ms": LONG},
)
SNAPSHOT_LOG_ENTRY = record(SnapshotLogEntry, required={"snapshot-id": LONG, "timestamp-ms": LONG})

_STATISTICS = {"snapshot-id": LONG, "statistics-path": STRING, "file-size-in-bytes": LONG}
_BLOB = record(
    JsonObject,
    required={"type": STRING, "snapshot-id": LONG, "sequence-number": LONG, "fields": list_of(INT)},
    optional={"properties": STRINGS},
)
STATISTICS_FILE = record(
    StatisticsFile, required={**_STATISTICS, "file-footer-size-in-bytes": LONG, "blob-metadata": list_of(_BLOB)}
)
PARTITION_STATISTICS_FILE = record(StatisticsFile, required=_STATISTICS)

OPERATIONS = ("append", "replace", "overwrite", "delete")


def check_summary(snapshot: Snapshot) -> None:
    """Raises `BadRequest` unless the summary of a new snapshot has one of the four operations.

    The REST specification requires it, and some readers refuse a whole table for one snapshot without it.
    """
    operation = snapshot.get("summary", {}).get("operation")
    if operation not in OPERATIONS:
        found = "none" if operation is None else quoted(operation)
        raise BadRequest(
            f"Invalid snapshot in add-snapshot: summary.operation must be {' or '.join(OPERATIONS)}, found {found}"
        )


# The known fields of a ref. All others belong to other programs, and stay when the ref is changed.
REF_FIELDS = frozenset({*_RefTarget.__annotations__, *_Retention.__annotations__})


def branch(snapshot_id: int) -> SnapshotRef:
    """Returns a branch on this snapshot, without retention rules of its own."""
    return {"snapshot-id": snapshot_id, "type": "branch"}


def check_ref(name: str, ref: SnapshotRef) -> None:
    """Raises `BadRequest` if main is a tag, if a tag has rules for snapshots (`min-snapshots-to-keep`,
    `max-snapshot-age-ms`), or if a number or age of the retention is not positive."""
    if name == MAIN and ref["type"] != "branch":
        raise BadRequest(f"Cannot set {MAIN} to a tag, it must be a branch")
    keep, snapshot_age, ref_age = (
        ref.get("min-snapshots-to-keep"),
        ref.get("max-snapshot-age-ms"),
        ref.get("max-ref-age-ms"),
    )
    if ref["type"] == "tag" and keep is not None:
        raise BadRequest("Tags do not support setting minSnapshotsToKeep")
    if ref["type"] == "tag" and snapshot_age is not None:
        raise BadRequest("Tags do not support setting maxSnapshotAgeMs")
    if keep is not None and keep <= 0:
        raise BadRequest("Min snapshots to keep must be greater than 0")
    if snapshot_age is not None and snapshot_age <= 0:
        raise BadRequest("Max snapshot age must be greater than 0 ms")
    if ref_age is not None and ref_age <= 0:
        raise BadRequest("Max reference age must be greater than 0")


ONE_MINUTE_MS = 60_000


def retained_log(
    log: Sequence[SnapshotLogEntry],
    snapshots: Container[int],
    *,
    intermediate: Container[int],
    current: int | None,
    any_removed: bool,
) -> list[SnapshotLogEntry]:
    """Returns the snapshot log without the entries of snapshots that are not in `snapshots`, or that were main only
    within the commit (`intermediate`). Raises `BadRequest` if the last entry left is not the `current` snapshot; not if
    none is left, or `current` is None.

    If the commit removed snapshots (`any_removed`), all entries before that of a removed snapshot are left out, too: if
    only that entry were left out, its predecessor would seem to have been current for longer than it was.
    """
    kept: list[SnapshotLogEntry] = []
    for entry in log:
        if entry["snapshot-id"] not in snapshots:
            if any_removed:
                kept.clear()
        elif entry["snapshot-id"] not in intermediate:
            kept.append(entry)
    if current is not None and kept and kept[-1]["snapshot-id"] != current:
        raise BadRequest(
            "Cannot set invalid snapshot log: latest entry is not the current snapshot, after the entries of "
            "snapshots that the commit removes or replaces were left out: set main to another snapshot first, which "
            "adds an entry"
        )
    return kept


def check_log_times(log: Sequence[SnapshotLogEntry], last_updated_ms: int) -> None:
    """Checks the times in a snapshot log. Raises `BadRequest` if an entry is more than a minute earlier than the one
    before it, or the last one more than a minute later than `last_updated_ms`.

    Readers of the reference implementation make these checks, so another log would make the table unreadable.
    """
    times = [entry["timestamp-ms"] for entry in log]
    if any(later - earlier < -ONE_MINUTE_MS for earlier, later in pairwise(times)):
        raise BadRequest(
            "Expected sorted snapshot log entries: one is more than a minute before the one that precedes it, so the "
            "clock of the writer was behind, or that of the writer before was ahead"
        )
    if times and last_updated_ms - times[-1] < -ONE_MINUTE_MS:
        raise BadRequest(
            f"Invalid update timestamp {last_updated_ms}: before last snapshot log entry at {times[-1]}: "
            "the clock of the snapshot's writer is ahead, or that of the metadata's behind, by more than a minute"
        )
