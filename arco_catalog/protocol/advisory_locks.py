"""Advisory locks: writers of one table in one process commit one after another instead of conflicting."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

TIMEOUT_SECONDS = 5.0


class AdvisoryLocks:
    """Advisory locks, one a key. Correctness does not depend on them: a caller that has waited too long goes on
    without.

    Of writers that plan on the same version of a pointer one wins its compare-and-swap. The others have written their
    files in vain, back off, and try again. One after another, each plans on what the one before committed.
    """

    def __init__(self, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._timeout_seconds = timeout_seconds
        self._waiting: dict[Hashable, int] = {}
        self._locks: dict[Hashable, asyncio.Lock] = {}

    @asynccontextmanager
    async def hold(self, key: Hashable) -> AsyncIterator[None]:
        """Holds the lock of a key, or goes on without it after the timeout."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._waiting[key] = self._waiting.get(key, 0) + 1
        acquired = False
        try:
            acquired = await self._acquire(lock)
            yield
        finally:
            if acquired:
                lock.release()
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key], self._locks[key]

    async def _acquire(self, lock: asyncio.Lock) -> bool:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await lock.acquire()
        except TimeoutError:
            return False

    def __len__(self) -> int:
        return len(self._locks)
