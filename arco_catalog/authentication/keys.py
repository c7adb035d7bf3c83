"""The keys that sign our own tokens: from a variable, a file, or a secret of the cloud's store.

Several may be given, the newest first: that one signs, all of them verify. To replace a key without a gap, add the new
one behind the old one everywhere, then put it in front, and take the old one away when its last token has expired.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arco_catalog.iceberg.errors import Unavailable
from storage_backends import StoreError
from storage_backends.secret_stores import read_secret

LEAST_BYTES = 32
"""What HS256 demands of a key (RFC 7518, section 3.2)."""
MOST_KEYS = 8
MAX_AGE_MS = 15 * 60_000
"""How old keys may be before they are read again, so that a change reaches every server."""
RETRY_MS = 60_000
"""How long at least between two reads that a token of an unknown key, or a failure, asks for."""
WITHOUT_MS = 1_000
"""The same while there are no keys at all: whoever sends tokens then, forged ones too, has them asked for no faster."""

_LOG = logging.getLogger(__name__)
_SEPARATOR = re.compile(r"[\s,]+")

Read = Callable[[], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key, and the id that tokens name it by, which says nothing of it."""

    id: str
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenKeys:
    """At least one key, the newest first."""

    keys: Sequence[SigningKey]

    @property
    def newest(self) -> SigningKey:
        """The one that signs."""
        return self.keys[0]

    def find(self, id: str) -> SigningKey | None:  # noqa: A002
        """The key that a token names."""
        return next((key for key in self.keys if key.id == id), None)


def parse_keys(text: str) -> TokenKeys:
    """Keys as they are written: each at least 32 bytes without blanks, such as `openssl rand -base64 48` prints, with a
    comma or a line break between two. Raises `ValueError`, which quotes none."""
    keys = [part.encode() for part in _SEPARATOR.split(text) if part]
    if not 1 <= len(keys) <= MOST_KEYS:
        raise ValueError(f"expected 1 to {MOST_KEYS} keys, the newest first")
    for number, key in enumerate(keys, start=1):
        if len(key) < LEAST_BYTES:
            raise ValueError(f"key {number} has {len(key)} bytes: at least {LEAST_BYTES} are needed")
        if len(set(key)) < 8:
            raise ValueError(f"key {number} is not random: make one with 'openssl rand -base64 48'")
    return TokenKeys([SigningKey(_id(key), key) for key in dict.fromkeys(keys)])


def _id(key: bytes) -> str:
    return hashlib.sha256(b"arco token key " + key).hexdigest()[:16]


def from_text(text: str) -> Read:
    """Keys that were given as they are."""

    async def read() -> bytes:
        return text.encode()

    return read


def read_file(path: str) -> TokenKeys:
    """The keys in a file. Raises `ValueError` if it cannot be read, or has none."""
    try:
        return parse_keys(Path(path).read_bytes().decode())
    except OSError as error:
        raise ValueError(f"the file {path!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"the file {path!r} is not text") from error


def from_file(path: str) -> Read:
    """Keys in a file, which is read again when they are old."""

    async def read() -> bytes:
        return await asyncio.to_thread(Path(path).read_bytes)

    return read


def from_secret_store(reference: str, environment: Mapping[str, str], now_ms: Callable[[], int]) -> Read:
    """Keys in a secret of the cloud's store, to which the variables of the stores give access."""

    async def read() -> bytes:
        return await read_secret(reference, environment, now_ms)

    return read


class KeySource:
    """Keys, read when they are first needed, unless they are `known`, and again when they are old. Belongs to one event
    loop."""

    def __init__(self, read: Read, now_ms: Callable[[], int], known: TokenKeys | None = None) -> None:
        self._read = read
        self._now_ms = now_ms
        self._held = known
        self._asked_ms = 0 if known is None else now_ms()
        self._failed_ms: int | None = None
        """When keys could not be had, while there are none."""
        self._reading = asyncio.Lock()

    async def current(self) -> TokenKeys:
        """The keys. Raises `Unavailable` if they can't be had: but not while there are old ones."""
        if self._held is None or self._age_ms() >= MAX_AGE_MS:
            return await self._renewed(MAX_AGE_MS)
        return self._held

    async def find(self, id: str) -> SigningKey | None:  # noqa: A002
        """The key that a token names; keys are read again, now and then, for one that is not known. Raises
        `Unavailable`."""
        found = (await self.current()).find(id)
        if found is None and self._age_ms() >= RETRY_MS:
            found = (await self._renewed(RETRY_MS)).find(id)
        return found

    def _age_ms(self) -> int:
        """Since they were last asked for; a clock that was set back makes them old."""
        age = self._now_ms() - self._asked_ms
        return age if age >= 0 else MAX_AGE_MS

    async def _renewed(self, age_ms: int) -> TokenKeys:
        async with self._reading:  # one task reads; the others use what it read
            if self._held is None or self._age_ms() >= age_ms:
                self._held = await self._ask()
                self._asked_ms = self._now_ms()
            return self._held

    def _failed_just_now(self) -> bool:
        return self._failed_ms is not None and 0 <= self._now_ms() - self._failed_ms < WITHOUT_MS

    async def _ask(self) -> TokenKeys:
        if self._held is None and self._failed_just_now():
            raise _unavailable()
        try:
            return parse_keys((await self._read()).decode())
        except (OSError, ValueError, StoreError) as error:
            why = str(error) if not isinstance(error, UnicodeDecodeError) else "they are not text"
            _LOG.error("the keys that sign tokens cannot be read: %s", why)
            if self._held is None:
                self._failed_ms = self._now_ms()
                raise _unavailable() from error
            return self._held


def _unavailable() -> Unavailable:
    return Unavailable("The keys that sign tokens cannot be read; the server's log says why")
