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
        """Reads the object at a key, unless the version is still `if_changed_from`, in the inner store, after a delay;
        see `ObjectStore.get`."""
        await asyncio.sleep(self._seconds)
        return await self._inner.get(key, if_changed_from)

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """Reads a part of the object at a key, in the inner store, after a delay; see `ObjectStore.get_range`."""
        await asyncio.sleep(self._seconds)
        return await self._inner.get_range(key, start, length)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes an object if the condition `when` holds, in the inner store, after a delay; see `ObjectStore.put`."""
        await asyncio.sleep(self._seconds)
        return await self._inner.put(key, body, when)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Deletes an object if the condition `when` holds, in the inner store, after a delay; see
        `ObjectStore.delete`."""
        await asyncio.sleep(self._seconds)
        return await self._inner.delete(key, when)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Deletes many objects, whatever their versions, in the inner store, after a delay; see
        `ObjectStore.delete_many`."""
        await asyncio.sleep(self._seconds)
        return await self._inner.delete_many(keys)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """Lists one page of the objects under a prefix, in the inner store, after a delay; see `ObjectStore.list`."""
        await asyncio.sleep(self._seconds)
        return await self._inner.list(prefix, after)

    async def close(self) -> None:
        """Closes the inner store."""
        await self._inner.close()
