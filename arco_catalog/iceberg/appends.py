"""Decides whether a commit that lost a requirement on its branch may be rebased: whether it only appends data files to
one branch, requests the rebase, and its table allows that (docs/design/appends.md)."""

from collections.abc import Mapping
from typing import cast

from arco_catalog.iceberg.commit import REBASE_FIELD, Commit
from arco_catalog.iceberg.files import metadata_directory
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.metadata import TableMetadata, complete
from arco_catalog.iceberg.properties import COMMIT_APPENDS, ENCRYPTION_KEY_ID, REBASE
from arco_catalog.iceberg.requirements import AssertRefSnapshotId, AssertTableUuid
from arco_catalog.iceberg.shapes import MAX_LONG
from arco_catalog.iceberg.snapshots import MAIN, REF_FIELDS, Snapshot, SnapshotRef
from arco_catalog.iceberg.updates import AddSnapshot, SetSnapshotRef
from storage_backends.lazy_dataclass import dataclass

VALIDATED = ("kafka.connect.", "flink.")
"""The beginnings of summary fields by which engines recognise their own commits. They rely on a conflict."""
VALIDATED_FIELDS = ("wap.id", "published-wap-id", "source-snapshot-id")
"""The summary fields of snapshots that are published once. Their writers rely on a conflict, too."""


class NotRebasable(Exception):
    """The commit is not rebased, for the reason in the message: it is refused, as a commit whose requirement fails."""


@dataclass(frozen=True, slots=True)
class Append:
    """A commit that appends to a branch: the new snapshot, the branch with its retention, and the snapshot on which the
    client built, None for an empty table."""

    snapshot: Snapshot
    manifest_list: str
    branch: str
    ref: SnapshotRef
    parent: int | None


@dataclass(frozen=True, slots=True)
class AppendTarget:
    """The state of the table on which an append is rebased. `parent_list` is the manifest list of the snapshot on which
    the client built, None for an empty table; `head_id` is the snapshot of the branch now, with its list and summary.
    `sequence_number` and `first_row_id` are for the new snapshot, the latter None before format version 3. `min_ms` is
    the earliest time of the new snapshot in milliseconds, and `folder` that of the table's metadata files."""

    parent_list: str | None
    head_id: int
    head_list: str
    head_summary: dict[str, str]
    format_version: int
    sequence_number: int
    first_row_id: int | None
    schema_ids: frozenset[int]
    spec_ids: frozenset[int]
    min_ms: int
    folder: str


def append_of(commit: Commit) -> Append:
    """Returns the append that a commit consists of. Raises `NotRebasable` if it does anything else; if its requirements
    are not exactly the table's uuid and the snapshot of the branch; and if the snapshot or branch rules a rebase out: a
    tag, a new branch, another parent, a summary that does not request it or by which the writer recognises a
    repetition, encryption, or no manifest list."""
    match commit.updates:
        case (AddSnapshot(snapshot), SetSnapshotRef(branch, ref)) if ref["snapshot-id"] == snapshot["snapshot-id"]:
            pass
        case _:
            raise NotRebasable("the commit's updates are not one new snapshot, and one branch that is set to it")
    others = [each for each in commit.requirements if not isinstance(each, AssertTableUuid)]
    if len(others) == len(commit.requirements):
        raise NotRebasable("the commit does not require the table's uuid")
    match others:
        case [AssertRefSnapshotId(required, parent)] if required == branch:
            pass
        case _:
            raise NotRebasable(
                "the commit's requirements are not exactly the table's uuid and the snapshot of the branch"
            )
    if ref["type"] != "branch":
        raise NotRebasable(f"the commit sets {branch} to be a tag, not a branch")
    if parent is None and branch != MAIN:
        raise NotRebasable(f"the commit creates the branch {branch}")
    if snapshot.get("parent-snapshot-id") != parent:
        raise NotRebasable("the parent of the commit's snapshot is not the snapshot that the commit requires")
    _check_summary(snapshot.get("summary", {}))
    return Append(snapshot, _manifest_list(snapshot), branch, ref, parent)


