"""A store that accepts conditions and ignores them. The contract suite and the start-up probe must detect it."""

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


class NonconditionalStore:
    """A test double of the servers that accept conditional headers and write all the same."""

    def __init__(self, inner: ObjectStore) -> None:
        self._inner = inner

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """Answers the whole object, changed or not."""
        return await self._inner.get(key)

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """See `ObjectStore.get_range`."""
        return await self._inner.get_range(key, start, length)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes whatever is there."""
        return await self._inner.put(key, body, ANY)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Removes whatever is there."""
        return await self._inner.delete(key, ANY)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """See `ObjectStore.delete_many`."""
        return await self._inner.delete_many(keys)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """See `ObjectStore.list`."""
        return await self._inner.list(prefix, after)

    async def close(self) -> None:
        """Closes the store inside."""
        await self._inner.close()
