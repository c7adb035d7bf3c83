"""Caches vended credentials, in this process's memory alone, for half of their lifetime."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

from arco_catalog.vending.credential import StorageCredential
from storage_backends.lazy_dataclass import dataclass

Credentials = tuple[StorageCredential, ...]


@dataclass(frozen=True, slots=True)
class _CachedCredentials:
    """The cached credentials of one key, and the time until which the cache returns them."""

    credentials: Credentials
    until_ms: int


class CredentialCache:
    """A cache of the credentials for at most `size` keys, of which it drops the least recently used. It returns
    credentials for half of the time until the first of them expires, and an empty result for `none_ms`. Concurrent
    requests for one key share one call, and a failure of it, which is not cached."""

    def __init__(self, now_ms: Callable[[], int], size: int = 4_096, none_ms: int = 60_000) -> None:
        self._now_ms = now_ms
        self._size = size
        self._none_ms = none_ms  # how long it is remembered that there are none
        self._kept: OrderedDict[Hashable, _CachedCredentials] = OrderedDict()
        self._pending: dict[Hashable, asyncio.Task[Credentials]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def get(self, key: Hashable, issue: Callable[[], Awaitable[Credentials]]) -> Credentials:
        """Returns the cached credentials of a key, or else those that `issue` returns, which concurrent calls for the
        key share. Raises what `issue` raises."""
        kept = self._kept.get(key)
        if kept is not None and self._now_ms() < kept.until_ms:
            self._kept.move_to_end(key)
            return kept.credentials
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # no loop finishes the tasks of another one
            self._loop, self._pending = loop, {}
        pending = self._pending.get(key)
        if pending is None:
            pending = loop.create_task(self._ask(key, issue))
            self._pending[key] = pending
            pending.add_done_callback(self._forget_failure)
        return await asyncio.shield(pending)  # a cancelled caller must not cancel the request of the others

    async def _ask(self, key: Hashable, issue: Callable[[], Awaitable[Credentials]]) -> Credentials:
        """Has credentials of a key issued, and returns them. They are cached for half of the time until the first
        expires, or for `none_ms` if there are none. Drops the least recently used keys if there are more than `size`.
        Raises what `issue` raises, and then puts nothing into the cache."""
        began_ms = self._now_ms()
        try:
            credentials = await issue()
        finally:
            self._pending.pop(key, None)
        ends = [credential.expires_ms for credential in credentials]
        until_ms = began_ms + (min(ends) - began_ms) // 2 if ends else began_ms + self._none_ms
        self._kept[key] = _CachedCredentials(credentials, until_ms)
        self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return credentials

    @staticmethod
    def _forget_failure(task: asyncio.Task[Credentials]) -> None:
        """Marks a failure as read: the waiting callers get it; if all of them were cancelled, asyncio would log a
        warning."""
        if not task.cancelled():
            task.exception()
