"""Describes versions of a table or view for its timeline, each from its receipt and from the summaries of the snapshots
that it added. Pure functions."""

from collections import Counter
from collections.abc import Mapping

from arco_catalog.iceberg.files import metadata_version
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.snapshot_summary import APPLICATION, COUNTS, summary_counts, summary_fields
from arco_catalog.operations.receipt_cursor import PastCommit
from arco_catalog.planning.confidence import confidence_in
from arco_catalog.state.fields import mapping, optional_text, sequence, texts
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.receipt import base_of

SOURCES = {
    "Servo": "pipeline",
    "IcebergRest": "engine",
    "AdminApi": "admin",
    "Cli": "command",
    "Task": "task",
    "Restored": "unknown",
}
"""The sources of changes in the timeline, by their `kind` in receipts. Any other is `other`."""
MAX_SNAPSHOTS = 10
"""Maximum number of snapshots of one version that an entry describes."""

SnapshotsById = Mapping[int, JsonObject]


def version_id(entity: str, file: MetadataFile) -> str:
    """Returns the id of a version: the time of its metadata file and the commit key, which name its receipt."""
    return f"{file.ms}-{commit_key(entity, file.location)}"


def version_entry(entity: str, commit: PastCommit, snapshots: SnapshotsById, *, current: bool) -> JsonObject:
    """Returns the entry of a version in the timeline of an entity. `snapshots` are those that the current metadata
    still has, by which the first `MAX_SNAPSHOTS` added ones are described; `current` is whether it is the current
    version."""
    receipt = commit.receipt or {}
    added = added_snapshot_ids(receipt)
    described: list[JsonValue] = [_snapshot(number, snapshots.get(number)) for number in added[:MAX_SNAPSHOTS]]
    return {
        **version_reference(entity, commit.file),
        "current": current,
        "at-by": "writer" if commit.foreign else "catalog",
        "receipt": _receipt_state(commit),
        **_author(receipt),
        "application": _application(added, snapshots),
        "changes": {} if commit.receipt is None else _changes(commit.receipt),
        "snapshot-id": receipt.get("snapshot_id"),
        "added-snapshots": len(added),
        "snapshots": described,
    }


def version_reference(entity: str, file: MetadataFile) -> JsonObject:
    """Returns the fields that name a version of an entity: number, id, metadata file and time."""
    return {
        "version": metadata_version(file.location),
        "id": version_id(entity, file),
        "metadata-location": file.location,
        "at-ms": file.ms,
    }


def added_snapshot_ids(receipt: JsonObject) -> list[int]:
    """Returns the ids of the snapshots that a commit added, by its receipt; empty if the receipt is."""
    return [number for number in sequence(receipt, "added_snapshot_ids") if isinstance(number, int)]


def _receipt_state(commit: PastCommit) -> str:
    """Returns the state of a commit's receipt: `committed` or `pending`; without a receipt `none` for a file that
    another catalog wrote, which never has one, else `missing`."""
    if commit.receipt is None:
        return "none" if commit.foreign else "missing"
    return str(commit.receipt["state"])


def _author(receipt: JsonObject) -> JsonObject:
    """Returns the fields of a timeline's entry about the author of a commit, and through which client, engine and
    source, by the commit's receipt. An empty receipt, for a missing one, gives the source `unknown`."""
    source = mapping(receipt, "source")
    kind = SOURCES.get(str(source.get("kind")), "other") if source else "unknown"
    claimed, confidence = source.get("claimed") is True, confidence_in(source)
    return {
        "source": kind,
        "external": _is_external(kind, claimed),
        "claimed": claimed,
        "client": optional_text(source, "client_info"),
        "engine": optional_text(receipt, "engine"),
        "principal": optional_text(receipt, "principal"),
        "run-id": optional_text(source, "run_id"),
        "task-id": optional_text(source, "task_id"),
        "user-id": optional_text(source, "user_id"),
        "lineage": confidence.lineage,
        "quality-status": confidence.quality if source else None,
    }


def _is_external(kind: str, claimed: bool) -> bool | None:
    """Whether an engine made a commit, or an anonymous client, whose claim of another source proves nothing; None if
    the source is unknown."""
    return None if kind == "unknown" else claimed or kind == "engine"


def _changes(receipt: JsonObject) -> JsonObject:
    """Returns the number of updates of each kind in a commit, by the receipt, and `create` if it is the first of the
    table or view."""
    counts = Counter(texts(receipt, "updates"))
    return {**({"create": 1} if base_of(receipt) is None else {}), **counts}


def _application(added: list[int], snapshots: SnapshotsById) -> str | None:
    """Returns the id of the Spark application in the summary of the first added snapshot that has one and is still in
    `snapshots`; None without one."""
    known = (summary_fields(snapshots[number]) for number in added if number in snapshots)
    return next((name for fields in known if (name := optional_text(fields, APPLICATION)) is not None), None)


def _snapshot(snapshot_id: int, snapshot: JsonObject | None) -> JsonObject:
    """Returns the JSON of a snapshot with this id: the operation, and the counts of what it added and removed and of
    what the table then had, by the snapshot's summary; null for all if it has expired (None)."""
    if snapshot is None:
        return {"snapshot-id": snapshot_id, "known": False, "operation": None, **dict.fromkeys(COUNTS)}
    operation = optional_text(summary_fields(snapshot), "operation")
    return {"snapshot-id": snapshot_id, "known": True, "operation": operation, **summary_counts(snapshot)}
