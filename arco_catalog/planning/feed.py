"""Which records enter the event feed, and in which order: pure functions of receipts and of registry commits
(docs/design/events.md#order)."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.state.feed import MAX_BYTES, MAX_RECORDS, FeedKind, FeedRecord, RegistryPosition
from arco_catalog.state.feed_cursors import dropped_by, entities_of
from arco_catalog.state.fields import integer, optional_text
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.receipt import event_id
from storage_backends.lazy_dataclass import dataclass

MAX_ITEMS = 100
"""The number of items of a list in a receipt that its record has at most."""
_UNNUMBERED = 0


def operation_record(
    operation: JsonObject, at_ms: int, *, commit: str, sequence: int, place: int, places: int
) -> FeedRecord:
    """Returns the feed's record of a stored operation, without a number: the one at `place`, counted from 1, of the
    `places` in the registry commit with this id and sequence number. The operation's answer and the attempts that it
    cancels are left out."""
    kept: JsonObject = {name: value for name, value in operation.items() if name not in ("answer", "cancels")}
    details: JsonObject = {**kept, "commit": commit, "sequence": sequence, "place": place, "places": places}
    name, entity = optional_text(operation, "id") or "", optional_text(operation, "entity")
    return FeedRecord(_UNNUMBERED, "operation", name, entity, at_ms, details)


def commit_record(entity: str, file: MetadataFile, receipt: JsonObject | None) -> FeedRecord:
    """Returns the feed's record of the commit by which a metadata file of an entity became current, without a number.
    `receipt` has the current names of fields (state/receipt.py); lists in it are cut after `MAX_ITEMS` items, and the
    fields of `_NOT_KEPT` are left out. Without a receipt the record has the file alone."""
    key = commit_key(entity, file.location)
    details: JsonObject = {"commit_key": key, "metadata_location": file.location, "metadata_ms": file.ms}
    details |= {name: _shortened(value) for name, value in (receipt or {}).items() if name not in _NOT_KEPT}
    return FeedRecord(_UNNUMBERED, "commit", event_id(file, key), entity, file.ms, details)


_NOT_KEPT = ("type", "version", "state", "event_id", "entity")


def entity_record(kind: FeedKind, entity: str, file: MetadataFile) -> FeedRecord:
    """Returns the record, without a number, after which a file is the current one of an entity, without the commit of
    the file: of the kind `begin` or `restored`."""
    details: JsonObject = {"metadata_location": file.location, "metadata_ms": file.ms}
    return FeedRecord(_UNNUMBERED, kind, "", entity, file.ms, details)


def gap_record(entity: str, at_ms: int) -> FeedRecord:
    """Returns the record, without a number, that commits of an entity may be missing before its next record."""
    return FeedRecord(_UNNUMBERED, "gap", "", entity, at_ms, {})


def registry_record(kind: FeedKind, position: RegistryPosition, at_ms: int) -> FeedRecord:
    """Returns the record, without a number, after which the registry is at a position, without the operations that led
    there: of the kind `begin`, `restored` or `gap`."""
    details: JsonObject = {
        "commit": position.commit,
        "sequence": position.sequence,
        "place": position.operations,
    }
    return FeedRecord(_UNNUMBERED, kind, "", None, at_ms, details)


def _shortened(value: JsonValue) -> JsonValue:
    """Returns a value of a receipt as it is, but of a list the first `MAX_ITEMS` items."""
    return value[:MAX_ITEMS] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Chain:
    """The records of one entity that enter next, oldest first. `has_more` is whether later commits of its chain are
    known that do not fit."""

    entity: str
    records: Sequence[FeedRecord]
    has_more: bool = False


def merge(operations: Sequence[FeedRecord], chains: Sequence[Chain]) -> list[FeedRecord]:
    """Returns records in the order in which they enter: operations in the given order, which is that of the registry,
    and each chain in its own. A commit comes after the operation that creates its table, and before the one that drops
    it, unless one of these operations undoes that; the first commit, which is the creation, comes directly after its
    operation. Where no chain orders two records, their times do. Ends before the drop of a table that has further
    commits."""
    times, created, dropped = _operation_times(operations), _creations(operations), drops(operations)
    placed: list[tuple[int, int, str, int, FeedRecord]] = []
    end = min((dropped[chain.entity] for chain in chains if chain.has_more and chain.entity in dropped), default=None)
    for chain in chains:
        earliest, latest = created.get(chain.entity, 0), dropped.get(chain.entity, len(operations))
        ms = 0
        for number, record in enumerate(chain.records):
            ms = max(ms, record.at_ms)
            is_first = number == 0 and is_creation(record)
            slot = earliest if is_first else max(earliest, min(latest, bisect_right(times, ms)))
            placed.append((slot, ms, chain.entity, number, record))
    placed.sort(key=lambda each: each[:4])
    ordered: list[FeedRecord] = []
    at = 0
    for slot, _, _, _, record in placed:
        if end is not None and slot > end:
            break
        ordered += operations[at:slot]
        at = max(at, slot)
        ordered.append(record)
    return [*ordered, *operations[at : len(operations) if end is None else end]]


def is_creation(record: FeedRecord) -> bool:
    """Whether a record is of the commit by which a table or view was created; False for a record without a receipt, by
    which that is known."""
    details = record.details
    return record.kind == "commit" and "attempt" in details and details.get("previous_metadata_location") is None


def _operation_times(operations: Sequence[FeedRecord]) -> list[int]:
    """Returns the times of operations, none earlier than one before it."""
    return list(accumulate((record.at_ms for record in operations), max))


def _creations(operations: Sequence[FeedRecord]) -> dict[str, int]:
    """Returns for each table or view that these operations may create how many come up to that one."""
    return {entity: place for place, record in enumerate(operations, 1) for entity in entities_of(record)}


def drops(operations: Sequence[FeedRecord]) -> dict[str, int]:
    """Returns for each table or view of which the last of these operations drops or replaces it how many come before
    that."""
    last: dict[str, tuple[int, bool]] = {}
    for place, record in enumerate(operations):
        if record.entity is not None:
            last[record.entity] = place, False
        last |= dict.fromkeys(dropped_by(record), (place, True))
    return {entity: place for entity, (place, is_drop) in last.items() if is_drop}


def fit(records: Iterable[FeedRecord]) -> list[FeedRecord]:
    """Returns the first records that fit into one segment, by number and bytes; the first of all always fits."""
    fitting: list[FeedRecord] = []
    size = 0
    for record in records:
        size += len(dumps(record.to_json()))
        if fitting and (len(fitting) == MAX_RECORDS or size > MAX_BYTES):
            break
        fitting.append(record)
    return fitting


def numbered(records: Sequence[FeedRecord], first: int) -> list[FeedRecord]:
    """Returns records with their numbers, from `first` on."""
    return [replace(record, number=number) for number, record in enumerate(records, first)]


def position_after(records: Sequence[FeedRecord], before: RegistryPosition) -> RegistryPosition:
    """Returns the position in the registry's history after these records, which follow one at the position `before`:
    that of the last record about the registry, or `before` if there is none."""
    for record in reversed(records):
        if record.kind == "operation" or record.entity is None:
            position = RegistryPosition(
                optional_text(record.details, "commit"),
                integer(record.details, "sequence"),
                integer(record.details, "place"),
                record.kind == "restored",
                record.details.get("places", record.details["place"]) == record.details["place"],
            )
            return before if position.is_at(before) else position
    return before
