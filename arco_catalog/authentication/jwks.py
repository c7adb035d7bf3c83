"""The public keys of an issuer of tokens: found by OpenID Connect discovery, cached, and refreshed.

Requests wait for the issuer only if no keys of the last day are cached, or if a token names an unknown key and a fetch
is under way, or the last one began at least `RETRY_MS` ago. Cached keys are used for up to a day while the issuer is
down. Sources: OpenID Connect Discovery 1.0, section 4; RFC 7517; RFC 7518,
section 6.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field

from arco_catalog.authentication.edwards import is_sound_point
from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.iceberg.json import JsonObject, loads
from storage_backends import StoreError
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.fetch import checked_url, failure_of, fetch

REFRESH_MS = 10 * 60_000
"""Age of keys at which they are refreshed in the background."""
STALE_MS = 24 * 60 * 60_000
"""Age at which keys are no longer used, even if the issuer is down: a withdrawn key must end some time."""
BACKGROUND_RETRY_MS = 30_000
"""Pause between two attempts in the background."""
RETRY_MS = 5_000
"""Pause between two attempts for which a request waits: a stranger can name unknown keys as often as it likes."""
MAX_DISCOVERY_BYTES = 64 << 10
MAX_KEYS_BYTES = 256 << 10
MAX_KEYS = 64
MAX_CANDIDATES = 4
"""Keys with one id by which the signature of a token is checked."""
RSA_BYTES = range(256, 2_048 + 1)
"""Lengths of the modulus of an RSA key."""
MAX_EXPONENT_BYTES = 8
"""Maximum length of the public exponent of an RSA key. With a long one each signature takes milliseconds to check."""

# What each algorithm takes: the type of key, and the curve.
ALGORITHMS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", ())),
    "ES256": ("EC", ("P-256",)),
    "ES384": ("EC", ("P-384",)),
    "ES512": ("EC", ("P-521",)),
    "EdDSA": ("OKP", ("Ed25519", "Ed448")),
}
"""The algorithms that an issuer may sign with. None is symmetric: a verifier could sign by it, too."""

_LOG = logging.getLogger(__name__)

Get = Callable[[str, int], Awaitable[bytes]]
"""Gets a document from a URL, of at most a number of bytes. Raises `StoreError`."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key with which an issuer's signatures are verified."""

    id: str
    jwk: JsonObject = field(hash=False)

    def takes(self, algorithm: str) -> bool:
        """Whether this public key verifies signatures made with an algorithm: its type and curve are the algorithm's,
        and it names no other algorithm. Raises `KeyError` for an algorithm that is not in `ALGORITHMS`."""
        kind, curves = ALGORITHMS[algorithm]
        if self.jwk.get("kty") != kind or (curves and self.jwk.get("crv") not in curves):
            return False
        return self.jwk.get("alg", algorithm) == algorithm


class NoUsableKey(ValueError):
    """A key set without a key by which this server verifies signatures."""


def parse_keys(body: bytes) -> Sequence[PublicKey]:
    """Returns the public keys of a key set (JWKS) by which this server verifies signatures: with an id, a supported
    type and no private part, not for another use than signatures, of RSA with a modulus of `RSA_BYTES` and a short
    exponent, and on Edwards curves no point for which anyone can sign. Skips others. Raises `NoUsableKey` if none
    remains, and `ValueError` if the set has more than `MAX_KEYS` keys, or if the body is no key set."""
    document = loads(body)
    found = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(found, list) or len(found) > MAX_KEYS:
        raise ValueError(f"the document at the issuer's jwks_uri is not a key set (JWKS) of at most {MAX_KEYS} keys")
    keys = [PublicKey(str(jwk["kid"]), jwk) for jwk in found if isinstance(jwk, dict) and _verifies(jwk)]
    if not keys:
        raise NoUsableKey("the issuer's key set (JWKS) has no usable public key for signatures with a 'kid'")
    return keys


