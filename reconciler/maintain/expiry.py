"""Predicts which snapshots Iceberg's procedure to expire snapshots removes, by the rule of Iceberg's
`RemoveSnapshots`."""

from collections.abc import Mapping

from reconciler.maintain.figures import Figures, Ref, Snapshot


def expired_snapshots(figures: Figures, older_than_ms: int, keep: int, now_ms: int) -> frozenset[int]:
    """Returns the ids of the snapshots that an expiry with `older_than` and `retain_last` removes.

    A tag keeps the snapshot it names, and not the snapshots before it. A branch keeps the last `keep` snapshots, the
    head included, and those that are not older than `older_than_ms`; a number or an age that is set for the branch
    itself replaces the limit of the call. A snapshot that no branch or tag leads to stays until it is older than
    `older_than_ms`. `now_ms` is the time from which the age of a branch's own retention is counted.
    """
    snapshots = {snapshot.id: snapshot for snapshot in figures.snapshots}
    kept: set[int] = set()
    reachable: set[int] = set()
    for ref in figures.refs:
        reachable |= _ancestors(ref, snapshots)
        if not ref.branch:
            kept.add(ref.snapshot)
            continue
        before_ms = older_than_ms if ref.max_age_ms is None else now_ms - ref.max_age_ms
        kept |= _kept_of(ref, snapshots, before_ms, ref.min_to_keep or keep)
    unreachable = {each.id for each in figures.snapshots if each.id not in reachable and each.at_ms >= older_than_ms}
    return frozenset(snapshots) - kept - unreachable


def _ancestors(ref: Ref, snapshots: Mapping[int, Snapshot]) -> set[int]:
    found: set[int] = set()
    at = snapshots.get(ref.snapshot)
    while at is not None and at.id not in found:
        found.add(at.id)
        at = None if at.parent is None else snapshots.get(at.parent)
    return found


def _kept_of(branch: Ref, snapshots: Mapping[int, Snapshot], before_ms: int, keep: int) -> set[int]:
    kept: set[int] = set()
    at = snapshots.get(branch.snapshot)
    while at is not None and at.id not in kept and (len(kept) < keep or at.at_ms >= before_ms):
        kept.add(at.id)
        at = None if at.parent is None else snapshots.get(at.parent)
    return kept
