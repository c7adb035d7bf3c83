"""Stores that pass every call to another store, for tests and benchmarks: one counts the calls, one delays them."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

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
from storage_backends.wrappers.measuring import Kind, Measurement

_Answer = TypeVar("_Answer")

# Tasks inherit the context they are made in, so concurrent operations measure only their own children's calls.
_measuring: ContextVar[tuple[tuple["CountingStore", Measurement], ...]] = ContextVar("_measuring", default=())


class WrappedStore(ABC):
    """The base of stores that wrap another one: each call of an `ObjectStore` goes through `_pass_on`."""

    def __init__(self, inner: ObjectStore) -> None:
        self._inner = inner

    @abstractmethod
    async def _pass_on(self, kind: Kind, key: str, written: int, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Makes a call of the inner store by `call`, and returns its result. `written` is the size in bytes of the body
        that it sends."""

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """Reads the object at a key in the inner store. Returns `Unchanged` if it still has the version
        `if_changed_from`, and `Missing` if there is none."""
        return await self._pass_on("get", key, 0, lambda: self._inner.get(key, if_changed_from))

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """Reads the bytes of an object from `start` up to `start + length` in the inner store. Returns `Missing` if
        there is no object. It counts as a get."""
        return await self._pass_on("get", key, 0, lambda: self._inner.get_range(key, start, length))

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes an object, if the condition `when` holds, in the inner store. Returns the outcome."""
        return await self._pass_on("put", key, len(body), lambda: self._inner.put(key, body, when))

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Deletes an object, if the condition `when` holds, in the inner store. Returns the outcome."""
        return await self._pass_on("delete", key, 0, lambda: self._inner.delete(key, when))

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Deletes objects, whatever their versions, in the inner store. Returns the keys that may still exist. It
        counts as one delete, of the first key."""
        return await self._pass_on("delete", keys[0] if keys else "", 0, lambda: self._inner.delete_many(keys))

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """Lists one page of the objects under a prefix in the inner store. Returns the first page, or the one after the
        cursor `after`."""
        return await self._pass_on("list", prefix, 0, lambda: self._inner.list(prefix, after))

    async def close(self) -> None:
        """Closes the inner store."""
        await self._inner.close()


class CountingStore(WrappedStore):
    """Passes every call on and counts it, failed ones included, for each measurement that surrounds it.

    >>> with store.measure() as measured:
    ...     await load_table(store)
    >>> assert (measured.depth, measured.calls) == (1, 3)
    """

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

    async def _pass_on(self, kind: Kind, key: str, written: int, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        measured = [each.call(kind, key, written) for counting, each in _measuring.get() if counting is self]
        try:
            answer = await call()
        except BaseException as error:
            for each in measured:
                each.failed(error)
            raise
        for each in measured:
            each.answered(answer)
        return answer


class DelayingStore(WrappedStore):
    """A store that passes every call to another one after `seconds`: the time of a round trip, without a network."""

    def __init__(self, inner: ObjectStore, seconds: float) -> None:
        super().__init__(inner)
        self._seconds = seconds

    async def _pass_on(self, kind: Kind, key: str, written: int, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        await asyncio.sleep(self._seconds)  # noqa: TID251 - a real delay, to be measured
        return await call()
