"""Memory that requests under way may take together: counted in bytes, taken before it is used, waited for in turn.

What is counted is an estimate by weight, since Python does not tell what a value takes. The weights are measured
(tests/serve/test_bounds.py holds a server to them) and on the safe side.
"""

import asyncio
from asyncio import AbstractEventLoop
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from weakref import WeakKeyDictionary

from storage_backends import StoreUnavailable

TIMEOUT_SECONDS = 5.0
"""How long a request waits for memory that others hold."""
BACKGROUND_MEMORY_BYTES = 64 << 20
"""What tasks, collections and commands of a process may take together."""
BACKGROUND_TIMEOUT_SECONDS = 240.0
"""How long a task waits for it: while the lease of a task lasts, for a dozen documents of the greatest length may be
parsed before its own. It is tried again later, at a cost: it then reads the same files."""
SMALL_BYTES = 1 << 20
"""Amounts up to this are taken from a share of their own, so that a few large requests never stop the small ones."""
SMALL_SHARE = 4
"""One part in so many is for small amounts."""
OWNER_SHARE = 2
"""All requests of one principal may begin to use one part in so many, of small amounts and of large ones; or one
request of it more."""

REQUEST_MEMORY_BYTES = 256 << 20
"""What requests under way may take together, unless an operator says otherwise."""
CACHE_MEMORY_BYTES = 100 << 20
"""What a process remembers of a catalog at most, unless an operator says otherwise."""
MAX_METADATA_BYTES = 64 << 20
"""How large a metadata file may be, unpacked, unless an operator says otherwise."""

BODY_WEIGHT = 6
"""Bytes of memory for each byte of its body: the body, its values, what is written and what is answered."""
VALUE_BYTES = 192
"""Bytes of a parsed array or object, its place in the one around it included."""
VALUES_COUNTED_FROM_BYTES = 128 << 10
"""Values of a smaller metadata file are not counted: parsed it has 4 MB at worst."""
BYTES_A_VALUE = 32
"""A metadata file may have one value for each so many bytes of the limit on its size. A snapshot has some 35 bytes a
value, a column 13."""
MIN_METADATA_VALUES = 500_000
"""As many values are allowed under any limit on the size."""
FILE_WEIGHT = 3
"""Bytes of memory for each byte of a metadata file: packed, unpacked, and in its answer."""
PARSED_WEIGHT = 8
"""Further bytes of memory for each byte of a metadata file that it changes: parsed, and written anew."""


