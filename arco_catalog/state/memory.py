"""Accounting of the memory that the running requests of a process may use together, and, apart from it, the background
work. A request takes memory before it uses it, and waits in turn if there is none.

The amounts are estimates, computed by weights from the sizes of inputs, because Python does not measure the memory of a
value. The weights were measured (tests/serve/test_bounds.py checks a server against them) and are conservative."""

import asyncio
from asyncio import AbstractEventLoop
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Self
from weakref import WeakKeyDictionary, WeakSet

from arco_catalog.state.cycle_collector import CYCLE_COLLECTOR
from storage_backends import StoreUnavailable
from storage_backends.lazy_dataclass import dataclass

TIMEOUT_SECONDS = 5.0
"""How long a request waits for memory."""
BACKGROUND_MEMORY_BYTES = 64 << 20
"""What tasks, collections and commands of a process may take together."""
BACKGROUND_TIMEOUT_SECONDS = 240.0
"""How long a task waits for it: while the lease of a task lasts, for a dozen documents of the greatest length may be
parsed before its own. It is tried again later, at a cost: it then reads the same files."""
SMALL_BYTES = 1 << 20
"""Amounts up to this size come from a share of their own, so that a few large requests never stop the small ones."""
SMALL_SHARE = 4
"""The share of small amounts is the limit divided by this number."""
OWNER_SHARE = 2
"""The requests of one principal may start to use a share until they have the share's limit divided by this number; one
request may always start."""

REQUEST_MEMORY_BYTES = 256 << 20
"""The default limit of the memory of all running requests."""
CACHE_MEMORY_BYTES = 100 << 20
"""The default limit of a process's caches of one catalog."""
MAX_METADATA_BYTES = 64 << 20
"""The default limit of a metadata file's size, unpacked."""

BODY_WEIGHT = 6
"""Bytes of memory for each byte of a request's body: the body, its values, the written objects, and the answer."""
VALUE_BYTES = 192
"""Bytes of memory of a parsed array or object, with its slot in the value that contains it."""
VALUES_COUNTED_FROM_BYTES = 128 << 10
"""The values of a smaller metadata file are not counted, because parsed it needs at most 4 MB."""
BYTES_A_VALUE = 32
"""A metadata file may have the limit of the size, divided by this number, of values. A snapshot has about 35 bytes for
each value, a column 13."""
MIN_METADATA_VALUES = 500_000
"""So many values are allowed even if the limit of the size is low."""
FILE_WEIGHT = 3
"""Bytes of memory for each byte of a metadata file: packed, unpacked, and in the answer."""
PARSED_WEIGHT = 8
"""Further bytes of memory for each byte of a metadata file that is parsed, changed and written."""


