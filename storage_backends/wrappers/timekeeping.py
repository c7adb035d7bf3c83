"""Passes the store's time in each answer on to a callback (docs/design/store.md)."""

from collections.abc import Callable

from storage_backends.base import (
    ANY,
    Cursor,
    Found,
    Missing,
    ObjectStore,
    Outcome,
    Page,
    Unchanged,
    Unknown,
    Version,
    When,
)


class TimekeepingStore:
    """One view of a store. `told(sent_ms, received_ms, store_ms)` hears when a call was sent and answered, by the clock
    `now_ms`, and what time the store said it was meanwhile."""

    def __init__(self, inner: ObjectStore, now_ms: Callable[[], int], told: Callable[[int, int, int], None]) -> None:
        self._inner = inner
        self._now_ms = now_ms
        self._told = told

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """See `ObjectStore.get`."""
        sent_ms = self._now_ms()
        found = await self._inner.get(key, if_changed_from)
        self._told(sent_ms, self._now_ms(), found.now_ms)
        return found

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """See `ObjectStore.get_range`."""
        sent_ms = self._now_ms()
        found = await self._inner.get_range(key, start, length)
        self._told(sent_ms, self._now_ms(), found.now_ms)
        return found

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """See `ObjectStore.put`."""
        return self._heard(self._now_ms(), await self._inner.put(key, body, when))

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """See `ObjectStore.delete`."""
        return self._heard(self._now_ms(), await self._inner.delete(key, when))

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """See `ObjectStore.list`."""
        sent_ms = self._now_ms()
        page = await self._inner.list(prefix, after)
        self._told(sent_ms, self._now_ms(), page.now_ms)
        return page

    async def close(self) -> None:
        """Does nothing: the store outlives the view."""

    def _heard(self, sent_ms: int, outcome: Outcome) -> Outcome:
        if not isinstance(outcome, Unknown):
            self._told(sent_ms, self._now_ms(), outcome.now_ms)
        return outcome
