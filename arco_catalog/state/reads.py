"""What a plan of a registry change has read, with digests by which another process sees whether it still holds
(docs/design/registry.md#proposals).

A plan declares its lookups as `Needs` before it makes them, and is a function of what they find. If all of that is the
same on a later HEAD, the plan would be the same there.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Self

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.state.fields import mapping, optional_text, text
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Needs, Scan, Steps, T
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.segments import encode_line
from storage_backends.lazy_dataclass import dataclass

_HISTORY = frozenset(
    {
        "id",
        "parent",
        "ancestor",
        "sequence",
        "at_ms",
        "operations",
        "recent",
        "before",
        "cancelled",
        "bell",
        "writers",
        "index",
    }
)
"""The fields of HEAD that belong to one commit and to the history. All others count as read."""


@dataclass(frozen=True, slots=True)
class RangeRead:
    """The digest of the keys and entries that a scan found, up to the key `last`, where the scan stopped early, or to
    its end."""

    digest: str
    last: str | None = None


@dataclass(frozen=True, slots=True)
class Reads:
    """What the plan of a registry change relies on, as digests: the fields of HEAD apart from the index, the commit and
    the history (`settings`), the entries of keys (None for a key without one), scans by prefix, and holds by
    location."""

    settings: str
    keys: Mapping[str, str | None]
    ranges: Mapping[str, RangeRead]
    holds: Mapping[str, str]

    @classmethod
    def of(cls, head: RegistryState, lookups: Iterable[Needs]) -> Self:
        """Returns the digests of what these lookups find on a HEAD. All segments that they need must be loaded. Raises
        `InternalError` for a lookup of a segment as such."""
        keys: dict[str, None] = {}
        ends: dict[str, str | None] = {}
        holds: dict[str, None] = {}
        for needs in lookups:
            if needs.segments:
                raise InternalError("a plan that reads whole segments cannot be compared with a later HEAD")
            keys |= dict.fromkeys(needs.keys)
            holds |= dict.fromkeys(needs.holds)
            for scan in needs.scans:
                last = _last_key(head.index, scan)
                ends[scan.prefix] = last if scan.prefix not in ends else _later(ends[scan.prefix], last)
        return cls._found(head, keys, ends, holds)

    def on(self, head: RegistryState) -> Steps[Self]:
        """Returns the digests of what the same lookups find on another HEAD; scans end at the keys where they ended
        before."""
        yield Needs(keys=[*self.keys], scans=[Scan(prefix) for prefix in self.ranges], holds=[*self.holds])
        ends = {prefix: read.last for prefix, read in self.ranges.items()}
        return self._found(head, self.keys, ends, self.holds)

    @classmethod
    def _found(
        cls, head: RegistryState, keys: Iterable[str], ends: Mapping[str, str | None], holds: Iterable[str]
    ) -> Self:
        """Returns the digests of what is on a HEAD: of its fields apart from the index, the commit and the history, of
        the entries of `keys`, of the ranges of prefixes up to `ends` (None for a whole range), and of the holds on
        locations."""
        index = head.index
        return cls(
            settings=_digest({name: value for name, value in head.document.items() if name not in _HISTORY}),
            keys={key: None if (entry := index.get(key)) is None else _digest(entry) for key in keys},
            ranges={prefix: RangeRead(_digest_up_to(index, prefix, last), last) for prefix, last in ends.items()},
            holds={location: _digest_of_all(index.holds_on(location)) for location in holds},
        )

    def to_json(self) -> JsonObject:
        """Returns the form in which a proposal stores the reads."""
        ranges: JsonObject = {
            prefix: {"digest": read.digest, "last": read.last} for prefix, read in self.ranges.items()
        }
        return {"settings": self.settings, "keys": {**self.keys}, "ranges": ranges, "holds": {**self.holds}}

    @classmethod
    def parse(cls, stored: JsonObject) -> Self:
        """Reads the digests of a plan's lookups, as a proposal stores them. Raises `InternalError`."""
        keys, ranges, holds = (mapping(stored, name) for name in ("keys", "ranges", "holds"))
        return cls(
            settings=text(stored, "settings"),
            keys={key: None if keys[key] is None else text(keys, key) for key in keys},
            ranges={
                prefix: RangeRead(text(read, "digest"), optional_text(read, "last"))
                for prefix in ranges
                for read in (mapping(ranges, prefix),)
            },
            holds={location: text(holds, location) for location in holds},
        )


def recorded(steps: Steps[T], lookups: list[Needs]) -> Steps[T]:
    """Returns the same computation, which also appends its lookups to `lookups`."""
    while True:
        try:
            needs = next(steps)
        except StopIteration as end:
            value: T = end.value
            return value
        lookups.append(needs)
        yield needs


def _last_key(index: Index, scan: Scan) -> str | None:
    """Returns the key at which a scan of the index ends early, None if it does not."""
    return next((key for key, entry in index.scan(scan.prefix) if scan.until(entry)), None)


def _later(one: str | None, other: str | None) -> str | None:
    """Returns where the longer of two scans of one range ends; None is the end of the range."""
    return None if one is None or other is None else max(one, other)


def _digest_up_to(index: Index, prefix: str, last: str | None) -> str:
    """Returns the digest of the entries below a prefix up to the key `last`; of all for None."""
    scanned = index.scan(prefix)
    return _digest_of_all(scanned if last is None else ((key, entry) for key, entry in scanned if key <= last))


def _digest_of_all(entries: Iterable[tuple[str, JsonObject]]) -> str:
    """Returns the SHA-256, in hex, of these keys and entries of the index."""
    found = sha256()
    for key, entry in entries:
        found.update(encode_line(key, entry) + b"\n")
    return found.hexdigest()


def _digest(value: JsonValue) -> str:
    """Returns the SHA-256, in hex, of a value in JSON."""
    return sha256(dumps(value, sort_keys=True)).hexdigest()
