"""Makes, hashes and checks client ids and secrets (docs/design/access.md#authentication).

A generated secret has 256 random bits, for which one salted SHA-256 is enough. A chosen one may be guessed, so it is
stored as scrypt. The form of the presented secret alone selects the hash, so the time of a check does not reveal
whether the client id is known, or how its secrets are stored.
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
"""Valid secrets of a principal: two, so that a rotation leaves no gap."""
MAX_LENGTH = 512
"""Characters of a secret; longer ones are refused."""
WAITING = 16
"""Checks of chosen secrets that may wait in a process. Each takes some 0.3 s, so more would wait in vain."""

SHA256, SCRYPT = "sha256", "scrypt"
_GENERATED = re.compile(r"[0-9a-f]{64}")
MAX_CLIENT_ID = 256
_CLIENT_ID = re.compile(rf"[A-Za-z0-9._@~-]{{1,{MAX_CLIENT_ID}}}")
_SALT_BYTES = 16
_DUMMY_SALT = bytes(_SALT_BYTES)
# The work that OWASP's password storage cheat sheet recommends, in the variant with the least memory: 16 MB.
_COST, _BLOCK, _PARALLEL = 1 << 14, 8, 5
_MEMORY = 32 << 20

Entropy = Callable[[int], bytes]
"""Returns a number of random bytes."""


def new_client_id(entropy: Entropy) -> str:
    """Makes a client id of 128 random bits, in 32 hexadecimal digits."""
    return entropy(16).hex()


def check_client_id(client_id: str) -> None:
    """Raises `IllegalArgument` for a client id that a header can't carry, where a colon ends it: it must have 1 to
    `MAX_CLIENT_ID` letters, digits, or any of `. _ @ ~ -`."""
    if _CLIENT_ID.fullmatch(client_id) is None:
        raise IllegalArgument(
            f"The client id of a reset must have 1 to {MAX_CLIENT_ID} letters, digits, or any of . _ @ ~ -"
        )


def new_secret(entropy: Entropy) -> str:
    """Makes a secret of 256 random bits, in 64 hexadecimal digits."""
    return entropy(32).hex()


def is_generated(secret: str) -> bool:
    """Whether a secret has the form of generated ones: 256 bits in 64 lower-case hexadecimal digits."""
    return _GENERATED.fullmatch(secret) is not None


def fingerprint(secret: Secret) -> str:
    """Returns a digest that identifies a principal's stored secret without revealing it. A token carries the
    fingerprint of the secret it was issued for."""
    return secret.fingerprint


class Secrets:
    """Hashes the secrets of principals to store them, and checks presented secrets against stored ones. One thread of a
    process works on chosen secrets, one at a time; a call for one more raises `TooManyRequests` if `waiting` calls of
    this object wait for it already."""

    def __init__(self, entropy: Entropy, waiting: int = WAITING) -> None:
        self._entropy = entropy
        self._waiting = waiting
        self._under_way = 0

    async def keep(self, secret: str, stored: Iterable[Secret] = ()) -> Secret:
        """Returns the salted hash of a secret, to be stored with those that the principal has (`stored`), and stores
        nothing: SHA-256 of a generated one, scrypt of a chosen one. Chosen ones of a principal share a salt, so that a
        check derives once. Raises `IllegalArgument` unless the secret has 1 to `MAX_LENGTH` printable characters, and
        `TooManyRequests` if too many chosen ones are being hashed."""
        if not secret or len(secret) > MAX_LENGTH or not secret.isprintable():
            raise IllegalArgument(f"The client secret of a reset must have 1 to {MAX_LENGTH} printable characters")
        if is_generated(secret):
            salt = self._entropy(_SALT_BYTES)
            return _stored(SHA256, salt, _sha256(salt, secret))
        chosen = [each for each in stored if each.scheme == SCRYPT]
        salt = bytes.fromhex(chosen[0].salt) if chosen else self._entropy(_SALT_BYTES)
        return _stored(SCRYPT, salt, await self._scrypt(salt, secret))

    async def check(self, secret: str, stored: Iterable[Secret]) -> Secret | None:
        """Returns the stored secret that the presented `secret` matches; None if none does. Only the first `VALID` of
        those that are stored by the hash of its form are compared. For an unknown client id `stored` is empty, and the
        check takes as long. Raises `TooManyRequests` if too many chosen secrets are being hashed."""
        if not secret or len(secret) > MAX_LENGTH:
            return None
        scheme = SHA256 if is_generated(secret) else SCRYPT
        candidates = [each for each in stored if each.scheme == scheme][:VALID]
        digests: dict[bytes, bytes] = {}
        for salt in {bytes.fromhex(each.salt): None for each in candidates} or {_DUMMY_SALT: None}:
            digests[salt] = _sha256(salt, secret) if scheme == SHA256 else await self._scrypt(salt, secret)
        found = None
        for each in candidates:
            if hmac.compare_digest(digests[bytes.fromhex(each.salt)], bytes.fromhex(each.digest)) and found is None:
                found = each
        return found

    async def _scrypt(self, salt: bytes, secret: str) -> bytes:
        """Returns the scrypt digest of a secret, computed in the one thread for them. Raises `TooManyRequests` if too
        many wait."""
        if self._under_way > self._waiting:
            raise TooManyRequests(
                "Too many client secrets that this server did not generate are being hashed in this process, to "
                "compare or store them: try again in 2 seconds",
                retry_after=2,
            )
        self._under_way += 1
        working = asyncio.get_running_loop().run_in_executor(_thread(), _scrypt, salt, secret)
        working.add_done_callback(self._end)  # work of a cancelled caller still occupies the thread
        return await asyncio.shield(working)

    def _end(self, working: "asyncio.Future[bytes]") -> None:
        """Counts a scrypt digest as no longer under way, and retrieves the error of a failed one."""
        self._under_way -= 1
        if not working.cancelled():
            working.exception()  # retrieved, since a cancelled caller does not


def _stored(scheme: str, salt: bytes, digest: bytes) -> Secret:
    """Returns the record by which the realm stores a secret: the scheme of the hash, and salt and digest in
    hexadecimal."""
    return Secret({"scheme": scheme, "salt": salt.hex(), "digest": digest.hex()})


def _sha256(salt: bytes, secret: str) -> bytes:
    """Returns the salted digest of a secret that the catalog generated. Other secrets get that of `_scrypt`."""
    return hashlib.sha256(salt + secret.encode("utf-8", "surrogatepass")).digest()


def _scrypt(salt: bytes, secret: str) -> bytes:
    """Returns the 32 bytes that scrypt derives from a salt and a secret, with the cost that this module fixes. Blocks
    the calling thread meanwhile."""
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
    """Returns the thread that computes all scrypt digests of the process."""
    return ThreadPoolExecutor(1, thread_name_prefix="arco-secrets")
