"""Caches bounded in bytes, from which values go that were not used for the longest time."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from array import array

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


ENTRY_BYTES = 256
"""The memory of an entry without its value, in bytes: the key, and its slot in the table."""


class ByteCache(Generic[K, V]):
    """A cache that drops the least recently used entries so that their sizes, with `ENTRY_BYTES` for each, add up to at
    most `limit` bytes. Keys must be of bounded length."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size = 0

    def get(self, key: K) -> V | None:
        """Returns the value of a key in this cache, which counts as used now; None if it is not cached."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Caches a value of `size` bytes in place of the one before, and drops the least recently used others if there
        is no room. A value that is larger than the cache is not cached, and the one before is dropped."""
        self.drop(key)
        size += ENTRY_BYTES
        if size > self._limit:
            return
        self._entries[key] = (value, size)
        self.size += size
        while self.size > self._limit:
            _, (_, gone) = self._entries.popitem(last=False)
            self.size -= gone

    def drop(self, key: K) -> None:
        """Removes a key and its value from this cache; does nothing if it is not cached."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= entry[1]

    def __len__(self) -> int:
        return len(self._entries)


REQUESTS = 1 << 15
"""Requests of a `SelectiveCache` that are remembered, roughly."""


class SelectiveCache(Generic[K, V]):
    """A cache of values that take work to put into it. It takes a value that was requested before, and drops only
    values that were last used before that request: of more values than it has room for, requested in turn, a part stays
    there, and the rest takes no work in vain. Sizes are counted as in `ByteCache`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[K, tuple[V, int, int]] = OrderedDict()
        self._requests: array[int] | None = None
        self._now = 0
        self.size = 0

    def get(self, key: K) -> V | None:
        """Returns the value of a key, which counts as used now; None if it is not cached."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._now += 1
        self._entries[key] = (entry[0], entry[1], self._now)
        self._entries.move_to_end(key)
        return entry[0]

    def request(self, key: Hashable) -> int | None:
        """Records that values were requested by a key, not necessarily that of one of them. Returns the time of the
        request before it if the cache has room for a value of that time: it is not nearly full, or has a value that was
        last used before that. Otherwise, and for the first request, returns None. Two keys may, rarely, count as
        one."""
        if self._requests is None:
            from array import array  # few processes need it

            self._requests = array("q", bytes(8 * REQUESTS))
        place = hash(key) % REQUESTS
        self._now += 1
        before, self._requests[place] = self._requests[place], self._now
        return before if before and (self.size < self._limit * 15 // 16 or self._oldest < before) else None

    def put(self, key: K, value: V, size: int, requested: int) -> None:
        """Puts a value of `size` bytes in place of the one before, and drops the least recently used others if there is
        no room, but none that was used at the time `requested` (as `request` returns it) or later. Without room after
        that the value is not cached, and the one before is dropped."""
        entry = self._entries.pop(key, None)
        self.size -= 0 if entry is None else entry[1]
        size += ENTRY_BYTES
        while self.size + size > self._limit and self._oldest < requested:
            _, (_, gone, _) = self._entries.popitem(last=False)
            self.size -= gone
        if self.size + size <= self._limit:
            self._now += 1
            self._entries[key] = (value, size, self._now)
            self.size += size

    @property
    def _oldest(self) -> int:
        """The time, in uses and requests of the cache, at which its least recently used value was used; later than now
        if it has no value."""
        return next((used for _, _, used in self._entries.values()), self._now + 1)

    def __len__(self) -> int:
        return len(self._entries)
