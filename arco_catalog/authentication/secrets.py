"""Client ids and secrets: how they are made, kept and checked (docs/design/access.md#authentication).

A generated secret has 256 random bits, for which one salted SHA-256 is enough. A chosen one may be guessed, so it is
kept as scrypt. Which of the two is told by the form of the secret alone: so the cost of a check is a matter of what is
presented, and says nothing of whether the client id is known, or how its secrets are kept.
"""

import asyncio
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from arco_catalog.iceberg.errors import IllegalArgument, TooManyRequests
from arco_catalog.state.realm import Secret

VALID = 2
"""How many secrets of a principal are valid at once, so that a rotation leaves no gap."""
MAX_LENGTH = 512
"""Characters of a secret that is looked at at all."""
WAITING = 16
"""How many checks of chosen secrets may wait in a process; at some 0.3 s each, more would wait in vain."""

SHA256, SCRYPT = "sha256", "scrypt"
_GENERATED = re.compile(r"[0-9a-f]{64}")
MAX_CLIENT_ID = 256
_CLIENT_ID = re.compile(rf"[A-Za-z0-9._@~-]{{1,{MAX_CLIENT_ID}}}")
_SALT_BYTES = 16
_NOBODYS_SALT = bytes(_SALT_BYTES)
# As much work as OWASP's password storage cheat sheet asks for, in the variant that needs the least memory: 16 MB.
_COST, _BLOCK, _PARALLEL = 1 << 14, 8, 5
_MEMORY = 32 << 20

Entropy = Callable[[int], bytes]
"""Gives as many random bytes as it is asked for."""


def new_client_id(entropy: Entropy) -> str:
    """A client id that no other principal has."""
    return entropy(16).hex()


def check_client_id(client_id: str) -> None:
    """Raises `IllegalArgument` for one that could never be presented: a colon ends it in a header."""
    if _CLIENT_ID.fullmatch(client_id) is None:
        raise IllegalArgument(f"A client id must have 1 to {MAX_CLIENT_ID} letters, digits, or any of . _ @ ~ -")


def new_secret(entropy: Entropy) -> str:
    """A secret that nobody can guess."""
    return entropy(32).hex()


def is_generated(secret: str) -> bool:
    """Whether a secret has the form of generated ones: 256 bits in hexadecimal digits."""
    return _GENERATED.fullmatch(secret) is not None


def with_secret(kept: Iterable[Secret], secret: Secret) -> tuple[Secret, ...]:
    """The secrets of a principal that got another: the newest first, and no more than are valid at once."""
    return (secret, *kept)[:VALID]


def fingerprint(secret: Secret) -> str:
    """Tells a kept secret from others, and nothing about it: tokens say by it what they were given for."""
    return secret.fingerprint


class Secrets:
    """Keeps secrets and checks them. At most one thread of a process works on chosen secrets, at one at a time."""

    def __init__(self, entropy: Entropy, waiting: int = WAITING) -> None:
        self._entropy = entropy
        self._waiting = waiting
        self._under_way = 0

    async def keep(self, secret: str, kept: Iterable[Secret] = ()) -> Secret:
        """A secret as it is stored beside those that the principal has: chosen ones have one salt, so that a check
        derives once. Raises `IllegalArgument` for one that could never be presented, and `TooManyRequests`."""
        if not secret or len(secret) > MAX_LENGTH or not secret.isprintable():
            raise IllegalArgument(f"A client secret must have 1 to {MAX_LENGTH} printable characters")
        if is_generated(secret):
            salt = self._entropy(_SALT_BYTES)
            return _kept(SHA256, salt, _sha256(salt, secret))
        chosen = [each for each in kept if each.scheme == SCRYPT]
        salt = bytes.fromhex(chosen[0].salt) if chosen else self._entropy(_SALT_BYTES)
        return _kept(SCRYPT, salt, await self._scrypt(salt, secret))

    async def check(self, secret: str, kept: Iterable[Secret]) -> Secret | None:
        """The kept secret that was presented, None if it is none of them; nothing is kept for an unknown client id.
        Raises `TooManyRequests`."""
        if not secret or len(secret) > MAX_LENGTH:
            return None
        scheme = SHA256 if is_generated(secret) else SCRYPT
        candidates = [each for each in kept if each.scheme == scheme][:VALID]
        digests: dict[bytes, bytes] = {}
        for salt in {bytes.fromhex(each.salt): None for each in candidates} or {_NOBODYS_SALT: None}:
            digests[salt] = _sha256(salt, secret) if scheme == SHA256 else await self._scrypt(salt, secret)
        found = None
        for each in candidates:
            if hmac.compare_digest(digests[bytes.fromhex(each.salt)], bytes.fromhex(each.digest)) and found is None:
                found = each
        return found

    async def _scrypt(self, salt: bytes, secret: str) -> bytes:
        if self._under_way > self._waiting:
            raise TooManyRequests("Too many client secrets are being checked: try again", retry_after=2)
        self._under_way += 1
        working = asyncio.get_running_loop().run_in_executor(_thread(), _scrypt, salt, secret)
        working.add_done_callback(self._end)  # what a caller left behind still occupies the thread
        return await asyncio.shield(working)

    def _end(self, working: "asyncio.Future[bytes]") -> None:
        self._under_way -= 1
        if not working.cancelled():
            working.exception()  # a caller who left does not look


def _kept(scheme: str, salt: bytes, digest: bytes) -> Secret:
    return Secret({"scheme": scheme, "salt": salt.hex(), "digest": digest.hex()})


def _sha256(salt: bytes, secret: str) -> bytes:
    return hashlib.sha256(salt + secret.encode("utf-8", "surrogatepass")).digest()


def _scrypt(salt: bytes, secret: str) -> bytes:
    return hashlib.scrypt(
        secret.encode("utf-8", "surrogatepass"),
        salt=salt,
        n=_COST,
        r=_BLOCK,
        p=_PARALLEL,
        maxmem=_MEMORY,
        dklen=32,
    )


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="arco-secrets")