def target_of(append: Append, document: JsonObject) -> AppendTarget:
    """Returns the state of a table on which an append is rebased, from its metadata document. Raises `NotRebasable` if
    the table does not allow it, has the snapshot already, does not have a snapshot or schema that the append needs, has
    one of these snapshots encrypted or without a manifest list, has the greatest possible sequence number or time, or
    has a branch that does not lead back to the snapshot on which the client built."""
    table = complete(document)
    _check_table(append, table)
    head_id = table["refs"][append.branch]["snapshot-id"]
    found = {each["snapshot-id"]: each for each in table["snapshots"]}
    if append.snapshot["snapshot-id"] in found:
        raise NotRebasable("the table has the commit's snapshot already")
    for needed in (head_id, append.parent):
        if needed is not None and needed not in found:
            raise NotRebasable(f"the table lacks the snapshot {needed}")
    _check_descent(append, found, head_id)
    schema_ids = frozenset(schema.get("schema-id", 0) for schema in table["schemas"])
    if append.snapshot.get("schema-id") not in schema_ids:
        raise NotRebasable("the commit's snapshot names no schema of the table")
    head = found[head_id]
    log = table["snapshot-log"] if append.branch == MAIN else []
    min_ms = max([head["timestamp-ms"] + 1, *(entry["timestamp-ms"] for entry in log[-1:])])
    if max(table["last-sequence-number"] + 1, min_ms) > MAX_LONG:
        raise NotRebasable("the table has the greatest possible sequence number or time, so none can follow")
    return AppendTarget(
        parent_list=None if append.parent is None else _manifest_list(found[append.parent]),
        head_id=head_id,
        head_list=_manifest_list(head),
        head_summary={**head.get("summary", {})},
        format_version=table["format-version"],
        sequence_number=table["last-sequence-number"] + 1,
        first_row_id=table["next-row-id"] if table["format-version"] >= 3 else None,
        schema_ids=schema_ids,
        spec_ids=frozenset(spec.get("spec-id", 0) for spec in table["partition-specs"]),
        min_ms=min_ms,
        folder=metadata_directory(document, table["location"]),
    )


def _check_descent(append: Append, found: Mapping[int, Snapshot], head_id: int) -> None:
    """Raises `NotRebasable` unless the branch leads back to the snapshot on which the client built, over snapshots that
    are all known. One that is not may have been this very append, whose answer was lost, so that its rows would be
    twice in the table."""
    at: int | None = head_id
    for _ in range(len(found) + 1):
        if at == append.parent:
            return
        if at is None or at not in found:
            break
        at = found[at].get("parent-snapshot-id")
    raise NotRebasable(
        f"the branch {append.branch} does not lead back to the snapshot that the commit requires, or to a first "
        "snapshot if it requires none: the table may have had the commit's snapshot before"
    )


def _check_table(append: Append, table: TableMetadata) -> None:
    """Raises `NotRebasable` unless the table allows rebased appends to this branch: by its property, in format version
    2 or 3, not encrypted, with this branch, and with the retention of the branch that the commit sets."""
    if table["properties"].get(COMMIT_APPENDS) != REBASE:
        raise NotRebasable(f"the table's property {COMMIT_APPENDS} is not {REBASE!r}")
    if table["format-version"] not in (2, 3):
        raise NotRebasable(f"the table has format version {table['format-version']}, not 2 or 3")
    if ENCRYPTION_KEY_ID in table["properties"]:
        raise NotRebasable("the table is encrypted")
    ref = table["refs"].get(append.branch)
    if ref is None or ref["type"] != "branch":
        raise NotRebasable(f"the table has no branch {append.branch}")
    if _retention(ref) != _retention(append.ref):
        raise NotRebasable(f"the commit gives the branch {append.branch} another retention than it has")


def _check_summary(summary: dict[str, str]) -> None:
    """Raises `NotRebasable` unless the summary is that of an append that requests to be rebased, without a field by
    which the writer recognises a repetition."""
    if summary.get(REBASE_FIELD) != REBASE:
        raise NotRebasable(f"the summary of the commit's snapshot does not have {REBASE_FIELD}={REBASE}")
    if summary.get("operation") != "append":
        raise NotRebasable("the commit's snapshot is no append")
    for name in summary:
        if name in VALIDATED_FIELDS or name.startswith(VALIDATED):
            raise NotRebasable(
                f"the summary of the commit's snapshot has {name}, by which its writer recognises a repetition"
            )


def _manifest_list(snapshot: Snapshot) -> str:
    """Returns the location of a snapshot's manifest list. Raises `NotRebasable` if the snapshot is encrypted, has no
    list, or names manifests itself."""
    snapshot_id = snapshot["snapshot-id"]
    if snapshot.get("key-id") is not None:
        raise NotRebasable(f"the snapshot {snapshot_id} is encrypted")
    found = snapshot.get("manifest-list")
    if found is None or "manifests" in snapshot:
        raise NotRebasable(f"the snapshot {snapshot_id} has no manifest list, or names manifests itself")
    return found


def _retention(ref: SnapshotRef) -> JsonObject:
    """Returns the fields of a branch or tag other than the snapshot: the type, and how long it and its snapshots are
    kept."""
    fields = cast(JsonObject, ref)
    return {name: value for name, value in fields.items() if name in REF_FIELDS and name != "snapshot-id"}
