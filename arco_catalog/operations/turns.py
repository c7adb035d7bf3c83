"""Writers of one table in one process go one after the other, where they would otherwise overtake each other."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

PATIENCE_SECONDS = 5.0


class Turns:
    """A courtesy, not a lock: nothing rests on it, and who has waited too long goes anyway.

    Of writers that plan on the same version of a pointer, one wins its compare-and-swap, and all others have written
    their files for nothing, wait, and try again. In turn, each plans on what the one before has made.
    """

    def __init__(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience_seconds = patience_seconds
        self._waiting: dict[Hashable, int] = {}
        self._locks: dict[Hashable, asyncio.Lock] = {}

    @asynccontextmanager
    async def turn(self, what: Hashable) -> AsyncIterator[None]:
        """Waits until the others that came before have ended."""
        lock = self._locks.setdefault(what, asyncio.Lock())
        self._waiting[what] = self._waiting.get(what, 0) + 1
        mine = False
        try:
            mine = await self._wait(lock)
            yield
        finally:
            if mine:
                lock.release()
            self._waiting[what] -= 1
            if not self._waiting[what]:
                del self._waiting[what], self._locks[what]

    async def _wait(self, lock: asyncio.Lock) -> bool:
        try:
            async with asyncio.timeout(self._patience_seconds):
                return await lock.acquire()
        except TimeoutError:
            return False

    def __len__(self) -> int:
        return len(self._locks)