def _verifies(jwk: JsonObject) -> bool:
    """Whether a published key may verify signatures here: it has an id and no private part, and its type, use and size
    are allowed."""
    kind, operations = jwk.get("kty"), jwk.get("key_ops", ["verify"])
    return (
        isinstance(jwk.get("kid"), str)
        and isinstance(kind, str)
        and kind in {kind for kind, _ in ALGORITHMS.values()}
        and jwk.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
        and "d" not in jwk  # a published private key is no secret
        and (kind != "RSA" or (_length(jwk.get("n")) in RSA_BYTES and 0 < _length(jwk.get("e")) <= MAX_EXPONENT_BYTES))
        and (kind != "OKP" or is_sound_point(jwk.get("crv"), _decoded(jwk.get("x"))))
    )


def _length(number: object) -> int:
    """Returns the number of bytes of a number that a published key has in base64url, without leading zeros; 0 if it
    can't be decoded."""
    return len(_decoded(number).lstrip(b"\0"))


def _decoded(value: object) -> bytes:
    """Returns the bytes of a base64url text in a published key, without the ASCII characters in it that are not of
    base64. Returns no bytes if the rest can't be decoded, for a text that is not ASCII, and for a value that is not a
    text."""
    if not isinstance(value, str):
        return b""
    try:
        return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
    except (binascii.Error, ValueError):
        return b""


def discovered_uri(body: bytes, issuer: str, *, plain_loopback: bool = False) -> str:
    """Returns the URL of an issuer's keys in its discovery document. Raises `ValueError` for a document of another
    issuer, without a URL, or not in JSON, and `StoreDenied` for a URL that is not HTTPS, unless `plain_loopback` allows
    HTTP to this machine, or that has a user, a fragment or blanks."""
    document = loads(body)
    if not isinstance(document, dict) or document.get("issuer") != issuer:
        raise ValueError("the issuer's discovery document names another issuer, or none")
    uri = document.get("jwks_uri")
    if not isinstance(uri, str):
        raise ValueError("the issuer's discovery document has no 'jwks_uri'")
    checked_url(uri, plain_loopback=plain_loopback)
    return uri


def over_https(now_ms: Callable[[], int], *, plain_loopback: bool = False) -> Get:
    """Returns a function that gets documents by HTTPS, without following redirects; with `plain_loopback`, from this
    machine by HTTP too. It raises `StoreError` for any other URL, without a complete response in time, for one that is
    not 200 and for one that is too long."""

    async def get(url: str, max_bytes: int) -> bytes:
        response = await fetch(url, {}, now_ms, max_bytes, plain_loopback=plain_loopback)
        if response.status != 200:
            raise failure_of(url, response)
        return response.body

    return get


