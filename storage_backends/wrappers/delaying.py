"""Delays every call of a store, for benchmarks."""

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
    """A store that passes every call to another one after `seconds`: the time of a round trip, without a network."""

    def __init__(self, inner: ObjectStore, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """Reads the object at a key in the inner store, after the delay. Returns `Unchanged` if it still has the
        version `if_changed_from`, and `Missing` if there is none."""
        await asyncio.sleep(self._seconds)
        return await self._inner.get(key, if_changed_from)

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """Reads the bytes of an object from `start` up to `start + length` in the inner store, after the delay. Returns
        `Missing` if there is no object."""
        await asyncio.sleep(self._seconds)
        return await self._inner.get_range(key, start, length)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes an object, if the condition `when` holds, in the inner store, after the delay. Returns the outcome."""
        await asyncio.sleep(self._seconds)
        return await self._inner.put(key, body, when)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Deletes an object, if the condition `when` holds, in the inner store, after the delay, and returns the
        outcome."""
        await asyncio.sleep(self._seconds)
        return await self._inner.delete(key, when)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Deletes objects, whatever their versions, in the inner store, after the delay. Returns the keys that may
        still exist."""
        await asyncio.sleep(self._seconds)
        return await self._inner.delete_many(keys)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """Lists one page of the objects under a prefix in the inner store, after the delay. Returns the first page, or
        the one after the cursor `after`."""
        await asyncio.sleep(self._seconds)
        return await self._inner.list(prefix, after)

    async def close(self) -> None:
        """Closes the inner store."""
        await self._inner.close()
