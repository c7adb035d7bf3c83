"""What may be collected, and why (docs/design/collection.md). Pure functions of what was read."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from arco_catalog.state.borrowed import returned_loans
from arco_catalog.state.entries import purge_began
from arco_catalog.state.followed import last_notified, notified_edits
from arco_catalog.state.index import Edits, Index, location_key, released_key
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.tombstone import DROPPED, PURGED, Tombstone

HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * HOUR_MS


class Kind(StrEnum):
    """What is collected. The names are public: scripts go by them."""

    TOMBSTONE = "tombstone"
    POINTER = "pointer"
    METADATA_FILE = "metadata-file"
    PENDING_RECEIPT = "pending-receipt"
    COMMITTED_RECEIPT = "committed-receipt"
    LINEAGE_EVENT = "lineage-event"
    MARKER = "marker"
    TRANSACTION = "transaction"
    CLAIM = "claim"
    REGISTRY_COMMIT = "registry-commit"
    REGISTRY_SEGMENT = "registry-segment"
    REGISTRY_VALUE = "registry-value"
    TASK = "task"
    HINT = "hint"
    CHECKPOINT = "checkpoint"
    REPORT = "report"


WHY: Mapping[Kind, str] = {
    Kind.TOMBSTONE: "the table or view was purged, or dropped, and the time to undo that is over",
    Kind.POINTER: "no name leads to it: its create never committed, or its tombstone has been collected",
    Kind.METADATA_FILE: "it never became current, or is of a view that can't be restored any more",
    Kind.PENDING_RECEIPT: "its commit has a receipt, or never came",
    Kind.COMMITTED_RECEIPT: "it is older than receipts are kept, and another file is current",
    Kind.LINEAGE_EVENT: "it is older than receipts are kept",
    Kind.MARKER: "its idempotency key is too old to be used again",
    Kind.TRANSACTION: "it is decided and settled, and no marker can ask for it",
    Kind.CLAIM: "the file that it was on has been removed",
    Kind.REGISTRY_COMMIT: "it never became HEAD, or is older than receipts are kept",
    Kind.REGISTRY_SEGMENT: "neither HEAD nor a page token leads to it",
    Kind.REGISTRY_VALUE: "neither HEAD, nor a page token, nor a marker leads to it",
    Kind.TASK: "it has ended, and nothing in the registry names it",
    Kind.HINT: "its task has ended, or never came",
    Kind.CHECKPOINT: "what it was noted for has been collected",
    Kind.REPORT: "it is older than receipts are kept",
}


@dataclass(frozen=True, slots=True)
class Retention:
    """How long what may go is kept, in milliseconds. An operator sets how long receipts are kept, and how long a plain
    drop can be undone; the rest follows from what the protocols rely on."""

    receipts_ms: int = 90 * DAY_MS
    undrop_ms: int = 30 * DAY_MS
    tasks_ms: int = 30 * DAY_MS
    orphans_ms: int = 7 * DAY_MS
    """Whatever a writer left that never took effect. Page tokens last as long."""
    markers_ms: int = 2 * DAY_MS
    """From slot 0 of a marker on. No request takes over a marker that is older: it may be half collected."""
    decisions_ms: int = 3 * DAY_MS
    markers: bool = True
    """Whether markers go at all, and decisions, which they may ask for."""
    margin_ms: int = HOUR_MS
    """More than any request takes, and than the clocks of one store's servers differ."""

    def with_margin(self, limit_ms: int) -> int:
        """An age by which all that was under way at another has ended."""
        return limit_ms + self.margin_ms


def is_older(written_ms: int, now_ms: int, limit_ms: int) -> bool:
    """Whether an object is so old, by the store's clock. One from the future is not: its age is unknown."""
    return now_ms - written_ms >= limit_ms


def has_moved_past(moved_ms: int, written_ms: int, retention: Retention) -> bool:
    """Whether a pointer, or HEAD, was written so long after another object that no swap which its writer sent can
    apply: all of them name older versions (docs/design/collection.md#rule-1)."""
    return moved_ms >= retention.with_margin(written_ms)


class Fate(StrEnum):
    """What becomes of a pending receipt, and of its metadata file."""

    KEPT = "kept"
    RECEIPTED = "receipted"
    LOST = "lost"


def fate_of(*, committed: bool, metadata_ms: int, floor_ms: int | None, current: bool) -> Fate:
    """The fate of a pending receipt of an entity whose pointer has moved past it, and was walked to the end after that.
    What lies behind the floor tells nothing: its receipt may have been collected (docs/design/collection.md#rule-4)."""
    if committed:
        return Fate.RECEIPTED
    if current or is_behind(metadata_ms, floor_ms):
        return Fate.KEPT
    return Fate.LOST


def is_behind(metadata_ms: int, floor_ms: int | None) -> bool:
    """Whether receipts of files of this time may have been collected."""
    return floor_ms is not None and metadata_ms <= floor_ms


def is_replaced(metadata_ms: int, current_ms: int) -> bool:
    """Whether a file came before the current one of its entity: each is younger than the one before."""
    return metadata_ms < current_ms


def is_expired(tombstone: Tombstone, now_ms: int, retention: Retention) -> bool:
    """Whether a tombstone may leave the index: that of a finished purge, or of a plain drop, when nobody may undo it
    any more. One whose purge is yet to end, or has failed, is kept."""
    if tombstone.state == PURGED:
        purged_ms = tombstone.json.get("purged_ms")
        return isinstance(purged_ms, int) and is_older(purged_ms, now_ms, retention.undrop_ms)
    plain = tombstone.state == DROPPED and tombstone.task is None
    return plain and is_older(tombstone.dropped_ms, now_ms, retention.undrop_ms)


def expire(index: Index, seen: Tombstone) -> Steps[Edits]:
    """Edits by which a tombstone leaves the index, and its holds with it; none if it is another by now: the drop was
    undone. Of a followed table the time of the last notification is kept (docs/design/polaris.md#rule-12)."""
    yield Needs(keys=[seen.key])
    if index.get(seen.key) != seen.json or purge_began(seen.json):
        return {}
    notified = yield from last_notified(index, seen.namespace, seen.name)
    kept: Edits = {}
    if notified is not None:
        kept = yield from notified_edits(index, seen.namespace, seen.name, notified)
    places = seen.locations
    return {
        seen.key: None,
        **kept,
        **{location_key(place, seen.entity): None for place in places},
        **{released_key(place, seen.entity): None for place in places},
        **returned_loans(seen.entity, seen.borrowed),
    }


def is_outlived(decided_ms: int, now_ms: int, oldest_slot_ms: int | None, retention: Retention) -> bool:
    """Whether no marker can ask for a decision: it is older than every slot that is left
    (docs/design/collection.md#rule-7). `oldest_slot_ms` is None where there is none."""
    outlived = oldest_slot_ms is None or retention.with_margin(decided_ms) < oldest_slot_ms
    return outlived and is_older(decided_ms, now_ms, retention.decisions_ms)
