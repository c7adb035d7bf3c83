"""Plans the rebase of an append that lost the requirement on its branch: the commit and the manifest list that it would
have had on the branch's present snapshot (docs/design/appends.md)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from arco_catalog.iceberg.appends import Append, AppendTarget, NotRebasable, target_of
from arco_catalog.iceberg.commit import Commit
from arco_catalog.iceberg.manifests import AddedFiles, ManifestFile, check_row_ids
from arco_catalog.iceberg.outline import let_long_parts_go
from arco_catalog.iceberg.parsing import parse_metadata
from arco_catalog.iceberg.requirements import AssertRefSnapshotId
from arco_catalog.iceberg.shapes import MAX_LONG
from arco_catalog.iceberg.snapshots import Snapshot, SnapshotRef
from arco_catalog.iceberg.updates import AddSnapshot, SetSnapshotRef
from arco_catalog.planning.writes import FileWrite
from arco_catalog.state.manifest_lists import encode_manifest_list
from storage_backends.lazy_dataclass import dataclass

DELETE_TOTALS = ("total-delete-files", "total-position-deletes", "total-equality-deletes")
"""The totals of a summary that an append does not change."""


def read_target(append: Append, body: bytes, file: str) -> AppendTarget:
    """Returns the state of a table on which an append is rebased, from the bytes of its metadata file. Raises
    `NotRebasable` as `target_of` does, and as `parse_metadata` does."""
    document = parse_metadata(body, file)
    try:
        return target_of(append, document)
    finally:
        let_long_parts_go(document, len(body))


@dataclass(frozen=True, slots=True)
class AppendOnTarget:
    """An append, and the state of the table on which it is rebased. `present` are the manifests of the branch's
    snapshot, `added` those of the append, and `files` the counts of the files in each manifest of `added`."""

    append: Append
    target: AppendTarget
    present: Sequence[ManifestFile]
    added: Sequence[ManifestFile]
    files: Sequence[AddedFiles]


@dataclass(frozen=True, slots=True)
class RebasedAppend:
    """An append on the present snapshot of its branch: the commit, and the write of its new manifest list."""

    commit: Commit
    manifest_list: FileWrite


def rebase(commit: Commit, read: AppendOnTarget, *, now_ms: int, uuid: str) -> RebasedAppend:
    """Returns an append as it is on its target. The new list has the added manifests first, as engines write it. `uuid`
    is unique to this try. Raises `NotRebasable` if a manifest is in both, if a row id is missing, if it adds more rows
    or bytes than a table may have, or if this process has no fastavro, which manifest lists need."""
    append, target, present, added = read.append, read.target, read.present, read.added
    if not {each.manifest_path for each in present}.isdisjoint(each.manifest_path for each in added):
        raise NotRebasable("the branch has one of the commit's manifests already")
    sequence, first_row_id = target.sequence_number, target.first_row_id
    placed = [each._replace(sequence_number=sequence, min_sequence_number=sequence) for each in added]
    if first_row_id is None:
        manifests = [each._replace(first_row_id=None) for each in (*placed, *present)]
    else:
        check_row_ids(present)
        manifests = [*_with_row_ids(placed, first_row_id), *present]
    sent, head_id = append.snapshot, target.head_id
    location = f"{target.folder}/snap-{sent['snapshot-id']}-0-{uuid}.avro"
    added_rows, size = sum(each.rows for each in read.files), sum(each.size for each in read.files)
    if max((first_row_id or 0) + added_rows, size) > MAX_LONG:
        raise NotRebasable("the commit adds more rows or bytes than a table may have (rows count from the next row id)")
    rows = {"first-row-id": first_row_id, "added-rows": added_rows}
    fields = {
        **{name: value for name, value in sent.items() if name not in ("first-row-id", "added-rows")},
        **({} if first_row_id is None else rows),
        "parent-snapshot-id": head_id,
        "sequence-number": sequence,
        "timestamp-ms": max(now_ms, target.min_ms),
        "manifest-list": location,
        "summary": _summary(sent.get("summary", {}), target.head_summary, read.files),
    }
    header = (sent["snapshot-id"], head_id, sequence, first_row_id)
    return RebasedAppend(
        _on_head(commit, append, cast(Snapshot, fields), head_id),
        FileWrite(location, encode_manifest_list(manifests, target.format_version, header), packed=False),
    )


def _with_row_ids(manifests: Sequence[ManifestFile], first_row_id: int) -> list[ManifestFile]:
    """Returns new manifests, each with the id of its first row: that of the first is `first_row_id`, and each further
    one follows the added rows of the manifest before it."""
    given: list[ManifestFile] = []
    for each in manifests:
        given.append(each._replace(first_row_id=first_row_id))
        first_row_id += each.added_rows_count
    return given


def _on_head(commit: Commit, append: Append, snapshot: Snapshot, head_id: int) -> Commit:
    """Returns a commit that requires the branch's present snapshot, adds `snapshot`, and sets the branch to that; other
    updates are left out."""
    requirements = tuple(
        AssertRefSnapshotId(append.branch, head_id) if isinstance(each, AssertRefSnapshotId) else each
        for each in commit.requirements
    )
    ref = cast(SnapshotRef, {**append.ref, "snapshot-id": snapshot["snapshot-id"]})
    updates = (AddSnapshot(snapshot), SetSnapshotRef(append.branch, ref))
    return replace(commit, requirements=requirements, updates=updates)


def _summary(sent: dict[str, str], before: dict[str, str], files: Sequence[AddedFiles]) -> dict[str, str]:
    """Returns the summary of the new snapshot: as the client sent it, but with the totals of the snapshot before it,
    raised by what the append adds. A total that is no number there, or would exceed 64 bits, is left out."""
    added = {
        "total-data-files": sum(each.files for each in files),
        "total-records": sum(each.rows for each in files),
        "total-files-size": sum(each.size for each in files),
    }
    raised = {**added, **dict.fromkeys(DELETE_TOTALS, 0)}
    totals = {
        name: str(int(before[name]) + number)
        for name, number in raised.items()
        if _is_count(before.get(name, "")) and int(before[name]) + number <= MAX_LONG
    }
    return {**{name: value for name, value in sent.items() if not name.startswith("total-")}, **totals}


def _is_count(value: str) -> bool:
    """Whether a text is a number of at most 18 digits."""
    return value.isascii() and value.isdigit() and len(value) < 19
