"""Runs long pure computations outside the event loop, so that other requests are not delayed
(docs/decisions/0024-nothing-costs-more-than-linear.md)."""

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from threading import Lock
from typing import TypeVar

T = TypeVar("T")

SMALL_BYTES = 64 << 10
"""Work on fewer bytes than these is done in place: some 20 ms at worst, and mostly less than handing it over."""
LARGE_BYTES = 1 << 20
"""Work on as many bytes is done by one thread at a time: each holds Python's lock for tens of milliseconds at once, and
the event loop would wait for both."""
THREADS = 2
"""Python runs one thread at a time: more of them would only make the event loop wait longer for its turn."""

MAX_YOUNG = 50_000
"""Objects that a young collection goes through in some milliseconds."""


class _Collector:
    """The garbage collector, which stays away while any long work is done: it would go through all of a large document
    again and again, holding every thread up, for cycles that JSON has none of."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._at_work = 0

    def kept_off(self, work: Callable[[], T]) -> Callable[[], T]:
        """The work, done without collections."""

        def undisturbed() -> T:
            self._change(1)
            try:
                return work()
            finally:
                self._change(-1)

        return undisturbed

    def _change(self, by: int) -> None:
        with self._lock:
            self._at_work += by
            if self._at_work == 0:
                if gc.get_count()[0] > MAX_YOUNG:
                    # All that was made meanwhile counts as old, without a look at it: else the next young collection
                    # would go through a million values in one step. Cycles in it wait for a full collection, so fewer
                    # objects stay young.
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()
            elif self._at_work == 1 and by == 1:
                gc.disable()


_COLLECTOR = _Collector()
_LARGE_WORK = Lock()


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """What `work` returns or raises: done by a thread where the `size` of what it works on, in bytes, is not small.

    `work` must be pure, or touch nothing that anybody else does. A caller who is cancelled leaves it behind: it ends at
    its next checkpoint past the deadline.
    """
    if size < SMALL_BYTES:
        return work()
    if size >= LARGE_BYTES:
        work = partial(_exclusively, work)
    return await asyncio.get_running_loop().run_in_executor(_threads(), _COLLECTOR.kept_off(work))


def _exclusively(work: Callable[[], T]) -> T:
    with _LARGE_WORK:
        return work()


@cache
def _threads() -> ThreadPoolExecutor:
    """Made when first needed: a process that serves small requests has none."""
    return ThreadPoolExecutor(THREADS, thread_name_prefix="arco-work")
