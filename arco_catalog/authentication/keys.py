"""The keys that sign access tokens of the catalog: from a variable, a file, or a secret of the cloud.

The first of several keys signs, and all of them verify. To replace a key without a gap, add the new one after the old
one on every server, then put it first, and remove the old one when its last token has expired.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from arco_catalog.iceberg.errors import Unavailable
from storage_backends import StoreError
from storage_backends.lazy_dataclass import dataclass
from storage_backends.secret_stores import read_secret

MIN_KEY_BYTES = 32
"""The length that HS256 requires of a key (RFC 7518, section 3.2)."""
MAX_KEYS = 8
MAX_AGE_MS = 15 * 60_000
"""Age at which keys are read again, so that a change reaches every server."""
RETRY_MS = 60_000
"""Pause between two reads for a token of an unknown key, or after a failure."""
EMPTY_RETRY_MS = 1_000
"""Pause between two reads while there are no keys, so that forged tokens cause no more reads."""

_LOG = logging.getLogger(__name__)
_SEPARATOR = re.compile(r"[\s,]+")

Read = Callable[[], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A secret key that signs and verifies the catalog's access tokens, and the id by which tokens name it. The id
    reveals nothing of the key."""

    id: str
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenKeys:
    """The keys, at least one, that verify the catalog's access tokens, in the order of the configuration. The first one
    signs new tokens."""

    keys: Sequence[SigningKey]

    @property
    def newest(self) -> SigningKey:
        """The first of the keys, which signs new tokens."""
        return self.keys[0]

    def find(self, id: str) -> SigningKey | None:  # noqa: A002
        """Returns the key that tokens name by this id, None if there is none."""
        return next((key for key in self.keys if key.id == id), None)


def parse_keys(text: str) -> TokenKeys:
    """Parses 1 to `MAX_KEYS` keys, the one that signs new tokens first: each at least 32 bytes without blanks, as
    `openssl rand -base64 48` prints, separated by commas or blanks. A key that is there twice is returned once, but
    counts twice. Raises `ValueError`, which quotes none, for another number of keys, and for one that is short or does
    not have 8 different bytes."""
    keys = [part.encode() for part in _SEPARATOR.split(text) if part]
    if not 1 <= len(keys) <= MAX_KEYS:
        raise ValueError(
            f"expected 1 to {MAX_KEYS} keys for tokens, separated by commas or line breaks, the one that signs new "
            f"tokens first, got {len(keys)} keys"
        )
    for number, key in enumerate(keys, start=1):
        if len(key) < MIN_KEY_BYTES:
            raise ValueError(f"key {number} for tokens has {len(key)} bytes: expected at least {MIN_KEY_BYTES}")
        if len(set(key)) < 8:
            raise ValueError(f"key {number} for tokens is not random: make one with 'openssl rand -base64 48'")
    return TokenKeys([SigningKey(_id(key), key) for key in dict.fromkeys(keys)])


def _id(key: bytes) -> str:
    """Returns the id of a signing key in the headers of tokens (`kid`): 16 hexadecimal digits of a hash of the key."""
    return hashlib.sha256(b"arco token key " + key).hexdigest()[:16]


def from_text(text: str) -> Read:
    """Returns a function that returns this text, which has the keys that sign tokens, in bytes."""

    async def read() -> bytes:
        return text.encode()

    return read


