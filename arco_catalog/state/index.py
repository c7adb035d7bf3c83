"""The registry's index: an immutable ordered map from keys to entries (docs/design/registry.md#index).

Keys are strings ordered by (kind, parent, name), so that listing one level is a range. Tables and views are one kind:
they share one name space. Names hold no control characters, which makes tab and newline safe separators.

Holds on locations are ordered so that a location is followed by all that lies inside it: the slash at its end is part
of the key, and the newline behind that sorts before any name.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from operator import itemgetter

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import mapping, sequence
from arco_catalog.state.needs import Needs, Scan, never
from arco_catalog.state.segments import Directory, KeyRange, Ref, Segment, depth, numbered

Namespace = tuple[str, ...]
"""Levels of a namespace, outermost first; empty for the catalog itself."""

Edits = Mapping[str, JsonObject | None]
"""What a registry commit changes: entries by key, None to remove."""


def level(kind: str, parent: Sequence[str]) -> str:
    """Returns the prefix of the index keys of all entries of one kind that are directly below one parent."""
    return f"{kind}\n{chr(9).join(parent)}\n"


def namespace_key(namespace: Namespace) -> str:
    """Returns the index key of a namespace's entry, which lies in its parent's level."""
    return level("namespace", namespace[:-1]) + namespace[-1]


def namespaces_in(parent: Namespace) -> str:
    """Returns the prefix of the index keys of a namespace's direct children."""
    return level("namespace", parent)


def relation_key(namespace: Namespace, name: str) -> str:
    """Returns the index key of the entry of a table, view, generic table or semantic model."""
    return level("relation", namespace) + name


def name_in(key: str) -> tuple[Namespace, str]:
    """Returns the namespace and the name in the key of a relation or of a tombstone, and the parent and the last level
    in the key of a namespace."""
    _, levels, name = key.split("\n")[:3]
    return tuple(levels.split("\t")) if levels else (), name


def relations_in(namespace: Namespace) -> str:
    """Returns the prefix of the index keys of a namespace's tables, views, generic tables and semantic models."""
    return level("relation", namespace)


def tombstone_key(namespace: Namespace, name: str, entity: str) -> str:
    """Returns the index key of the tombstone of a dropped table, view or other relation; one name may have many."""
    return f"{level('tombstone', namespace)}{name}\n{entity}"


def tombstones_of(namespace: Namespace, name: str) -> str:
    """Returns the prefix of the index keys of everything that was dropped under a name."""
    return f"{level('tombstone', namespace)}{name}\n"


def location_key(location: str, entity: str) -> str:
    """Returns the index key of one entity's hold on one normalised location."""
    return f"{locations_at(location)}\n{entity}"


def locations_at(location: str) -> str:
    """Returns the prefix of the index keys of all holds on a location and on whatever lies inside it."""
    return f"location\n{location.rstrip('/')}/"


def released_key(location: str, entity: str) -> str:
    """Returns the index key of a dropped entity's claim on a location, which other entities may hold again."""
    return f"{released_at(location)}\n{entity}"


def released_at(location: str) -> str:
    """Returns the prefix of the index keys of all claims of dropped entities on a location and on whatever lies inside
    it."""
    return f"dropped\n{location.rstrip('/')}/"


