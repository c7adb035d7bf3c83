"""Adds latency to every call, for benchmarks."""

import asyncio
from collections.abc import Sequence

from storage_backends.base import (
    ANY,
    Cursor,
    Deleted,
    Found,
    Missing,
    ObjectStore,
    Outcome,
    Page,
    Unchanged,
    Version,
    When,
)


class DelayingStore:
    """Passes every call on after `seconds`: what a round trip costs, without a network."""

    def __init__(self, inner: ObjectStore, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """See `ObjectStore.get`."""
        await asyncio.sleep(self._seconds)
        return await self._inner.get(key, if_changed_from)

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """See `ObjectStore.get_range`."""
        await asyncio.sleep(self._seconds)
        return await self._inner.get_range(key, start, length)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """See `ObjectStore.put`."""
        await asyncio.sleep(self._seconds)
        return await self._inner.put(key, body, when)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """See `ObjectStore.delete`."""
        await asyncio.sleep(self._seconds)
        return await self._inner.delete(key, when)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """See `ObjectStore.delete_many`."""
        await asyncio.sleep(self._seconds)
        return await self._inner.delete_many(keys)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """See `ObjectStore.list`."""
        await asyncio.sleep(self._seconds)
        return await self._inner.list(prefix, after)

    async def close(self) -> None:
        """Closes the store inside."""
        await self._inner.close()
