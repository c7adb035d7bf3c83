"""What a collection found: for each kind how many objects, how large, how old."""

from dataclasses import dataclass, field

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.collection import WHY, Kind

MAX_EXAMPLES = 100
"""How many records that could not be read are named; all are counted."""


@dataclass(slots=True)
class Collected:
    """Of one kind. `oldest_ms` is when the oldest was written, by the store's clock; None where nothing tells."""

    count: int = 0
    bytes: int = 0
    oldest_ms: int | None = None

    def add(self, other: "Collected") -> None:
        """Adds another's counts."""
        self.count += other.count
        self.bytes += other.bytes
        known = [each for each in (self.oldest_ms, other.oldest_ms) if each is not None]
        self.oldest_ms = min(known, default=None)


@dataclass(slots=True)
class CollectionStats:
    """Of a run. `listed` counts the objects that it has listed; `hints_put` those that waiting tasks had lost, and that
    were put again; `stopped` says that it ended before its end."""

    kinds: dict[Kind, Collected] = field(default_factory=dict)
    listed: int = 0
    hints_put: int = 0
    stopped: bool = False
    unreadable_count: int = 0
    unreadable: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many objects were collected."""
        return sum(each.count for each in self.kinds.values())

    @property
    def bytes(self) -> int:
        """How large they were."""
        return sum(each.bytes for each in self.kinds.values())

    def collects(self, kind: Kind, *, size: int = 0, written_ms: int | None = None) -> None:
        """Counts one object."""
        self.kinds.setdefault(kind, Collected()).add(Collected(1, size, written_ms))

    def fails(self, reason: str) -> None:
        """Counts something that could not be read, and is kept."""
        self.unreadable_count += 1
        if len(self.unreadable) < MAX_EXAMPLES:
            self.unreadable.append(reason)

    def add(self, other: "CollectionStats") -> None:
        """Adds another's counts, and its examples while there is room."""
        for kind, collected in other.kinds.items():
            self.kinds.setdefault(kind, Collected()).add(collected)
        self.listed += other.listed
        self.hints_put += other.hints_put
        self.stopped |= other.stopped
        self.unreadable_count += other.unreadable_count
        self.unreadable += other.unreadable[: MAX_EXAMPLES - len(self.unreadable)]

    def to_json(self) -> JsonObject:
        """For people and machines."""
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
            "stopped": self.stopped,
            "unreadable_count": self.unreadable_count,
            "unreadable": unreadable,
        }
