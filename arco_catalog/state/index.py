"""The registry's index: an immutable ordered map from keys to entries (design.md 5, "Registry").

Keys are strings ordered by (kind, parent, name), so that listing one level is a range. Tables and views are one kind:
they share one name space. Names hold no control characters, which makes tab and newline safe separators.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence

from arco_catalog.iceberg.json import JsonObject

Namespace = tuple[str, ...]
"""Levels of a namespace, outermost first; empty for the catalog itself."""

Edits = Mapping[str, JsonObject | None]
"""What a registry commit changes: entries by key, None to remove."""


def _level(kind: str, parent: Sequence[str]) -> str:
    return f"{kind}\n{chr(9).join(parent)}\n"


def namespace_key(namespace: Namespace) -> str:
    """Key of a namespace, which lies in its parent's level."""
    return _level("namespace", namespace[:-1]) + namespace[-1]


def namespaces_in(parent: Namespace) -> str:
    """Prefix of the keys of a namespace's direct children."""
    return _level("namespace", parent)


def relation_key(namespace: Namespace, name: str) -> str:
    """Key of a table or view."""
    return _level("relation", namespace) + name


def relations_in(namespace: Namespace) -> str:
    """Prefix of the keys of a namespace's tables and views."""
    return _level("relation", namespace)


def tombstone_key(namespace: Namespace, name: str, entity: str) -> str:
    """Key of a dropped table or view; one name may have many."""
    return f"{_level('tombstone', namespace)}{name}\n{entity}"


def tombstones_of(namespace: Namespace, name: str) -> str:
    """Prefix of the keys of everything that was dropped under a name."""
    return f"{_level('tombstone', namespace)}{name}\n"


def location_key(location: str, entity: str) -> str:
    """Key of one entity's hold on one normalised location."""
    return f"{locations_at(location)}\n{entity}"


def locations_at(location: str) -> str:
    """Prefix of the keys of all holds on a location and on whatever lies inside it."""
    return f"location\n{location.rstrip('/')}/"


class Index:
    """An ordered map that is never changed, only succeeded."""

    __slots__ = ("_entries", "_order")

    def __init__(self, entries: dict[str, JsonObject], order: list[str] | None = None) -> None:
        self._entries = entries
        self._order = sorted(entries) if order is None else order

    def get(self, key: str) -> JsonObject | None:
        """The entry of a key."""
        return self._entries.get(key)

    def scan(self, prefix: str, after: str | None = None) -> Iterator[tuple[str, JsonObject]]:
        """Entries whose keys start with `prefix`, in order, from behind the key `after`."""
        start = bisect_left(self._order, prefix) if after is None else bisect_right(self._order, after)
        for place in range(start, len(self._order)):
            key = self._order[place]
            if not key.startswith(prefix):
                return
            yield key, self._entries[key]

    def any_in(self, prefix: str) -> bool:
        """Whether any key starts with `prefix`."""
        return next(self.scan(prefix), None) is not None

    def edited(self, edits: Edits) -> "Index":
        """The index after a commit."""
        entries, order = dict(self._entries), list(self._order)
        for key, entry in edits.items():
            known = key in entries
            if entry is None:
                if known:
                    del entries[key]
                    del order[bisect_left(order, key)]
                continue
            if not known:
                insort(order, key)
            entries[key] = entry
        return Index(entries, order)

    def to_json(self) -> JsonObject:
        """The entries by key, for a reader who sorts or not."""
        return dict(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
