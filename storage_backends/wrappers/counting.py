"""Counts an operation's calls to its store, and the sequential round trips among them (docs/design/budgets.md)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

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
from storage_backends.wrappers.measuring import Measurement, MeasuringStore

__all__ = ["CountingStore", "Measurement"]

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
    def measure(self, measurement: Measurement | None = None) -> Iterator[Measurement]:
        """Counts the calls made inside, in this task and in the tasks that it starts, and yields the measurement that
        has them, by default a new one. May be nested."""
        measurement = Measurement() if measurement is None else measurement
        token = _measuring.set((*_measuring.get(), (self, measurement)))
        try:
            yield measurement
        finally:
            _measuring.reset(token)

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """Reads the object at a key in the inner store, and counts the call. Returns `Unchanged` if it still has the
        version `if_changed_from`, and `Missing` if there is none."""
        return await self._measured().get(key, if_changed_from)

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """Reads the bytes of an object from `start` up to `start + length` in the inner store, and counts the call.
        Returns `Missing` if there is no object. It counts as a get."""
        return await self._measured().get_range(key, start, length)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes an object, if the condition `when` holds, in the inner store, and counts the call. Returns the
        outcome."""
        return await self._measured().put(key, body, when)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Deletes an object, if the condition `when` holds, in the inner store, and counts the call. Returns the
        outcome."""
        return await self._measured().delete(key, when)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Deletes objects, whatever their versions, in the inner store, and counts the call. Returns the keys that may
        still exist. It counts as one delete, of the first key."""
        return await self._measured().delete_many(keys)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """Lists one page of the objects under a prefix in the inner store, and counts the call. Returns the first page,
        or the one after the cursor `after`."""
        return await self._measured().list(prefix, after)

    async def close(self) -> None:
        """Closes the inner store."""
        await self._inner.close()

    def _measured(self) -> ObjectStore:
        """Returns the inner store, wrapped in a `MeasuringStore` for each measurement that surrounds this call."""
        store = self._inner
        for counting, measurement in _measuring.get():
            if counting is self:
                store = MeasuringStore(store, measurement)
        return store