def _end_of(prefix: str) -> str | None:
    """Returns the first string after all strings that start with `prefix`; None if that is empty."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else None


SegmentLookup = Callable[[str], Segment | None]
"""Returns a loaded segment by its id, None if it is not loaded."""


def no_segments(_: str) -> Segment | None:
    """Returns None: the lookup of an index without loaded segments."""
    return None


class Index:
    """An immutable ordered map from keys to entries.

    It consists of latest edits, of which None removes a key, and a directory of segments, which the edits override. The
    segments that a lookup needs (`missing`) must be loaded before it: without one the lookup raises `InternalError`.
    """

    __slots__ = ("_order", "directory", "edits", "segment_lookup")

    def __init__(
        self,
        edits: Mapping[str, JsonObject | None],
        directory: Directory | None = None,
        segment_lookup: SegmentLookup = no_segments,
        order: list[str] | None = None,
    ) -> None:
        self.edits: Mapping[str, JsonObject | None] = edits
        """The entries that no segment has yet; None for a removed key."""
        self._order = sorted(edits) if order is None else order
        self.segment_lookup = segment_lookup
        self.directory = Directory() if directory is None else directory

    def with_segments(self, segment_lookup: SegmentLookup) -> "Index":
        """Returns this index with another function that looks up loaded segments."""
        return Index(self.edits, self.directory, segment_lookup, self._order)

    def missing(self, needs: Needs) -> Sequence[str]:
        """Returns the ids of segments that must be loaded before these needs can be met; empty if all are loaded.
        A scan that may end early gets its segments one by one, so the caller must repeat the call after loading
        them."""
        if not self.directory.refs:
            return ()
        refs = [*needs.segments, *(self.directory.covering(key) for key in needs.keys if key not in self.edits)]
        refs += [key_range.ref for location in needs.holds for key_range in self._ranges_of_holds(location)]
        for scan in needs.scans:
            refs += self._missing_of(scan)
        return sorted({ref.id for ref in refs if ref is not None and not self._has(ref)})

    def _missing_of(self, scan: Scan) -> Iterable[Ref]:
        """Yields the segments that a scan needs and that are not loaded. Of a scan that may end early it yields the
        first of them at most, and none if an entry in the segments or edits before that ends the scan."""
        for key_range in self.key_ranges(scan.prefix):
            if key_range.ref is not None and not self._has(key_range.ref):
                yield key_range.ref
                if scan.until is not never:
                    return
            elif scan.until is not never:
                entries = self.entries(key_range, self.loaded(key_range.ref))
                if any(scan.until(entry) for _, entry in entries):
                    return

    def _has(self, ref: Ref) -> bool:
        """Whether a segment of the index is loaded."""
        return self.segment_lookup(ref.id) is not None

    def loaded(self, ref: Ref | None) -> Segment | None:
        """Returns the loaded segment of a reference, None for None. Raises `InternalError` if it is not loaded."""
        if ref is None:
            return None
        segment = self.segment_lookup(ref.id)
        if segment is None:
            raise InternalError(f"segment {ref.id} of the registry's index was used before it was loaded")
        return segment

    def get(self, key: str) -> JsonObject | None:
        """Returns the entry of a key in the index, None if there is none. The segment that covers the key must be
        loaded, unless the edits have the key."""
        if key in self.edits:
            return self.edits[key]
        if not self.directory.refs:
            return None
        segment = self.loaded(self.directory.covering(key))
        return None if segment is None else segment.get(key)

    def get_all(self, keys: Iterable[str]) -> Mapping[str, JsonObject]:
        """Returns the entries in the index of those of these keys that exist. For many keys this is cheaper than `get`
        for each. The segments that cover them must be loaded, except for keys that the edits have."""
        found: dict[str, JsonObject] = {}
        older: dict[Ref, list[str]] = {}
        for key in keys:
            if key in self.edits:
                entry = self.edits[key]
                if entry is not None:
                    found[key] = entry
            elif (ref := self.directory.covering(key)) is not None:
                older.setdefault(ref, []).append(key)
        for ref, wanted in older.items():
            segment = self.loaded(ref)
            found |= {} if segment is None else segment.get_all(wanted)
        return found

    def bytes_below(self, prefix: str) -> int:
        """Returns an upper bound of the bytes of segments that a scan of the keys with this prefix reads."""
        ranges = self.key_ranges(prefix)
        return sum(key_range.ref.size for key_range in ranges if key_range.ref is not None)

    def scan(self, prefix: str, start: str | None = None) -> Iterator[tuple[str, JsonObject]]:
        """Iterates over the keys of the index that start with `prefix` and their entries in order, from the key `start`
        on if it is given."""
        for key_range in self.key_ranges(prefix, start):
            yield from self.entries(key_range, self.loaded(key_range.ref))

    def key_ranges(self, prefix: str, start: str | None = None) -> Iterator[KeyRange]:
        """Iterates over the key ranges of a scan of the index, from the key `start` on if it is given, each covered by
        at most one segment."""
        return self.directory.key_ranges(max(prefix, start or prefix), _end_of(prefix))

    def entries(
        self, key_range: KeyRange, segment: Segment | None, selects: Callable[[str], bool] | None = None
    ) -> Iterator[tuple[str, JsonObject]]:
        """Iterates in order over the keys and entries of a key range of the index: those of `segment`, which covers the
        range, changed by the latest edits, so without removed keys. Without a segment only those of the edits; with
        `selects` only the keys that it selects."""
        recent = ((key, self.edits[key]) for key in self.edited_in(key_range) if selects is None or selects(key))
        older = () if segment is None else segment.scan(key_range.low, key_range.high, selects)
        there = ((key, entry) for key, entry in older if key not in self.edits)
        for key, entry in merge(recent, there, key=itemgetter(0)):
            if entry is not None:
                yield key, entry

    def edited_in(self, key_range: KeyRange) -> Iterator[str]:
        """Iterates over the keys of a key range that are among the edits, removed ones too, in order. It is lazy,
        because a page reads few of them."""
        end = len(self._order) if key_range.high is None else bisect_left(self._order, key_range.high)
        return (self._order[place] for place in range(bisect_left(self._order, key_range.low), end))

    def any_in(self, prefix: str) -> bool:
        """Whether any key of the index starts with `prefix`."""
        return next(self.scan(prefix), None) is not None

    def holds_on(self, location: str) -> Iterator[tuple[str, JsonObject]]:
        """Iterates over the holds on a normalised location itself, without those on locations inside it."""
        for key_range in self._ranges_of_holds(location):
            yield from self.entries(key_range, self.loaded(key_range.ref))

    def _ranges_of_holds(self, location: str) -> Iterator[KeyRange]:
        """Iterates over the key ranges of the holds on a location. If the directory shows that a segment has none, the
        range has no reference to it, so that it is not loaded. This is usual for the ancestors of default locations."""
        prefix = f"{locations_at(location)}\n"
        for key_range in self.key_ranges(prefix):
            ref = key_range.ref
            if ref is not None and not numbered(locations_at(location)):
                may_hold = ref.shallowest is not None and ref.shallowest <= depth(prefix)
                key_range = key_range if may_hold else KeyRange(key_range.low, key_range.high, None)
            yield key_range

    def edited(self, edits: Edits) -> "Index":
        """Returns the index after a commit with these edits; this one stays as it is."""
        after = Growing(self)
        after.add(edits)
        return Index(after.edits, self.directory, self.segment_lookup, after._order)

    def to_json(self) -> JsonObject:
        """Returns the JSON of the index: its edits, and the directory of segments if it has any."""
        stored: JsonObject = {"embedded": dict(self.edits)}
        if self.directory.refs:
            stored["segments"] = [ref.to_json() for ref in self.directory.refs]
        return stored

    @classmethod
    def parse(cls, stored: JsonObject) -> "Index":
        """Reads an index, without loaded segments, from its JSON. Embedded entries other than objects and null are left
        out. Raises `InternalError` for a corrupt reference to a segment."""
        embedded = mapping(stored, "embedded")
        edits = {key: entry for key, entry in embedded.items() if entry is None or isinstance(entry, dict)}
        return cls(edits, Directory([Ref.parse(item) for item in sequence(stored, "segments")]))


class Growing(Index):
    """A copy of an index that edits are added to. A batch of changes, of which each is planned on the index after those
    before it, needs one copy instead of one for each change."""

    __slots__ = ("_after",)

    def __init__(self, index: Index) -> None:
        self._after = dict(index.edits)
        super().__init__(self._after, index.directory, index.segment_lookup, list(index._order))

    def add(self, edits: Edits) -> None:
        """Applies edits to this index in place. All lookups see them from then on. A removal of a key that no segment
        covers leaves no trace in the edits."""
        for key, entry in edits.items():
            known = key in self._after
            if entry is None and self.directory.covering(key) is None:
                if known:
                    del self._after[key]
                    del self._order[bisect_left(self._order, key)]
                continue
            if not known:
                insort(self._order, key)
            self._after[key] = entry
