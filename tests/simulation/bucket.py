"""The objects themselves: what a store does with a call in the instant in which the call takes effect."""

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from storage_backends import (
    Absent,
    Anything,
    Applied,
    Cursor,
    Found,
    Listed,
    Matches,
    Missing,
    Outcome,
    Page,
    PreconditionFailed,
    Unchanged,
    Version,
    When,
)

Versions = Callable[[bytes, int], Version]
"""How a store names the state of an object: from its body and the number of the write."""


def digest(body: bytes, _: int) -> Version:
    """As S3 does: equal bytes have equal versions, so an old version becomes valid again when its bytes come back."""
    return Version(hashlib.blake2b(body, digest_size=8).hexdigest())


def generation(_: bytes, write: int) -> Version:
    """As GCS does: no version ever comes back."""
    return Version(str(write))


@dataclass(frozen=True, slots=True)
class Stored:
    """One object."""

    body: bytes
    version: Version
    written_ms: int


class Bucket:
    """Objects by key. Every method is one atomic step; `now_ms` is the store's clock.

    Listings come in pages of `page_size` and in an order that means nothing, as on S3 Express.
    """

    def __init__(self, now_ms: Callable[[], int], versions: Versions = digest, page_size: int = 5) -> None:
        self.objects: dict[str, Stored] = {}
        self._now_ms = now_ms
        self._versions = versions
        self._page_size = page_size
        self._writes = 0

    def version(self, key: str) -> Version | None:
        """The current version of an object, None where there is none."""
        stored = self.objects.get(key)
        return stored.version if stored else None

    def get(self, key: str, if_changed_from: Version | None) -> Found | Unchanged | Missing:
        """See `ObjectStore.get`."""
        stored = self.objects.get(key)
        if stored is None:
            return Missing(self._now_ms())
        if stored.version == if_changed_from:
            return Unchanged(self._now_ms())
        return Found(stored.body, stored.version, stored.written_ms, self._now_ms())

    def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """See `ObjectStore.get_range`."""
        stored = self.objects.get(key)
        if stored is None:
            return Missing(self._now_ms())
        return Found(stored.body[start : start + length], stored.version, stored.written_ms, self._now_ms())

    def put(self, key: str, body: bytes, when: When) -> Outcome:
        """See `ObjectStore.put`."""
        current = self.version(key)
        if not _holds(when, current):
            return PreconditionFailed(current, self._now_ms())
        self._writes += 1
        version = self._versions(body, self._writes)
        self.objects[key] = Stored(body, version, self._now_ms())
        return Applied(version, self._now_ms())

    def delete(self, key: str, when: When) -> Outcome:
        """See `ObjectStore.delete`."""
        current = self.version(key)
        if not _holds(when, current):
            return PreconditionFailed(current, self._now_ms())
        self.objects.pop(key, None)
        return Applied(current or Version(""), self._now_ms())

    def list(self, prefix: str, after: Cursor | None) -> Page:
        """See `ObjectStore.list`."""
        places = sorted(_place(key) for key in self.objects if key.startswith(prefix))
        rest = [place for place in places if after is None or place > after]
        page, more = rest[: self._page_size], rest[self._page_size :]
        return Page([self._listed(place) for place in page], Cursor(page[-1]) if more else None, self._now_ms())

    def _listed(self, place: str) -> Listed:
        key = place[_PLACE_DIGITS:]
        stored = self.objects[key]
        return Listed(key, stored.version, len(stored.body), stored.written_ms)


_PLACE_DIGITS = 8


def _place(key: str) -> str:
    """Where a key stands in listings: a meaningless order, the same at all times, so that pages never shift."""
    return f"{zlib.crc32(key.encode()):08x}{key}"


def _holds(when: When, current: Version | None) -> bool:
    match when:
        case Absent():
            return current is None
        case Matches(version):
            return current == version
        case Anything():
            return True