def max_metadata_values(max_bytes: int) -> int:
    """Returns the limit of the number of JSON values in a metadata file, given the limit of its bytes."""
    return max(MIN_METADATA_VALUES, max_bytes // BYTES_A_VALUE)


def limit_for_large(size: int) -> int:
    """Returns the limit, in bytes, of a `Memory` whose part for large amounts has `size` bytes."""
    return size * SMALL_SHARE // (SMALL_SHARE - 1)


def parsed_bytes(size: int, values: int) -> int:
    """Returns the memory in bytes that parsing and changing a metadata file needs besides the file itself, given its
    size in bytes and the number of its JSON values (0 if they are unknown)."""
    return max(PARSED_WEIGHT * size, VALUE_BYTES * values)


class OutOfMemory(StoreUnavailable):
    """Other requests or tasks used the memory that this one needs, and did not free it in time. The wait changed
    nothing, and a retry may succeed, so callers handle it like a store that does not answer."""


@dataclass(slots=True)
class _Waiter:
    """A request that waits for an amount of memory. `starts`: it has no memory of the share yet."""

    size: int
    owner: str | None
    starts: bool
    granted: asyncio.Future[None]


class _Share:
    """A part of the memory, from which requests take bytes in the order in which they came. A request whose owner's
    other requests leave no room for it (`OWNER_SHARE`) waits without stopping those of other owners."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._of_owners: dict[str, int] = {}
        self._waiting: deque[_Waiter] = deque()

    def take_now(self, size: int, owner: str | None, *, starts: bool) -> bool:
        """Takes `size` bytes of memory for an owner if they are free and no request waits; if the request `starts`,
        because it has no memory of this share yet, also only if the owner's other requests leave room. Returns whether
        it did."""
        if self._waiting or self.used + size > self.limit:
            return False
        if self._of_owners and self._exceeds(size, owner, starts):
            return False
        self.used += size
        if owner is not None:
            self._add_to_owner(owner, size)
        return True

    async def take(self, size: int, owner: str | None, timeout_seconds: float, *, starts: bool) -> None:
        """Takes `size` bytes of memory for an owner, after waiting for them in turn; `starts` if the request has none
        of this share yet. Raises `OutOfMemory` if they are not free in time. A cancelled wait takes nothing."""
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
                with suppress(ValueError):  # a cancelled waiter may have been removed before
                    self._waiting.remove(waiter)
                self._grant()
            if isinstance(error, TimeoutError):
                raise OutOfMemory(self._reason(waiter)) from error
            raise

    def give_back(self, size: int, owner: str | None) -> None:
        """Gives `size` bytes of memory of an owner back, and grants them to waiting requests. Unfreezes the cycle
        collector once no large share is in use."""
        self.used -= size
        if owner is not None:
            self._add_to_owner(owner, -size)
        if CYCLE_COLLECTOR.frozen and not any(share.used for share in _LARGE_SHARES):
            CYCLE_COLLECTOR.unfreeze()
        if self._waiting:
            self._grant()

    def _add_to_owner(self, owner: str, size: int) -> None:
        """Adds `size`, which may be negative, to the memory that the requests of an owner have taken."""
        held = self._of_owners.pop(owner, 0) + size
        if held:
            self._of_owners[owner] = held

    def _exceeds(self, size: int, owner: str | None, starts: bool) -> bool:
        """Whether the other requests of an owner leave no room for `size` bytes for a request that starts. False for a
        request that has memory already, because others of its owner may wait for that."""
        held = self._of_owners.get(owner, 0) if starts and owner is not None else 0
        return held > 0 and held + size > self.limit // OWNER_SHARE

    def _grant(self) -> None:
        """Grants memory to the waiting requests in their order, until an amount does not fit. Requests that only those
        of their own owner stop are skipped, and keep their turn; cancelled ones are dropped."""
        passed: list[_Waiter] = []
        while self._waiting:
            waiter = self._waiting[0]
            if waiter.granted.cancelled():
                self._waiting.popleft()
            elif self._exceeds(waiter.size, waiter.owner, waiter.starts):
                passed.append(self._waiting.popleft())
            elif self.used + waiter.size <= self.limit:
                self._waiting.popleft()
                self.used += waiter.size
                if waiter.owner is not None:
                    self._add_to_owner(waiter.owner, waiter.size)
                waiter.granted.set_result(None)
            else:
                break
        self._waiting.extendleft(reversed(passed))

    def _reason(self, waiter: _Waiter) -> str:
        """Returns, for an error, why a waiter got no memory: its owner's other requests use their part, or all requests
        use all."""
        if self._exceeds(waiter.size, waiter.owner, waiter.starts):
            return (
                "Other requests of the same principal use the memory that one principal may use, and did not free "
                "enough in time: try again"
            )
        return "Concurrent requests or tasks use all memory that this process has for them: try again"


_LARGE_SHARES: WeakSet[_Share] = WeakSet()
"""The shares of the process from which large amounts are taken."""


class Memory:
    """An account of memory: one for the running requests of a process, and one for its background work. A request or
    task takes bytes from it, and waits if there are none. A quarter of it is for small amounts alone. It must be used
    on one event loop."""

    def __init__(self, limit: int, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._timeout_seconds = timeout_seconds
        self.parsing = asyncio.Lock()
        """Held by the task whose document is parsed, in memory beyond the limit."""
        self._small = _Share(limit // SMALL_SHARE)
        self._large = _Share(limit - limit // SMALL_SHARE)
        _LARGE_SHARES.add(self._large)

    @property
    def max_bytes(self) -> int:
        """The largest number of bytes that a request can take at once."""
        return self._large.limit

    @property
    def used(self) -> int:
        """The bytes of memory that all requests have taken now."""
        return self._small.used + self._large.used

    def hold(self, owner: str | None = None) -> "Hold":
        """Returns an account of the process's memory for a request of `owner`, which must close it at the end."""
        return Hold(self, owner)

    def share_of(self, size: int) -> _Share:
        """Returns the share of the memory from which an amount of `size` bytes is taken: the small one for at most
        `SMALL_BYTES` that fit into it, else the large one."""
        return self._small if size <= min(SMALL_BYTES, self._small.limit) else self._large

    async def take(self, share: _Share, size: int, owner: str | None, *, starts: bool) -> None:
        """Takes `size` bytes of memory from a share for a request of `owner`, after waiting for them if necessary.
        `starts`: the request has no memory of this share yet. Raises `OutOfMemory` after the timeout."""
        await share.take(size, owner, self._timeout_seconds, starts=starts)


class MemoryOfLoops:
    """A memory of these limits for each event loop, made when work on the loop first needs it."""

    def __init__(self, limit: int, timeout_seconds: float) -> None:
        self._limit = limit
        self._timeout_seconds = timeout_seconds
        self._of_loops: WeakKeyDictionary[AbstractEventLoop, Memory] = WeakKeyDictionary()

    def current(self) -> Memory:
        """Returns the account of memory of the running event loop, which the first call makes."""
        loop = asyncio.get_running_loop()
        memory = self._of_loops.get(loop)
        if memory is None:
            memory = self._of_loops[loop] = Memory(self._limit, self._timeout_seconds)
        return memory


_BACKGROUND = MemoryOfLoops(BACKGROUND_MEMORY_BYTES, BACKGROUND_TIMEOUT_SECONDS)


def background_memory() -> Memory:
    """Returns the memory that all tasks, collections and commands on this event loop share to parse metadata files."""
    return _BACKGROUND.current()


class Hold:
    """The memory account of one request, a context manager that gives everything back. Without a `memory` it counts
    nothing. `owner` is the principal of the request, None until it is known, and without authentication."""

    def __init__(self, memory: Memory | None = None, owner: str | None = None) -> None:
        self._memory = memory
        self.owner = owner
        self._taken: list[Allocation] = []

    @property
    def counts(self) -> bool:
        """Whether the account takes memory: it was opened for one, and is not closed."""
        return self._memory is not None

    async def take(self, size: int) -> "Allocation":
        """Takes `size` bytes of memory for the request, after waiting for them if necessary, and returns the
        allocation. If the request would then have more than the whole share, it takes the rest of the share, and runs
        alone. A closed account, or one without a memory, takes nothing. Raises `OutOfMemory` after the timeout."""
        if self._memory is None or size <= 0:
            return Allocation(None, 0)
        share = self._memory.share_of(size)
        mine = sum(taken.size for taken in self._taken if taken.share is share) if self._taken else 0
        size = max(0, min(size, share.limit - mine))
        owner, starts = self.owner, mine == 0
        if size and not share.take_now(size, owner, starts=starts):  # one that has all of it waits for no more
            await self._memory.take(share, size, owner, starts=starts)
        taken = Allocation(share, size, owner)
        self._taken.append(taken)
        return taken

    def take_now(self, size: int) -> None:
        """Takes `size` bytes of memory for the request if they are free and no request waits, also if the owner's part
        is used up; otherwise, or if the account counts nothing, takes nothing, without an error."""
        if self._memory is not None and size > 0:
            share = self._memory.share_of(size)
            if share.take_now(size, self.owner, starts=False):
                self._taken.append(Allocation(share, size, self.owner))

    def close(self) -> None:
        """Gives back all memory that the request has taken. Later calls of `take` count nothing."""
        self._memory = None
        while self._taken:
            self._taken.pop().shrink(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Allocation:
    """An amount of memory that a request or task has taken: the present `size`, in bytes, of a `share`. The share is
    None and the size 0 if nothing was taken, because the account counts nothing or the amount was 0."""

    def __init__(self, share: _Share | None, size: int, owner: str | None = None) -> None:
        self.share = share
        self.size = size
        self._owner = owner

    def shrink(self, size: int) -> None:
        """Gives back all but `size` bytes of this amount of memory. A larger `size` than the present one changes
        nothing."""
        if self.share is not None and size < self.size:
            surplus, self.size = self.size - size, size
            self.share.give_back(surplus, self._owner)
