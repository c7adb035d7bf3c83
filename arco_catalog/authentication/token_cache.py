"""Caches the results of verified tokens until they expire, so that a signature is not verified with each request.

The keys of the cache are digests, not tokens.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T")

MAX_TOKENS = 4_096
"""Entries of a cache, of about a kilobyte each besides the names in them."""
MAX_NAMES = 1 << 18
"""Names of roles and scopes in all entries of a cache, of some hundred bytes each: a token may have thousands."""


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    value: T
    until_ms: int
    names: int


class TokenCache(Generic[T]):
    """Caches the results of verified tokens, by token, until they expire. If there are too many, or they have too many
    names, it drops the least recently used."""

    def __init__(self, now_ms: Callable[[], int], max_tokens: int = MAX_TOKENS, max_names: int = MAX_NAMES) -> None:
        self._now_ms = now_ms
        self._max_tokens = max_tokens
        self._max_names = max_names
        self._names = 0
        self._entries: OrderedDict[bytes, _Entry[T]] = OrderedDict()

    def get(self, token: str) -> T | None:
        """Returns the cached result of a verified token, which then counts as used; None if it is not cached, or has
        expired, and then drops it."""
        key = _digest(token)
        entry = self._entries.get(key)
        if entry is None:
            return None
        if self._now_ms() >= entry.until_ms:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.value

    def put(self, token: str, value: T, until_ms: int, names: int = 0) -> None:
        """Caches the result of a verified token, which has this number of names, until a time, in milliseconds since
        1970, in place of an earlier result. If there are too many results or names, the least recently used are
        dropped."""
        key = _digest(token)
        self._drop(key)
        self._entries[key] = _Entry(value, until_ms, names)
        self._names += names
        while len(self._entries) > self._max_tokens or self._names > self._max_names:
            self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        """Drops all cached results of tokens, when a key that verified some of them is no longer trusted."""
        self._entries.clear()
        self._names = 0

    def _drop(self, key: bytes) -> None:
        """Removes the result of a token, if it is cached."""
        entry = self._entries.pop(key, None)
        self._names -= 0 if entry is None else entry.names

    def __len__(self) -> int:
        return len(self._entries)


def _digest(token: str) -> bytes:
    """Returns the SHA-256 digest of a token: the key of the cache, which does not store the token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
