"""The store as one request sees it: one wrapper that checks the deadline, learns the store's time, and records the cost
of calls.

Each of the three is a few lines around a call. As wrappers of their own they cost more than a call of a store that has
its answer at hand.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from storage_backends.base import (
    ANY,
    Cursor,
    DeadlinePassed,
    Deleted,
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
from storage_backends.eager import Waiting
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wrappers.call_timer import CallTimedOut, CallTimer
from storage_backends.wrappers.measuring import Kind, Measurement

LATE = "the request's deadline has passed"


@dataclass(frozen=True, slots=True)
class ObservedClock:
    """The machine's wall clock in milliseconds since 1970, and the function that learns the store's time from the
    answers of a store (docs/design/store.md)."""

    now_ms: Callable[[], int]
    observe: Callable[[int, int, int], None]
    """Takes the times at which a call was sent and answered, by the machine's clock, and the store's in the answer."""


_P = ParamSpec("_P")
_Answer = TypeVar("_Answer", Found | Missing, Found | Unchanged | Missing, Page, Outcome, Deleted)


class RequestStore:
    """A store for one request that passes calls to another one as long as `left_ms`, the milliseconds until a deadline,
    is positive (docs/design/commit.md#unknown-outcomes).

    `left_ms` is called before every call (docs/design/commit.md#rule-5): after the deadline a call raises
    `DeadlinePassed`, and nothing is sent. When the deadline passes within a call, a read raises `DeadlinePassed`,
    and a write is `Unknown`: the store may still apply it.

    `clock` learns the time in each answer, and `measurement` records each call, where they are given. `timer` ends the
    calls at the deadline; the stores of a process share one.
    """

    def __init__(
        self,
        inner: ObjectStore,
        left_ms: Callable[[], int],
        *,
        clock: ObservedClock | None = None,
        measurement: Measurement | None = None,
        timer: CallTimer | None = None,
    ) -> None:
        self._inner = inner
        self._left_ms = left_ms
        self._clock = clock
        self._measurement = measurement
        self._timer = timer or CallTimer()

    def get(self, key: str, if_changed_from: Version | None = None) -> Coroutine[Any, Any, Found | Unchanged | Missing]:
        """Reads the object at a key in the inner store. Returns `Unchanged` if it still has the version
        `if_changed_from`, and `Missing` if there is none. Raises `DeadlinePassed` if the deadline of the request has
        passed, or passes within the call."""
        return self._ask("get", 0, self._inner.get, key, if_changed_from)

    def get_range(self, key: str, start: int, length: int) -> Coroutine[Any, Any, Found | Missing]:
        """Reads the bytes of an object from `start` up to `start + length` in the inner store. Returns `Missing` if
        there is no object. Raises `DeadlinePassed` if the deadline of the request has passed, or passes within the
        call."""
        return self._ask("get", 0, self._inner.get_range, key, start, length)

    def put(self, key: str, body: bytes, when: When) -> Coroutine[Any, Any, Outcome]:
        """Writes an object, if the condition `when` holds, in the inner store, and returns the outcome. Raises
        `DeadlinePassed` if the deadline of the request has passed; if it passes within the call, the outcome is
        `Unknown`."""
        return self._write("put", len(body), self._inner.put, key, body, when)

    def delete(self, key: str, when: When = ANY) -> Coroutine[Any, Any, Outcome]:
        """Deletes an object, if the condition `when` holds, in the inner store, and returns the outcome. Raises
        `DeadlinePassed` if the deadline of the request has passed; if it passes within the call, the outcome is
        `Unknown`."""
        return self._write("delete", 0, self._inner.delete, key, when)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Deletes objects, whatever their versions, in the inner store, and returns the keys that may still exist;
        without keys it calls nothing. Raises `DeadlinePassed` if the deadline of the request has passed; if it passes
        within the call, the outcome of all is `Unknown`. The call is measured as one delete, of the first key."""
        if not keys:
            return Deleted({}, None)
        try:
            return await self._ask("delete", 0, lambda _: self._inner.delete_many(keys), keys[0])
        except CallTimedOut:
            return Deleted(dict.fromkeys(keys, Unknown(LATE)), None)

    def list(self, prefix: str, after: Cursor | None = None) -> Coroutine[Any, Any, Page]:
        """Lists one page of the objects under a prefix in the inner store: the first, or the one after the cursor
        `after`. Raises `DeadlinePassed` if the deadline of the request has passed, or passes within the call."""
        return self._ask("list", 0, self._inner.list, prefix, after)

    async def close(self) -> None:
        """Does nothing: the inner store stays open for other requests of the process."""

    async def _ask(
        self,
        kind: Kind,
        written: int,
        ask: Callable[Concatenate[str, _P], Coroutine[Any, Any, _Answer]],
        key: str,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _Answer:
        """Calls `ask(key, ...)`, a method of the inner store, and returns its answer. Records the call, also one that
        fails, as one of `kind` that sends `written` bytes, and lets the clock learn the store's time. Raises
        `DeadlinePassed`, without a call, if the deadline has passed, and `CallTimedOut` if it passes within the
        call."""
        left_ms = self._left_ms()
        if left_ms <= 0:
            raise DeadlinePassed(LATE)
        clock, sent_ms = self._clock, 0 if self._clock is None else self._clock.now_ms()
        noted = None if self._measurement is None else self._measurement.call(kind, key, written)
        call = ask(key, *args, **kwargs)
        try:
            try:
                future = call.send(None)
            except StopIteration as end:  # a store that had its answer at hand: there is nothing to wait for
                answer: _Answer = end.value
            else:
                answer = await self._timer.wait(Waiting(call, future), left_ms / 1000, LATE)
        except BaseException as error:
            if noted is not None:
                noted.failed(error)
            raise
        if noted is not None:
            noted.answered(answer)
        if clock is not None and not isinstance(answer, Unknown) and answer.now_ms is not None:
            clock.observe(sent_ms, clock.now_ms(), answer.now_ms)
        return answer

    async def _write(
        self,
        kind: Kind,
        written: int,
        ask: Callable[Concatenate[str, _P], Coroutine[Any, Any, Outcome]],
        key: str,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> Outcome:
        """Calls `ask(key, ...)`, a method of the inner store that writes or deletes, and returns the outcome, which is
        `Unknown` if the deadline passes within the call. Raises `DeadlinePassed` if it has passed before."""
        try:
            return await self._ask(kind, written, ask, key, *args, **kwargs)
        except CallTimedOut:
            return Unknown(LATE)
