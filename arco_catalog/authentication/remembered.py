"""Verified tokens, remembered until they expire: a signature is checked once, not with each request.

Tokens themselves are not kept, only their digests.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

MOST = 4_096
"""Tokens that are remembered at once, at about a kilobyte each."""


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    value: T
    until_ms: int


class Remembered(Generic[T]):
    """What tokens were found to say, by the tokens; those used longest ago are forgotten first."""

    def __init__(self, now_ms: Callable[[], int], most: int = MOST) -> None:
        self._now_ms = now_ms
        self._most = most
        self._entries: OrderedDict[bytes, _Entry[T]] = OrderedDict()

    def get(self, token: str) -> T | None:
        """What the token says, None if it is not known or has expired."""
        key = _digest(token)
        entry = self._entries.get(key)
        if entry is None:
            return None
        if self._now_ms() >= entry.until_ms:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry.value

    def put(self, token: str, value: T, until_ms: int) -> None:
        """Remembers what a verified token says, until then."""
        self._entries[_digest(token)] = _Entry(value, until_ms)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forgets all: keys that they were verified by are no longer trusted."""
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
