"""Predicts which snapshots Iceberg's procedure to expire snapshots removes, by the rule of Iceberg's `RemoveSnapshots`
that `arco_catalog/iceberg/expiry.py` has. Branches and tags that expire themselves are not predicted."""

from arco_catalog.iceberg import snapshots as metadata
from arco_catalog.iceberg.expiry import Retention, kept_snapshots
from reconciler.maintain.figures import Figures, Ref, Snapshot


def expired_snapshots(figures: Figures, retention: Retention, now_ms: int) -> frozenset[int]:
    """Returns the ids of the snapshots that an expiry at `now_ms` removes, if the table keeps all branches and tags."""
    snapshots = {each.id: _as_metadata(each) for each in figures.snapshots}
    refs = [_ref_as_metadata(each) for each in figures.refs]
    return frozenset(snapshots) - kept_snapshots(snapshots, refs, retention, now_ms, max_steps=None)


def _as_metadata(snapshot: Snapshot) -> metadata.Snapshot:
    """Returns a snapshot in the form of table metadata."""
    found: metadata.Snapshot = {"snapshot-id": snapshot.id, "timestamp-ms": snapshot.at_ms}
    if snapshot.parent is not None:
        found["parent-snapshot-id"] = snapshot.parent
    return found


def _ref_as_metadata(ref: Ref) -> metadata.SnapshotRef:
    """Returns a ref in the form of table metadata."""
    found: metadata.SnapshotRef = {"snapshot-id": ref.snapshot, "type": "branch" if ref.branch else "tag"}
    if ref.max_age_ms is not None:
        found["max-snapshot-age-ms"] = ref.max_age_ms
    if ref.min_to_keep:
        found["min-snapshots-to-keep"] = ref.min_to_keep
    return found