class IssuerKeys:
    """The public keys of one issuer of tokens, fetched and cached. Belongs to one event loop. `withdrawn` counts the
    refreshes in which a cached key was missing or different."""

    def __init__(self, issuer: str, get: Get, now_ms: Callable[[], int], *, plain_loopback: bool = False) -> None:
        self._issuer = issuer
        self._get = get
        self._now_ms = now_ms
        self._plain_loopback = plain_loopback
        self._keys: Sequence[PublicKey] = ()
        self._fetched_ms = 0
        self._attempted_ms: int | None = None
        self._failed = False
        self._refreshing: asyncio.Task[bool] | None = None
        self.withdrawn = 0

    async def find_all(self, id: str, algorithm: str) -> Sequence[PublicKey]:  # noqa: A002
        """Returns the issuer's keys with an id for an algorithm, at most `MAX_CANDIDATES`; empty if it has none. Waits
        for a fetch of the keys first if none are cached or they are older than `STALE_MS`, and also for an unknown id,
        if a fetch is under way or the last attempt was at least `RETRY_MS` ago. Keys older than `REFRESH_MS` are
        refreshed in the background. Raises `Unavailable` if the keys have to be fetched, and can't be: without usable
        ones, and for an unknown id after a failed attempt, also at once, if no fetch is under way and the last attempt
        was less than `RETRY_MS` ago."""
        if not self.are_usable():
            await self._wait_for_refresh()
        self.refresh_if_old()
        known = self._find(id)
        if not known and (self._refreshing is not None or self._failed or self._since_attempt() >= RETRY_MS):
            await self._wait_for_refresh()
            known = self._find(id)
        return [key for key in known if key.takes(algorithm)][:MAX_CANDIDATES]

    def are_usable(self) -> bool:
        """Whether keys are cached that are younger than `STALE_MS`."""
        return bool(self._keys) and self._age() < STALE_MS

    def refresh_if_old(self) -> None:
        """Starts to refresh the keys of an issuer in the background if there are cached ones, they are older than
        `REFRESH_MS`, and the last attempt was at least `BACKGROUND_RETRY_MS` ago."""
        if self._keys and self._age() >= REFRESH_MS and self._since_attempt() >= BACKGROUND_RETRY_MS:
            self._refresh()

    async def close(self) -> None:
        """Cancels the fetch of an issuer's keys that is under way, if there is one, and waits for its end."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)

    def _find(self, id: str) -> Sequence[PublicKey]:  # noqa: A002
        """Returns the cached keys with an id, for any algorithm."""
        return [key for key in self._keys if key.id == id]

    def _age(self) -> int:
        """Returns how many milliseconds ago the keys were fetched; `REFRESH_MS` if the clock was set back since."""
        age = self._now_ms() - self._fetched_ms
        return age if age >= 0 else REFRESH_MS  # the clock was set back

    def _since_attempt(self) -> int:
        """Returns how many milliseconds ago the last attempt to fetch the keys was made; enough for another attempt if
        there was none, or the clock was set back."""
        if self._attempted_ms is None or self._now_ms() < self._attempted_ms:
            return max(RETRY_MS, BACKGROUND_RETRY_MS)
        return self._now_ms() - self._attempted_ms

    async def _wait_for_refresh(self) -> None:
        """Fetches the issuer's keys, or waits for the fetch that is under way. Raises `Unavailable` if that fails, or
        if none is under way and the last attempt was less than `RETRY_MS` ago."""
        is_too_soon = self._refreshing is None and self._since_attempt() < RETRY_MS
        if is_too_soon or not await asyncio.shield(self._refresh()):
            raise Unavailable(
                f"The token cannot be verified now, because the keys of its issuer {self._issuer} are not "
                "available: try again later. They could not be fetched just now, or none is usable: the server's log "
                "has the reason"
            )

    def _refresh(self) -> "asyncio.Task[bool]":
        """Returns the running task that fetches the issuer's keys, or else starts one. The task returns whether it
        succeeded."""
        if self._refreshing is None:
            self._attempted_ms = self._now_ms()
            self._refreshing = asyncio.create_task(self._fetch_keys())
            self._refreshing.add_done_callback(self._end)
        return self._refreshing

    def _end(self, _: "asyncio.Task[bool]") -> None:
        """Forgets the task that fetched the issuer's keys, so that the next refresh starts another one."""
        self._refreshing = None

    async def _fetch_keys(self) -> bool:
        """Fetches the issuer's keys in place of the cached ones, and returns whether that succeeded. If not, logs the
        reason, and keeps the cached ones, or drops them if the issuer publishes no usable key. Counts in `withdrawn` if
        a cached key is no longer in the set."""
        try:
            where = self._issuer.rstrip("/") + "/.well-known/openid-configuration"
            discovery = await self._get(where, MAX_DISCOVERY_BYTES)
            uri = discovered_uri(discovery, self._issuer, plain_loopback=self._plain_loopback)
            keys = parse_keys(await self._get(uri, MAX_KEYS_BYTES))
        except NoUsableKey as error:
            _LOG.warning(
                "no token of the issuer %s is accepted, and requests with one get 503, until it publishes a usable "
                "key: %s",
                self._issuer,
                error,
            )
            self._replace(())
            return False
        except (StoreError, ValueError) as error:
            _LOG.warning(
                "the public keys of the token issuer %s could not be fetched; keys fetched within the last day "
                "are still used, and requests with a token of this issuer that names none of them get 503: %s",
                self._issuer,
                error,
            )
            self._failed = True
            return False
        self._replace(keys)
        return True

    def _replace(self, keys: Sequence[PublicKey]) -> None:
        """Puts newly fetched keys of an issuer in the place of the present ones, and increments `withdrawn` if one of
        these is no longer published."""
        if any(key not in keys for key in self._keys):
            self.withdrawn += 1
        self._keys, self._fetched_ms, self._failed = keys, self._now_ms(), False
