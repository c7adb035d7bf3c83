"""Runs long pure computations outside the event loop, so that other requests are not delayed
(docs/decisions/0024-nothing-costs-more-than-linear.md)."""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from arco_catalog.state.cycle_collector import CYCLE_COLLECTOR

T = TypeVar("T")

SMALL_BYTES = 64 << 10
"""Work on fewer bytes runs in the event loop. It takes about 20 ms at worst, and usually less than a switch of
threads."""
LARGE_BYTES = 1 << 20
"""Work on this many bytes or more runs in one thread at a time. It holds the interpreter lock for tens of milliseconds,
and with two such threads the event loop would wait for both."""
THREADS = 2
"""The number of threads. Python runs one at a time, so more would only make the event loop wait longer."""

SWITCH_S = 0.001
"""The time after which a worker thread must release the interpreter lock if the event loop waits for it. The loop
waits more than once for each request, so with Python's default of 5 ms these waits would be most of its time."""

_LARGE_WORK = Lock()
_PENDING: set[asyncio.Future[Any]] = set()


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """Runs `work` and returns the result. A worker thread runs it if the `size` of its input is at least `SMALL_BYTES`
    bytes; otherwise the event loop does.

    `work` must be pure, or use only objects that no other code uses. Cancelling the caller does not stop work in a
    thread: it runs until it returns or raises, which work with a deadline does by itself.
    """
    if size < SMALL_BYTES:
        return work()
    result = asyncio.get_running_loop().run_in_executor(_threads(), _run, size, work)
    _PENDING.add(result)
    try:
        return await result
    finally:
        _PENDING.discard(result)
        # The traceback of the result's exception refers to this frame. Without this cycle the input is freed at once.
        del result


class LoopWork:
    """Work of one request that the event loop does only as long as all of it together is small. Many small pieces hold
    up other requests as long work does, because nothing makes the request wait between two of them."""

    def __init__(self) -> None:
        self._size = 0

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """Runs a piece of the request's work, with input of `size` bytes, and returns the result: in the event loop if
        all pieces up to this one have less than `SMALL_BYTES` together, otherwise in a worker thread, as `off_loop`
        does."""
        self._size += size
        return await off_loop(max(size, min(self._size, SMALL_BYTES)), work)


async def wait_for_threads() -> None:
    """Returns when no work of this event loop runs in a worker thread or waits for one. Simulated time must not advance
    before. Work whose caller was cancelled does not count, although it may still run."""
    loop = asyncio.get_running_loop()
    while pending := [each for each in _PENDING if each.get_loop() is loop and not each.done()]:
        await asyncio.wait(pending)


def _run(size: int, work: Callable[[], T]) -> T:
    """Runs work in the worker thread that calls this, and returns the result. Work with large input (`size` is its
    bytes) waits until other large work is over. Python's collector of cycles is paused while work runs, but not while
    it waits: garbage of requests would else be kept until no large work is left."""
    with _LARGE_WORK if size >= LARGE_BYTES else nullcontext(), CYCLE_COLLECTOR.pause():
        return work()


@cache
def _threads() -> ThreadPoolExecutor:
    """Returns the pool of worker threads, which is created at the first call. From then on threads of this process
    change places within `SWITCH_S`."""
    sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))
    return ThreadPoolExecutor(THREADS, thread_name_prefix="arco-work")