def read_file(path: str) -> TokenKeys:
    """Returns the keys that sign tokens in a file, read now. Raises `ValueError` if it cannot be read, or has anything
    else than valid keys."""
    try:
        return parse_keys(Path(path).read_bytes().decode())
    except OSError as error:
        raise ValueError(f"the file {path!r} with the keys for tokens cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"the file {path!r} with the keys for tokens is not UTF-8 text") from error


def from_file(path: str) -> Read:
    """Returns a function that reads the bytes of a file that has the keys that sign tokens, each time that it is
    called. It raises `OSError`."""

    async def read() -> bytes:
        return await asyncio.to_thread(Path(path).read_bytes)

    return read


def from_secret_store(reference: str, environment: Mapping[str, str], now_ms: Callable[[], int]) -> Read:
    """Returns a function that reads the bytes of a secret of the cloud that has the keys that sign tokens, with the
    credentials of the stores, each time that it is called. It raises `StoreError`."""

    async def read() -> bytes:
        return await read_secret(reference, environment, now_ms)

    return read


class KeySource:
    """The keys that sign and verify the catalog's access tokens. It reads them when they are first needed, unless they
    are `known` from the start, and again when they are as old as `MAX_AGE_MS`, or as `RETRY_MS` and a token names an
    unknown one; if that fails, the old ones stay. Belongs to one event loop."""

    def __init__(self, read: Read, now_ms: Callable[[], int], known: TokenKeys | None = None) -> None:
        self._read = read
        self._now_ms = now_ms
        self._keys = known
        self._read_ms = 0 if known is None else now_ms()
        self._failed_ms: int | None = None
        """When the last read failed, while there are no keys."""
        self._reading = asyncio.Lock()

    async def current(self) -> TokenKeys:
        """Returns the keys that sign and verify tokens, after reading them if none were read yet, or the last read
        (even a failed one) was at least `MAX_AGE_MS` ago. If they can't be read, the failure is logged and the old ones
        are returned, and without old ones `Unavailable` is raised."""
        if self._keys is None or self._age_ms() >= MAX_AGE_MS:
            return await self._refresh(MAX_AGE_MS)
        return self._keys

    async def find(self, id: str) -> SigningKey | None:  # noqa: A002
        """Returns the key that tokens name by this id, None if there is none. For an unknown id it first reads the
        keys, if the last read is at least a minute ago. Raises `Unavailable` if they can't be read and there are no old
        ones."""
        found = (await self.current()).find(id)
        if found is None and self._age_ms() >= RETRY_MS:
            found = (await self._refresh(RETRY_MS)).find(id)
        return found

    def _age_ms(self) -> int:
        """Returns the milliseconds since the signing keys were last read, or a read failed and the old ones stayed;
        `MAX_AGE_MS` if the clock was set back since."""
        age = self._now_ms() - self._read_ms
        return age if age >= 0 else MAX_AGE_MS

    async def _refresh(self, age_ms: int) -> TokenKeys:
        """Returns the signing keys, after reading them if there are none, or if `_age_ms` is at least `age_ms`. One
        task reads at a time. Raises `Unavailable` if they can't be read and there are no old ones."""
        async with self._reading:  # one task reads; the others use what it read
            if self._keys is None or self._age_ms() >= age_ms:
                self._keys = await self._read_keys()
                self._read_ms = self._now_ms()
            return self._keys

    def _failed_just_now(self) -> bool:
        """Whether the last read failed less than `EMPTY_RETRY_MS` ago, while there were no keys."""
        return self._failed_ms is not None and 0 <= self._now_ms() - self._failed_ms < EMPTY_RETRY_MS

    async def _read_keys(self) -> TokenKeys:
        """Reads the keys that sign this server's own tokens; if that fails, logs an error, and returns the ones that
        were read before. Raises `Unavailable` if there are none, and until `EMPTY_RETRY_MS` after such a failure
        without a read."""
        if self._keys is None and self._failed_just_now():
            raise _unavailable()
        try:
            return parse_keys((await self._read()).decode())
        except (OSError, ValueError, StoreError) as error:
            why = str(error) if not isinstance(error, UnicodeDecodeError) else "they are not text"
            _LOG.error(
                "the keys that sign tokens cannot be read, so the old ones are still used; without old ones no "
                "token is issued or accepted, and such requests get 503: %s",
                why,
            )
            if self._keys is None:
                self._failed_ms = self._now_ms()
                raise _unavailable() from error
            return self._keys


def _unavailable() -> Unavailable:
    """Returns the error of a server that can't read its signing keys."""
    return Unavailable(
        "No token can be issued or verified now, because the server cannot read the keys that sign tokens: its log "
        "has the reason"
    )
