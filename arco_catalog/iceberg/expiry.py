"""Which snapshots, branches and tags of a table expire: a pure function of its metadata and the time, by the rules of
Iceberg's `RemoveSnapshots` (docs/design/expiry.md#rule-1)."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.metadata import TableMetadata
from arco_catalog.iceberg.properties import Properties
from arco_catalog.iceberg.shapes import MAX_LONG
from arco_catalog.iceberg.snapshots import MAIN, Snapshot, SnapshotRef
from arco_catalog.iceberg.updates import RemoveSnapshotRef, RemoveSnapshots, TableUpdate
from storage_backends.lazy_dataclass import dataclass

MAX_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS_TO_KEEP = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE = "history.expire.max-ref-age-ms"

DEFAULT_SNAPSHOT_AGE_MS = 5 * 24 * 60 * 60 * 1000
DEFAULT_TO_KEEP = 1
MAX_EXPIRED = 10_000
"""The number of snapshots that one commit removes at most: the oldest. The others remain for the next expiry."""

MAX_STEPS = 2_000_000
"""The number of snapshots of all branches, shared ones counted for each, that are followed at most: about a second."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a table keeps snapshots and refs without a retention of their own: snapshots up to an age, so many of
    each branch at least, and branches and tags up to an age. Ages are in milliseconds."""

    snapshot_age_ms: int = DEFAULT_SNAPSHOT_AGE_MS
    to_keep: int = DEFAULT_TO_KEEP
    ref_age_ms: int = MAX_LONG

    @classmethod
    def of(
        cls, properties: Properties, *, snapshot_age_ms: int | None = None, to_keep: int | None = None
    ) -> "Retention":
        """Returns the retention that a table's properties set. Arguments other than None replace the settings. Raises
        `BadRequest` for a property that is not a positive number, also if an argument replaces it: a default in place
        of it could remove too much."""
        age = _number(properties, MAX_SNAPSHOT_AGE, DEFAULT_SNAPSHOT_AGE_MS)
        keep = _number(properties, MIN_SNAPSHOTS_TO_KEEP, DEFAULT_TO_KEEP)
        return cls(
            age if snapshot_age_ms is None else snapshot_age_ms,
            keep if to_keep is None else to_keep,
            _number(properties, MAX_REF_AGE, MAX_LONG),
        )


@dataclass(frozen=True, slots=True)
class Expiry:
    """What an expiry removes from a table: snapshots, in the table's order, and branches and tags by name."""

    snapshots: Sequence[Snapshot] = ()
    refs: Sequence[str] = ()

    @property
    def updates(self) -> tuple[TableUpdate, ...]:
        """The updates of the commit that makes the expiry. The removal of a snapshot includes its statistics."""
        removed = [snapshot["snapshot-id"] for snapshot in self.snapshots]
        refs = [RemoveSnapshotRef(name) for name in self.refs]
        return (*refs, RemoveSnapshots(removed)) if removed else (*refs,)


def find_expired(metadata: TableMetadata, retention: Retention, now_ms: int, limit: int = MAX_EXPIRED) -> Expiry:
    """Returns the branches and tags that expire at `now_ms`, and the oldest `limit` of the snapshots that expire.

    The branch main stays. Another branch or a tag goes when its snapshot is older than the age of refs, or is missing.
    The setting of a branch or tag comes before the table's. The others keep snapshots as in `kept_snapshots`. Raises
    `BadRequest` for branches that would take too long to follow.
    """
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
    refs = {name: ref for name, ref in metadata["refs"].items() if _is_kept(name, ref, snapshots, retention, now_ms)}
    kept = kept_snapshots(snapshots, refs.values(), retention, now_ms, max_steps=MAX_STEPS)
    expired = [snapshot for number, snapshot in snapshots.items() if number not in kept]
    if len(expired) > limit:
        oldest = sorted(expired, key=lambda snapshot: snapshot["timestamp-ms"])[:limit]
        chosen = {snapshot["snapshot-id"] for snapshot in oldest}
        expired = [snapshot for snapshot in expired if snapshot["snapshot-id"] in chosen]
    return Expiry(expired, [name for name in metadata["refs"] if name not in refs])


