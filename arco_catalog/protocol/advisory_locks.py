"""Advisory locks: writers of one table in one process commit one after another instead of conflicting."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager

TIMEOUT_SECONDS = 5.0


def _always() -> bool:
    """Returns True: the lock is needed, however long the caller waits. The default condition of
    `AdvisoryLocks.hold`."""
    return True


class AdvisoryLocks:
    """Advisory locks, one for each key, which the requests of one process share. Correctness does not depend on them: a
    caller that has waited for `timeout_seconds` goes on without the lock.

    Of writers that plan on the same version of a pointer one wins its compare-and-swap. The others have written their
    files in vain, back off, and try again. One after another, each plans on what the one before committed.
    """

    def __init__(self, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._timeout_seconds = timeout_seconds
        self._locks: dict[Hashable, _Lock] = {}

    @asynccontextmanager
    async def hold(self, key: Hashable, is_needed: Callable[[], bool] = _always) -> AsyncIterator[None]:
        """Returns a context that holds the advisory lock of a key for a request of this process. The context is
        entered without the lock after the timeout, and as soon as `is_needed` is false, which is evaluated before the
        wait, and whenever another holder releases the lock. Raises what `is_needed` raises."""
        lock = self._locks.setdefault(key, _Lock())
        lock.users += 1
        acquired = False
        try:
            acquired = await lock.acquire(is_needed, self._timeout_seconds)
            yield
        finally:
            if acquired:
                lock.release()
            lock.users -= 1
            if not lock.users:
                del self._locks[key]

    def __len__(self) -> int:
        return len(self._locks)


class _Lock:
    """The lock of one key. It passes to those that wait in the order in which they came. `users` hold it, wait for it,
    or went on without it."""

    def __init__(self) -> None:
        self.users = 0
        self._is_held = False
        self._waiting: dict[asyncio.Future[bool], Callable[[], bool]] = {}
        """By the future that becomes true with the lock, and false without it: whether it is still needed."""

    async def acquire(self, is_needed: Callable[[], bool], timeout_seconds: float) -> bool:
        """Waits for the advisory lock, and returns whether this caller has it: False if it is not needed (any more), or
        not free in time. Raises what `is_needed` raises."""
        if not is_needed():
            return False
        if not self._is_held:
            self._is_held = True
            return True
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = is_needed
        try:
            async with asyncio.timeout(timeout_seconds):
                return await waiter
        except TimeoutError:
            return _has_lock(waiter)
        except asyncio.CancelledError:
            # The lock may have been passed on before the cancellation arrived here.
            if _has_lock(waiter):
                self.release()
            raise
        finally:
            del self._waiting[waiter]

    def release(self) -> None:
        """Passes the advisory lock to the first waiter that still needs it, or frees it if there is none. Every waiter
        that no longer needs it stops waiting without it; what a waiter's `is_needed` raises is raised to that waiter
        alone."""
        self._is_held = False
        for waiter, is_needed in self._waiting.items():
            if waiter.done():
                continue
            try:
                needed = is_needed()
            except Exception as error:  # an error of one request is raised to that one alone
                waiter.set_exception(error)
                continue
            if not needed:
                waiter.set_result(False)
            elif not self._is_held:
                self._is_held = True
                waiter.set_result(True)


def _has_lock(waiter: asyncio.Future[bool]) -> bool:
    """Whether the advisory lock was passed to the request that waits on this future."""
    return waiter.done() and not waiter.cancelled() and waiter.exception() is None and waiter.result()
