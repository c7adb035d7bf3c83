"""The store in the memory of one process, as strict as the best of the real ones."""

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence

from storage_backends.base import (
    ANY,
    Applied,
    Cursor,
    Deleted,
    Found,
    Listed,
    Missing,
    Outcome,
    Page,
    PreconditionFailed,
    Unchanged,
    Version,
    When,
)
from storage_backends.bulk import check_number
from storage_backends.clock import system_now_ms
from storage_backends.lazy_dataclass import dataclass
from storage_backends.validation import PAGE_SIZE, check_deletable, check_key, check_range, holds


@dataclass(frozen=True, slots=True)
class _Object:
    """An object of a store in memory, with the time of the write in milliseconds since 1970."""

    body: bytes
    version: Version
    written_ms: int


class MemoryStore:
    """A store in memory: objects in a dict. One counter makes the versions of all keys and never restarts, so no
    deletion, re-creation or equal body ever makes an old version valid again.

    Every call lets other tasks run once before it acts, all at once, so that tasks interleave between calls as they do
    over a network. Not for several threads.
    """

    def __init__(self, now_ms: Callable[[], int] = system_now_ms) -> None:
        self._now_ms = now_ms
        self._objects: dict[str, _Object] = {}
        self._sorted_keys: list[str] = []
        self._versions_made = 0

    def keys(self, prefix: str = "") -> Sequence[str]:
        """Returns every key in this store in memory that starts with `prefix`, in order, for tests."""
        return [key for key in self._sorted_keys if key.startswith(prefix)]

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Iterates over all keys of this store in memory, in no order, each with the size of its object in bytes."""
        return ((key, len(found.body)) for key, found in self._objects.items())

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """Returns the object at a key, `Unchanged` if it still has the version `if_changed_from`, or `Missing` if there
        is none."""
        check_key(key)
        await asyncio.sleep(0)
        current = self._objects.get(key)
        if current is None:
            return Missing(self._now_ms())
        if current.version == if_changed_from:
            return Unchanged(self._now_ms())
        return Found(current.body, current.version, current.written_ms, self._now_ms())

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """Returns the bytes of an object from `start` up to `start + length`, fewer at the end of the object and none
        after it, with the version of the object; `Missing` if there is none. Raises ValueError for a negative start or
        a length under 1."""
        check_range(start, length)
        found = await self.get(key)
        if not isinstance(found, Found):
            return Missing(found.now_ms)
        return Found(found.body[start : start + length], found.version, found.written_ms, found.now_ms)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes an object if the condition `when` holds. Returns `Applied` with the new version, `PreconditionFailed`
        if the condition does not hold."""
        check_key(key)
        await asyncio.sleep(0)
        now_ms = self._now_ms()
        current = self._objects.get(key)
        version = None if current is None else current.version
        if not holds(when, version):
            return PreconditionFailed(version, now_ms)
        self._versions_made += 1
        version = Version(str(self._versions_made))
        self._objects[key] = _Object(bytes(body), version, now_ms)
        if current is None:
            insort(self._sorted_keys, key)
        return Applied(version, now_ms)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Deletes an object if the condition `when` holds, and returns the outcome: for a missing object `Applied`
        under `ANY`, and `PreconditionFailed` under a version. Raises ValueError for `ABSENT`."""
        check_key(key)
        check_deletable(when)
        await asyncio.sleep(0)
        now_ms = self._now_ms()
        current = self._objects.get(key)
        version = None if current is None else current.version
        if not holds(when, version):
            return PreconditionFailed(version, now_ms)
        if current is None:
            return Applied(Version(""), now_ms)
        del self._objects[key]
        del self._sorted_keys[bisect_left(self._sorted_keys, key)]
        return Applied(current.version, now_ms)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Deletes at most 1,000 objects, whatever their versions, and returns an empty `Deleted`: all are deleted, or
        were missing before. Raises ValueError for more keys."""
        check_number(keys)
        for key in keys:
            check_key(key)
        await asyncio.sleep(0)
        for key in keys:
            if self._objects.pop(key, None) is not None:
                del self._sorted_keys[bisect_left(self._sorted_keys, key)]
        return Deleted({}, self._now_ms())

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """Returns a page of at most 1,000 objects whose keys start with `prefix`, in the order of the keys: the first
        page, or the one after `after`, the last key of a page."""
        await asyncio.sleep(0)
        entries: list[Listed] = []
        first = bisect_left(self._sorted_keys, prefix) if after is None else bisect_right(self._sorted_keys, after)
        for index in range(first, len(self._sorted_keys)):
            key = self._sorted_keys[index]
            if not key.startswith(prefix):
                break
            if len(entries) == PAGE_SIZE:
                return Page(entries, Cursor(entries[-1].key), self._now_ms(), in_order=True)
            found = self._objects[key]
            entries.append(Listed(key, found.version, len(found.body), found.written_ms))
        return Page(entries, None, self._now_ms(), in_order=True)

    async def close(self) -> None:
        """Does nothing: what was stored stays."""