def kept_snapshots(
    snapshots: Mapping[int, Snapshot],
    refs: Collection[SnapshotRef],
    retention: Retention,
    now_ms: int,
    *,
    max_steps: int | None,
) -> set[int]:
    """Returns the ids of the snapshots that do not expire at `now_ms`, if the table keeps these branches and tags. Of a
    snapshot, only the id, the parent and the time count.

    A tag keeps its snapshot. A branch keeps its last snapshots up to their number, and from its head back all that are
    young enough. A snapshot that no branch contains and no tag names is kept until it is older than the age of
    snapshots. Settings of a branch come before those of `retention`. Raises `BadRequest` if the branches keep more than
    `max_steps` snapshots, shared ones counted for each; None means no limit.
    """
    branches = [ref for ref in refs if ref["type"] == "branch"]
    kept = {ref["snapshot-id"] for ref in refs} | _kept_of_branches(branches, snapshots, retention, now_ms, max_steps)
    contained, before_ms = _contained(branches, snapshots), now_ms - retention.snapshot_age_ms
    kept.update(
        number for number, each in snapshots.items() if number not in contained and each["timestamp-ms"] >= before_ms
    )
    return kept


def _is_kept(name: str, ref: SnapshotRef, snapshots: Mapping[int, Snapshot], retention: Retention, now_ms: int) -> bool:
    """Whether a ref is kept: it is main, or its snapshot exists and is not too old by the ref's or the table's
    retention."""
    if name == MAIN:
        return True
    snapshot = snapshots.get(ref["snapshot-id"])
    age_ms = ref.get("max-ref-age-ms", retention.ref_age_ms)
    return snapshot is not None and now_ms - snapshot["timestamp-ms"] <= age_ms


def _kept_of_branches(
    branches: Sequence[SnapshotRef],
    snapshots: Mapping[int, Snapshot],
    retention: Retention,
    now_ms: int,
    max_steps: int | None,
) -> set[int]:
    """Returns the ids of the snapshots that branches keep by number or age. Fails if the branches keep more than
    `max_steps`, shared ones counted for every branch; None means no limit."""
    kept, steps = set[int](), 0
    for ref in branches:
        before_ms = now_ms - ref.get("max-snapshot-age-ms", retention.snapshot_age_ms)
        to_keep = ref.get("min-snapshots-to-keep", retention.to_keep)
        for place, snapshot in enumerate(_ancestors(snapshots, ref["snapshot-id"])):
            if place >= to_keep and snapshot["timestamp-ms"] < before_ms:
                break
            kept.add(snapshot["snapshot-id"])
            steps += 1
        if max_steps is not None and steps > max_steps:
            raise BadRequest(
                f"Nothing of the table expires: its branches keep more than {max_steps:,} snapshots, shared ones "
                "counted for every branch, too many for an expiry to follow: remove branches, or give them a shorter "
                "retention, for a later expiry"
            )
    return kept


def _contained(branches: Sequence[SnapshotRef], snapshots: Mapping[int, Snapshot]) -> set[int]:
    """Returns the ids of the snapshots that are in a branch, if the table has them."""
    contained = set[int]()
    for ref in branches:
        for snapshot in _ancestors(snapshots, ref["snapshot-id"]):
            if snapshot["snapshot-id"] in contained:
                break
            contained.add(snapshot["snapshot-id"])
    return contained


def _ancestors(snapshots: Mapping[int, Snapshot], number: int | None) -> Iterator[Snapshot]:
    """Yields the snapshot with this id and the ancestors of it, as far as the table has them, once; none for None."""
    passed = set[int]()
    while number is not None and number in snapshots and number not in passed:
        passed.add(number)
        yield snapshots[number]
        number = snapshots[number].get("parent-snapshot-id")


def _number(properties: Properties, name: str, default: int) -> int:
    """Returns a positive number of at most 19 digits in a table property, or the default without the property. Raises
    `BadRequest` for any other value."""
    text = properties.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) > 0):
        raise BadRequest(
            f"Nothing of the table expires: the property {name} must be a positive whole number of at most 19 digits, "
            f"found {text[:100]!r}"
        )
    return int(text)
