"""A least-recently-used cache bounded in bytes."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


ENTRY_BYTES = 256
"""What an entry takes beside its value: the key, and its place in the table."""


class ByteCache(Generic[K, V]):
    """Keeps what was used last, as long as the sizes that came with it, and `ENTRY_BYTES` for each, add up to no more
    than `limit` bytes. Keys are of bounded length."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size = 0

    def get(self, key: K) -> V | None:
        """What was kept under the key."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Keeps a value of `size` bytes; one larger than the whole cache is not kept."""
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
        """Forgets a key."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= entry[1]

    def __len__(self) -> int:
        return len(self._entries)
