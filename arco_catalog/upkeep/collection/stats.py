"""The counts of a collection: for each kind of objects their number, size and age."""

from dataclasses import dataclass, field

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.collection import NOT_LISTED, WHY, Kind

MAX_EXAMPLES = 100
"""Maximum records that could not be read and are named; all are counted."""


@dataclass(slots=True)
class KindStats:
    """Counts of the objects of one kind that a collection deleted, or a dry run would. Of a metadata file or manifest
    list, `bytes` includes 256 KiB at most, of a tombstone nothing. `oldest_ms` is the time at which the oldest one was
    written, by the store's clock, of a tombstone the time of the purge or drop; None if it is unknown."""

    count: int = 0
    bytes: int = 0
    oldest_ms: int | None = None

    def add(self, other: "KindStats") -> None:
        """Adds the counts of other objects of the same kind to these, and takes their first time if it is before this
        one."""
        self.count += other.count
        self.bytes += other.bytes
        known = [each for each in (self.oldest_ms, other.oldest_ms) if each is not None]
        self.oldest_ms = min(known, default=None)


@dataclass(slots=True)
class CollectionStats:
    """Counts of a collection, or of what a dry run would do: the collected objects by kind, the objects that it listed,
    the missing hints of tasks that it put, the metadata files of views that it left although it collected their
    pointer, and in `unreadable_count` the records that could not be read, for which objects are kept, with examples.
    `stopped` is whether it stopped early."""

    kinds: dict[Kind, KindStats] = field(default_factory=dict)
    listed: int = 0
    hints_put: int = 0
    files_left: int = 0
    stopped: bool = False
    unreadable_count: int = 0
    unreadable: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of objects of all kinds that were collected, or by a dry run would be."""
        return sum(each.count for each in self.kinds.values())

    @property
    def left(self) -> int:
        """The number of objects of the catalog's state that the collection listed, less the collected ones. It may be
        more than are left: a marker or task counts as one collected object, and some objects are listed more than
        once."""
        return self.listed - sum(each.count for kind, each in self.kinds.items() if kind not in NOT_LISTED)

    @property
    def bytes(self) -> int:
        """The number of bytes, as `KindStats` counts them, of all objects that were collected, or by a dry
        run would be."""
        return sum(each.bytes for each in self.kinds.values())

    def collects(self, kind: Kind, *, size: int = 0, written_ms: int | None = None) -> None:
        """Counts one collected object of a kind, with the size in bytes and the time at which it was written, None if
        that is unknown."""
        self.kinds.setdefault(kind, KindStats()).add(KindStats(1, size, written_ms))

    def fails(self, reason: str) -> None:
        """Counts a failure because of which objects are kept, such as a record that could not be read, and keeps the
        reason for the report unless there are `MAX_EXAMPLES` already."""
        self.unreadable_count += 1
        if len(self.unreadable) < MAX_EXAMPLES:
            self.unreadable.append(reason)

    def add(self, other: "CollectionStats") -> None:
        """Adds the counts of another run or batch, and the reasons of failures up to `MAX_EXAMPLES` in all. `stopped`
        is true then if it was in one of the two."""
        for kind, counts in other.kinds.items():
            self.kinds.setdefault(kind, KindStats()).add(counts)
        self.listed += other.listed
        self.hints_put += other.hints_put
        self.files_left += other.files_left
        self.stopped |= other.stopped
        self.unreadable_count += other.unreadable_count
        self.unreadable += other.unreadable[: MAX_EXAMPLES - len(self.unreadable)]

    def to_json(self) -> JsonObject:
        """Returns the counts as the fields of a report: the totals, under `kinds` for each kind of which objects were
        found, with the reason, and the examples of records that could not be read."""
        kinds: list[JsonValue] = [
            {
                "kind": kind.value,
                "count": self.kinds[kind].count,
                "bytes": self.kinds[kind].bytes,
                "oldest_ms": self.kinds[kind].oldest_ms,
                "why": WHY[kind],
            }
            for kind in Kind
            if kind in self.kinds
        ]
        unreadable: list[JsonValue] = [*self.unreadable]
        return {
            "count": self.count,
            "bytes": self.bytes,
            "kinds": kinds,
            "listed": self.listed,
            "hints_put": self.hints_put,
            "files_left": self.files_left,
            "stopped": self.stopped,
            "unreadable_count": self.unreadable_count,
            "unreadable": unreadable,
        }
