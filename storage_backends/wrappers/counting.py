"""Counts what an operation asks of its store, and how many round trips it waits for (design.md, section 8)."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from storage_backends.base import (
    ANY,
    Cursor,
    Found,
    Missing,
    ObjectStore,
    Outcome,
    Page,
    Unchanged,
    Version,
    When,
)

Kind = Literal["get", "put", "delete", "list"]
_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class Measurement:
    """The calls of one operation, in the order in which they began.

    `depth` is the longest chain of calls of which each began after the one before had ended: calls beside each other
    share a depth. It never says less than the operation's own chain of causes; it says more where a call merely
    happened to begin after an unrelated one had ended, so measure over a store that takes an even time
    (`DelayingStore`, or `MemoryStore` where nothing but the store is awaited).
    """

    log: list[tuple[Kind, str]] = field(default_factory=list)
    by_kind: Counter[Kind] = field(default_factory=Counter)
    bytes_read: int = 0
    bytes_written: int = 0
    depth: int = 0
    _deepest_ended: int = 0

    @property
    def calls(self) -> int:
        """How many calls were begun."""
        return len(self.log)

    def _began(self, kind: Kind, key: str) -> int:
        self.log.append((kind, key))
        self.by_kind[kind] += 1
        depth = self._deepest_ended + 1
        self.depth = max(self.depth, depth)
        return depth

    def _ended(self, depth: int) -> None:
        self._deepest_ended = max(self._deepest_ended, depth)


# Tasks inherit the context they are made in, so concurrent operations measure only their own children's calls.
_measuring: ContextVar[tuple[tuple["CountingStore", Measurement], ...]] = ContextVar("_measuring", default=())


class CountingStore:
    """Passes every call on and counts it, failed ones included, for each measurement that surrounds it.

    >>> with store.measure() as measured:
    ...     await load_table(store)
    >>> assert (measured.depth, measured.calls) == (1, 3)
    """

    def __init__(self, inner: ObjectStore) -> None:
        self._inner = inner

    @contextmanager
    def measure(self) -> Iterator[Measurement]:
        """Counts the calls made inside, in this task and in the tasks that it starts. May be nested."""
        measurement = Measurement()
        token = _measuring.set((*_measuring.get(), (self, measurement)))
        try:
            yield measurement
        finally:
            _measuring.reset(token)

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """See `ObjectStore.get`."""
        return await self._count("get", key, lambda: self._inner.get(key, if_changed_from))

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """See `ObjectStore.get_range`. Counted as a get."""
        return await self._count("get", key, lambda: self._inner.get_range(key, start, length))

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """See `ObjectStore.put`."""
        return await self._count("put", key, lambda: self._inner.put(key, body, when), written=len(body))

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """See `ObjectStore.delete`."""
        return await self._count("delete", key, lambda: self._inner.delete(key, when))

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """See `ObjectStore.list`."""
        return await self._count("list", prefix, lambda: self._inner.list(prefix, after))

    async def close(self) -> None:
        """Closes the store inside."""
        await self._inner.close()

    async def _count(
        self, kind: Kind, key: str, call: Callable[[], Awaitable[_Answer]], *, written: int = 0
    ) -> _Answer:
        measurements = [measurement for store, measurement in _measuring.get() if store is self]
        depths = [measurement._began(kind, key) for measurement in measurements]
        read = 0
        try:
            answer = await call()
            read = len(answer.body) if isinstance(answer, Found) else 0
            return answer
        finally:
            for measurement, depth in zip(measurements, depths, strict=True):
                measurement._ended(depth)
                measurement.bytes_written += written
                measurement.bytes_read += read
