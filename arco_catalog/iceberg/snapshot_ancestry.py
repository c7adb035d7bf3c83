"""Compares the snapshots of two versions of a table: which snapshots one side lacks, and which lie between the
current ones of both. Pure functions."""

from collections.abc import Iterator, Mapping, Sequence

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.snapshots import Snapshot

MAX_LISTED = 1_000
"""Maximum number of snapshots in a list of a comparison, the latest ones."""

Snapshots = Mapping[int, Snapshot]


def compare_snapshots(
    before: Snapshots, after: Snapshots, current_before: int | None, current: int | None
) -> JsonObject:
    """Compares the snapshots of two versions of a table, by their ids, and their current snapshots. `relation` is that
    of the second current snapshot to the first: `equal`, `ahead` if the first is its ancestor or None, `behind` for the
    reverse, `diverged` if neither is, `unknown` if expired snapshots hide it. `added` and `dropped` are the snapshots
    of only one version. `between` are the ids from the older one, without it, to the newer one, oldest first. Every
    list ends with the latest, and has at most `MAX_LISTED`; `counts` has the full lengths."""
    added = [after[number] for number in after if number not in before]
    dropped = [before[number] for number in before if number not in after]
    relation, between = _relate({**before, **after}, current_before, current)
    listed: list[JsonValue] = [*between[-MAX_LISTED:]]
    return {
        "added": _listed(added),
        "dropped": _listed(dropped),
        "relation": relation,
        "between": listed,
        "counts": {"added": len(added), "dropped": len(dropped), "between": len(between)},
    }


def _relate(known: Snapshots, old: int | None, new: int | None) -> tuple[str, Sequence[int]]:
    """Returns how the new snapshot relates to the old one, and the snapshots from the older one, without it, up to the
    newer one, oldest first: equal, ahead, behind; diverged if neither descends from the other, whether or not they have
    a common ancestor; unknown if neither is seen to descend from the other and ancestors are missing. None, which is no
    snapshot, counts as an ancestor of every snapshot."""
    if old == new:
        return "equal", []
    forward, backward = [*_ancestors_of(known, new)], [*_ancestors_of(known, old)]
    if old in forward:
        return "ahead", forward[: forward.index(old)][::-1]
    if new in backward:
        return "behind", backward[: backward.index(new)][::-1]
    if old is None:
        return "ahead", forward[::-1]
    if new is None:
        return "behind", backward[::-1]
    return ("diverged" if _is_whole(known, forward) and _is_whole(known, backward) else "unknown"), []


def _ancestors_of(known: Snapshots, snapshot: int | None) -> Iterator[int]:
    """Yields a snapshot and its ancestors, latest first, as far as they are known."""
    passed: set[int] = set()
    while snapshot is not None and snapshot in known and snapshot not in passed:
        passed.add(snapshot)
        yield snapshot
        snapshot = known[snapshot].get("parent-snapshot-id")


def _is_whole(known: Snapshots, line: Sequence[int]) -> bool:
    """Whether a line of ancestors goes back to a snapshot without a parent."""
    return bool(line) and known[line[-1]].get("parent-snapshot-id") is None


def _listed(snapshots: Sequence[Snapshot]) -> list[JsonValue]:
    """Returns the latest of these snapshots as JSON, at most `MAX_LISTED`, oldest first."""
    latest = sorted(snapshots, key=lambda snapshot: (snapshot["timestamp-ms"], snapshot["snapshot-id"]))[-MAX_LISTED:]
    return [
        {
            "snapshot-id": snapshot["snapshot-id"],
            "parent-snapshot-id": snapshot.get("parent-snapshot-id"),
            "timestamp-ms": snapshot["timestamp-ms"],
            "operation": snapshot.get("summary", {}).get("operation"),
        }
        for snapshot in latest
    ]
