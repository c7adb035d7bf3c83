"""Runs long pure computations outside the event loop, so that other requests are not delayed
(docs/decisions/0024-nothing-costs-more-than-linear.md)."""

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")

SMALL_BYTES = 64 << 10
"""Work on fewer bytes runs in the event loop: it takes some 20 ms at worst, and mostly less than a change of
threads."""
LARGE_BYTES = 1 << 20
"""Work on as many bytes is done by one thread at a time: each holds Python's lock for tens of milliseconds at once, and
the event loop would wait for both."""
THREADS = 2
"""Python runs one thread at a time: more of them would only make the event loop wait longer for its turn."""

MAX_YOUNG = 50_000
"""Objects that a young collection goes through in some milliseconds."""


class _CollectionPause:
    """Pauses garbage collection while any thread does long work: a collection would go through all of a large document
    again and again, and stop every thread, for cycles that JSON does not have."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running = 0

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1
            if self._running == 1:
                gc.disable()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                if gc.get_count()[0] > MAX_YOUNG:
                    # Moves all young objects to the oldest generation without a traversal: else the next young
                    # collection would go through a million values in one step. Cycles among them wait for a full
                    # collection, so this is not done for fewer objects.
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()


_COLLECTION_PAUSE = _CollectionPause()
_LARGE_WORK = Lock()
_PENDING: set[asyncio.Future[Any]] = set()


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """Returns what `work` returns. A thread runs it if the `size` of its input, in bytes, is not small.

    `work` must be pure, or use nothing that other code uses. If the caller is cancelled, the work goes on, and ends at
    its next checkpoint past the deadline.
    """
    if size < SMALL_BYTES:
        return work()
    result = asyncio.get_running_loop().run_in_executor(_threads(), _run, size, work)
    _PENDING.add(result)
    try:
        return await result
    finally:
        _PENDING.discard(result)
        del result  # the traceback of its exception has this frame: a cycle would keep the input of the work in memory


async def wait_for_threads() -> None:
    """Returns when no thread works for a caller on this event loop: simulated time stands still meanwhile."""
    loop = asyncio.get_running_loop()
    while pending := [each for each in _PENDING if each.get_loop() is loop and not each.done()]:
        await asyncio.wait(pending)


def _run(size: int, work: Callable[[], T]) -> T:
    """Runs work in a thread, without collections; large work alone."""
    with _COLLECTION_PAUSE, _LARGE_WORK if size >= LARGE_BYTES else nullcontext():
        return work()


@cache
def _threads() -> ThreadPoolExecutor:
    """Made when first needed: a process that serves small requests has none."""
    return ThreadPoolExecutor(THREADS, thread_name_prefix="arco-work")
