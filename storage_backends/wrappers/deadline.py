"""Applies a request's deadline to each store call (docs/design/commit.md#unknown-outcomes)."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from storage_backends.base import (
    ANY,
    Cursor,
    Found,
    Missing,
    ObjectStore,
    Outcome,
    Page,
    StoreUnavailable,
    Unchanged,
    Unknown,
    Version,
    When,
)
from storage_backends.eager import Done, run_until_it_waits

_Answer = TypeVar("_Answer")


class DeadlineStore:
    """One request's view of a store, good until `deadline_ms` on the wall clock `now_ms`.

    Before every call the wall clock is read, since a monotonic clock stops while a machine sleeps
    (docs/design/commit.md#rule-5): no call begins after the deadline, it raises `StoreUnavailable` and nothing was
    sent. When the deadline passes within a call, a read raises `StoreUnavailable`, and a write is `Unknown`: it may
    still land.
    """

    def __init__(self, inner: ObjectStore, deadline_ms: int, now_ms: Callable[[], int]) -> None:
        self._inner = inner
        self._deadline_ms = deadline_ms
        self._now_ms = now_ms

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """See `ObjectStore.get`."""
        return await self._read(self._seconds_left(), self._inner.get(key, if_changed_from))

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """See `ObjectStore.get_range`."""
        return await self._read(self._seconds_left(), self._inner.get_range(key, start, length))

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """See `ObjectStore.put`."""
        return await self._write(self._seconds_left(), self._inner.put(key, body, when))

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """See `ObjectStore.delete`."""
        return await self._write(self._seconds_left(), self._inner.delete(key, when))

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """See `ObjectStore.list`."""
        return await self._read(self._seconds_left(), self._inner.list(prefix, after))

    async def close(self) -> None:
        """Does nothing: the store outlives the request."""

    async def _read(self, seconds: float, call: Coroutine[Any, Any, _Answer]) -> _Answer:
        begun = run_until_it_waits(call)
        if isinstance(begun, Done):
            return begun.value
        scope = asyncio.timeout(seconds)
        try:
            async with scope:
                return await begun
        except TimeoutError as error:
            if not scope.expired():
                raise
            raise StoreUnavailable("the request's deadline has passed") from error

    async def _write(self, seconds: float, call: Coroutine[Any, Any, Outcome]) -> Outcome:
        begun = run_until_it_waits(call)
        if isinstance(begun, Done):
            return begun.value
        scope = asyncio.timeout(seconds)
        try:
            async with scope:
                return await begun
        except TimeoutError:
            if not scope.expired():
                raise
            return Unknown("the request's deadline has passed")

    def _seconds_left(self) -> float:
        """Raises `StoreUnavailable` if there are none. Arguments are evaluated in order: no call begins then."""
        left_ms = self._deadline_ms - self._now_ms()
        if left_ms <= 0:
            raise StoreUnavailable("the request's deadline has passed")
        return left_ms / 1000
