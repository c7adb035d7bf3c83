"""Memory that requests under way may take together: counted in bytes, taken before it is used, waited for in turn.

What is counted is an estimate by weight, since Python does not tell what a value takes. The weights are measured
(tests/serve/test_bounds.py holds a server to them) and on the safe side.
"""

import asyncio
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Self

from storage_backends import StoreUnavailable

TIMEOUT_SECONDS = 5.0
"""How long a request waits for memory that others hold."""
SMALL_BYTES = 1 << 20
"""Amounts up to this are taken from a share of their own, so that a few large requests never stop the small ones."""
SMALL_SHARE = 4
"""One part in so many is for small amounts."""

REQUEST_MEMORY_BYTES = 256 << 20
"""What requests under way may take together, unless an operator says otherwise."""
CACHE_MEMORY_BYTES = 100 << 20
"""What a process remembers of a catalog at most, unless an operator says otherwise."""
MAX_METADATA_BYTES = 64 << 20
"""How large a metadata file may be, unpacked, unless an operator says otherwise."""

BODY_WEIGHT = 6
"""Bytes that a request takes for each byte of its body: the body, its values, what is written and what is answered."""
VALUE_BYTES = 192
"""Bytes that a parsed array or object takes, its place in the one around it included."""
FILE_WEIGHT = 3
"""Bytes that a request takes for each byte of a metadata file: packed, unpacked, and in its answer."""
PARSED_WEIGHT = 8
"""Bytes that a request takes in addition for each byte of a metadata file that it changes: parsed, and written anew."""


class OutOfMemory(StoreUnavailable):
    """Other requests use the memory that this one needs, and did not free it in time. Nothing was changed, and a retry
    may succeed, so callers handle it like a store that does not answer."""


class _Share:
    """Bytes handed out first come, first served."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def take_now(self, size: int) -> bool:
        """Takes what is there and nobody waits for."""
        if self._waiting or self.used + size > self.limit:
            return False
        self.used += size
        return True

    async def take(self, size: int, timeout_seconds: float) -> None:
        granted = asyncio.get_running_loop().create_future()
        self._waiting.append((size, granted))
        try:
            async with asyncio.timeout(timeout_seconds):
                await granted
        except BaseException as error:
            if granted.done() and not granted.cancelled():
                self.give_back(size)
            else:
                with suppress(ValueError):  # passed over already
                    self._waiting.remove((size, granted))
                self._grant()
            if isinstance(error, TimeoutError):
                raise OutOfMemory("Concurrent requests use all memory for requests: try again") from error
            raise

    def give_back(self, size: int) -> None:
        self.used -= size
        if self._waiting:
            self._grant()

    def _grant(self) -> None:
        while self._waiting and (self._waiting[0][1].cancelled() or self.used + self._waiting[0][0] <= self.limit):
            size, granted = self._waiting.popleft()
            if not granted.cancelled():
                self.used += size
                granted.set_result(None)


class Memory:
    """What the requests of one process share. Belongs to one event loop."""

    def __init__(self, limit: int, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._timeout_seconds = timeout_seconds
        self._small = _Share(limit // SMALL_SHARE)
        self._large = _Share(limit - limit // SMALL_SHARE)

    @property
    def most(self) -> int:
        """What one request can take at most."""
        return self._large.limit

    @property
    def used(self) -> int:
        """What is taken now."""
        return self._small.used + self._large.used

    def hold(self) -> "Hold":
        """A request's account, to be closed when the request is over."""
        return Hold(self)

    def share_of(self, size: int) -> _Share:
        """Where such an amount is taken from."""
        return self._small if size <= min(SMALL_BYTES, self._small.limit) else self._large

    async def take(self, share: _Share, size: int) -> None:
        """Takes from a share, when it is there. Raises `OutOfMemory`."""
        if not share.take_now(size):
            await share.take(size, self._timeout_seconds)


class Hold:
    """What one request has taken: a context that gives all of it back. Without a memory nothing is counted."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory = memory
        self._taken: list[Taken] = []

    async def take(self, size: int) -> "Taken":
        """Takes so many bytes, or all that one request may have if that is less: then it goes alone. Waits for them.
        Raises `OutOfMemory`."""
        if self._memory is None or size <= 0:
            return Taken(None, 0)
        share = self._memory.share_of(size)
        mine = sum(taken.size for taken in self._taken if taken.share is share) if self._taken else 0
        size = max(0, min(size, share.limit - mine))
        if not share.take_now(size):
            await self._memory.take(share, size)
        taken = Taken(share, size)
        self._taken.append(taken)
        return taken

    def close(self) -> None:
        """Gives everything back, and takes nothing more."""
        self._memory = None
        while self._taken:
            self._taken.pop().shrink(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Taken:
    """An amount that a request holds."""

    def __init__(self, share: _Share | None, size: int) -> None:
        self.share = share
        self.size = size

    def shrink(self, size: int) -> None:
        """Gives back what is more than `size`."""
        if self.share is not None and size < self.size:
            surplus, self.size = self.size - size, size
            self.share.give_back(surplus)
