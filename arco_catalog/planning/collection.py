"""Decides which stored objects a collection may delete (docs/design/collection.md). All functions are pure."""

from collections.abc import Mapping
from enum import StrEnum

from arco_catalog.planning.upkeep_settings import Retention
from arco_catalog.state.borrowed import returned_loans
from arco_catalog.state.entries import purge_began
from arco_catalog.state.followed import last_notified, notified_edits
from arco_catalog.state.index import Edits, Index, location_key, released_key
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.tombstone import DROPPED, PURGED, Tombstone


class Kind(StrEnum):
    """The kinds of objects and index entries that a collection deletes. Their values are public names, which scripts
    use."""

    TOMBSTONE = "tombstone"
    POINTER = "pointer"
    METADATA_FILE = "metadata-file"
    MANIFEST_LIST = "manifest-list"
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
    PROPOSAL = "proposal"
    PLAN = "plan"
    FEED_SEGMENT = "feed-segment"


NOT_LISTED = frozenset({Kind.TOMBSTONE, Kind.METADATA_FILE, Kind.MANIFEST_LIST, Kind.CHECKPOINT})
"""The kinds that are no objects of the catalog's state: files of tables, and entries in objects that stay."""

WHY: Mapping[Kind, str] = {
    Kind.TOMBSTONE: "the table or view was purged, or dropped, and the time to undo that is over",
    Kind.POINTER: "no name leads to it: its create never committed, or its tombstone has been collected",
    Kind.METADATA_FILE: "it never became current, or is of a view that can't be restored any more",
    Kind.MANIFEST_LIST: "it is of a rebased append that never applied",
    Kind.PENDING_RECEIPT: "its commit has a committed receipt, or was never made",
    Kind.COMMITTED_RECEIPT: "it is older than receipts are kept, and another file is current",
    Kind.LINEAGE_EVENT: "it is older than receipts are kept",
    Kind.MARKER: "its idempotency key is too old to be used again",
    Kind.TRANSACTION: "it is decided and settled, and no marker refers to it",
    Kind.CLAIM: "the file that it was on has been removed",
    Kind.REGISTRY_COMMIT: "it never became HEAD, or is older than receipts are kept",
    Kind.REGISTRY_SEGMENT: "neither HEAD nor a page token leads to it",
    Kind.REGISTRY_VALUE: "neither HEAD, nor a page token, nor a marker leads to it",
    Kind.TASK: "it has ended, and nothing in the registry names it",
    Kind.HINT: "its task has ended, or does not exist",
    Kind.CHECKPOINT: "the entity that it describes has neither a name nor a pointer",
    Kind.REPORT: "it is older than receipts are kept",
    Kind.PROPOSAL: "it is so old that no process commits it any more",
    Kind.PLAN: "every plan of the scan has expired",
    Kind.FEED_SEGMENT: "the segment after it is older than receipts are kept",
}


def is_older(written_ms: int, now_ms: int, limit_ms: int) -> bool:
    """Whether an object is at least `limit_ms` old, by the store's clock. One with a time in the future is not, because
    its age is unknown."""
    return now_ms - written_ms >= limit_ms


def has_moved_past(moved_ms: int, written_ms: int, retention: Retention) -> bool:
    """Whether a pointer or HEAD was written (`moved_ms`) at least `Retention.margin_ms` after another object
    (`written_ms`), so that no compare-and-swap of the process that wrote that object can still apply: all of them
    expect older versions of the pointer or HEAD (docs/design/collection.md#rule-1)."""
    return moved_ms >= retention.with_margin(written_ms)


class Fate(StrEnum):
    """The decision of a collection about a pending receipt and its metadata file: they are kept; the commit has a
    receipt; or it never committed."""

    KEPT = "kept"
    RECEIPTED = "receipted"
    LOST = "lost"


def fate_of(*, committed: bool, metadata_ms: int, floor_ms: int | None, current: bool) -> Fate:
    """Returns the fate of a pending receipt: `RECEIPTED` if the commit has a receipt (`committed`); `KEPT` if the
    metadata file is `current`, or its time is at or below the floor, the time up to which committed receipts may have
    been collected (None: none was), so that a missing one is no proof; else `LOST`. The pointer must have moved past
    the pending receipt, and its log must have been walked to the end since (docs/design/collection.md#rule-4)."""
    if committed:
        return Fate.RECEIPTED
    if current or is_behind(metadata_ms, floor_ms):
        return Fate.KEPT
    return Fate.LOST


def is_behind(metadata_ms: int, floor_ms: int | None) -> bool:
    """Whether the receipts of metadata files of this time may have been collected already, because the time is not
    later than the floor, up to which receipts were collected; False without a floor."""
    return floor_ms is not None and metadata_ms <= floor_ms


def is_replaced(metadata_ms: int, current_ms: int) -> bool:
    """Whether a metadata file is older than the current one of its entity. Each file is younger than the one before."""
    return metadata_ms < current_ms


def is_expired(tombstone: Tombstone, now_ms: int, retention: Retention) -> bool:
    """Whether a tombstone may be removed from the index: that of a purge that ended, or of a plain drop, which
    requested no purge, if that was at least `Retention.undrop_ms` ago. The tombstone of a purge that has not begun, has
    not ended, or has failed, is kept."""
    if tombstone.state == PURGED:
        purged_ms = tombstone.json.get("purged_ms")
        return isinstance(purged_ms, int) and is_older(purged_ms, now_ms, retention.undrop_ms)
    plain = tombstone.state == DROPPED and tombstone.task is None
    return plain and is_older(tombstone.dropped_ms, now_ms, retention.undrop_ms)


def expire(index: Index, seen: Tombstone) -> Steps[Edits]:
    """Returns the index changes that remove the tombstone `seen` with its holds and loans; none if the index has
    another tombstone by now, for example because the drop was undone, or if the purge is under way. For a followed
    table they keep the time of the last notification (docs/design/polaris.md#rule-12)."""
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
    """Whether no marker can refer to a decision, because it is older than every stored slot by the margin for clocks,
    and older than `Retention.decisions_ms` (docs/design/collection.md#rule-7). `oldest_slot_ms` is None if there is no
    slot."""
    outlived = oldest_slot_ms is None or retention.with_margin(decided_ms) < oldest_slot_ms
    return outlived and is_older(decided_ms, now_ms, retention.decisions_ms)
