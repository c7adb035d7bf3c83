"""A least-recently-used cache bounded in bytes."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

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