def max_metadata_values(max_bytes: int) -> int:
    """How many values a metadata file may have where it may have so many bytes."""
    return max(MIN_METADATA_VALUES, max_bytes // BYTES_A_VALUE)


def parsed_bytes(size: int, values: int) -> int:
    """Memory for parsing and changing a metadata file of so many bytes and values."""
    return max(PARSED_WEIGHT * size, VALUE_BYTES * values)


class OutOfMemory(StoreUnavailable):
    """Other requests use the memory that this one needs, and did not free it in time. Nothing was changed, and a retry
    may succeed, so callers handle it like a store that does not answer."""


@dataclass(slots=True)
class _Waiter:
    """A request that waits for an amount. `starts` is whether it has nothing of the share yet."""

    size: int
    owner: str | None
    starts: bool
    granted: asyncio.Future[None]


class _Share:
    """Bytes handed out first come, first served; but an owner who has some gets no more for another request than would
    make half of them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._of_owners: dict[str, int] = {}
        self._waiting: deque[_Waiter] = deque()

    def take_now(self, size: int, owner: str | None, *, starts: bool) -> bool:
        """Takes what is free, unless others wait."""
        if self._waiting or self.used + size > self.limit or self._exceeds(size, owner, starts):
            return False
        self._add(size, owner)
        return True

    async def take(self, size: int, owner: str | None, timeout_seconds: float, *, starts: bool) -> None:
        granted = asyncio.get_running_loop().create_future()
        waiter = _Waiter(size, owner, starts, granted)
        self._waiting.append(waiter)
        self._grant()
        try:
            async with asyncio.timeout(timeout_seconds):
                await granted
        except BaseException as error:
            if granted.done() and not granted.cancelled():
                self.give_back(size, owner)
            else:
                with suppress(ValueError):  # passed over already
                    self._waiting.remove(waiter)
                self._grant()
            if isinstance(error, TimeoutError):
                raise OutOfMemory(self._reason(waiter)) from error
            raise

    def give_back(self, size: int, owner: str | None) -> None:
        self._add(-size, owner)
        if self._waiting:
            self._grant()

    def _add(self, size: int, owner: str | None) -> None:
        self.used += size
        if owner is not None:
            held = self._of_owners.pop(owner, 0) + size
            if held:
                self._of_owners[owner] = held

    def _exceeds(self, size: int, owner: str | None, starts: bool) -> bool:
        """Whether the owner's other requests leave no room for this one. One that has begun is not stopped: it has
        what others of its owner may wait for."""
        held = self._of_owners.get(owner, 0) if starts and owner is not None else 0
        return held > 0 and held + size > self.limit // OWNER_SHARE

    def _grant(self) -> None:
        """Grants what the first waiters wait for, as far as it goes; those who wait for requests of their own owner
        alone stop nobody else."""
        passed: list[_Waiter] = []
        while self._waiting:
            waiter = self._waiting[0]
            if waiter.granted.cancelled():
                self._waiting.popleft()
            elif self._exceeds(waiter.size, waiter.owner, waiter.starts):
                passed.append(self._waiting.popleft())
            elif self.used + waiter.size <= self.limit:
                self._waiting.popleft()
                self._add(waiter.size, waiter.owner)
                waiter.granted.set_result(None)
            else:
                break
        self._waiting.extendleft(reversed(passed))

    def _reason(self, waiter: _Waiter) -> str:
        if self._exceeds(waiter.size, waiter.owner, waiter.starts):
            return "Other large requests of the same principal use its memory: try again"
        return "Concurrent requests use all memory for requests: try again"


class Memory:
    """What the requests of one process share. Belongs to one event loop."""

    def __init__(self, limit: int, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._timeout_seconds = timeout_seconds
        self.parsing = asyncio.Lock()
        """Held by the task whose document is parsed, in memory beyond the limit."""
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

    async def take(self, share: _Share, size: int, owner: str | None, *, starts: bool) -> None:
        """Takes from a share, when it is there. Raises `OutOfMemory`."""
        await share.take(size, owner, self._timeout_seconds, starts=starts)


_BACKGROUND: WeakKeyDictionary[AbstractEventLoop, Memory] = WeakKeyDictionary()


def background_memory() -> Memory:
    """What all tasks, collections and commands of this process share to parse metadata files: none is a request, which
    has its own account."""
    loop = asyncio.get_running_loop()
    memory = _BACKGROUND.get(loop)
    if memory is None:
        memory = _BACKGROUND[loop] = Memory(BACKGROUND_MEMORY_BYTES, BACKGROUND_TIMEOUT_SECONDS)
    return memory


class Hold:
    """What one request has taken: a context that gives all of it back. Without a memory nothing is counted. `owner` is
    the principal that the request is of, once that is known, None without authentication."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory = memory
        self.owner: str | None = None
        self._taken: list[Taken] = []

    @property
    def counts(self) -> bool:
        """Whether there is a memory that counts."""
        return self._memory is not None

    async def take(self, size: int) -> "Taken":
        """Takes so many bytes, or all that one request may have if that is less: then it goes alone. Waits for them.
        Raises `OutOfMemory`."""
        if self._memory is None or size <= 0:
            return Taken(None, 0)
        share = self._memory.share_of(size)
        mine = sum(taken.size for taken in self._taken if taken.share is share) if self._taken else 0
        size = max(0, min(size, share.limit - mine))
        owner, starts = self.owner, mine == 0
        if not share.take_now(size, owner, starts=starts):
            await self._memory.take(share, size, owner, starts=starts)
        taken = Taken(share, size, owner)
        self._taken.append(taken)
        return taken

    def take_now(self, size: int) -> None:
        """Takes so many bytes if they are there, and waits for none."""
        if self._memory is not None and size > 0:
            share = self._memory.share_of(size)
            if share.take_now(size, self.owner, starts=False):
                self._taken.append(Taken(share, size, self.owner))

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
    """An amount that a request has."""

    def __init__(self, share: _Share | None, size: int, owner: str | None = None) -> None:
        self.share = share
        self.size = size
        self._owner = owner

    def shrink(self, size: int) -> None:
        """Gives back what is more than `size`."""
        if self.share is not None and size < self.size:
            surplus, self.size = self.size - size, size
            self.share.give_back(surplus, self._owner)
