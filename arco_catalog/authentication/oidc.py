"""Authenticates by bearer tokens of configured issuers (OpenID Connect), verified by the issuers' public keys.

Before its signature is verified, only these parts of a token are used: of the header the id of the key, the algorithm,
which must be one of the issuer's, the type, and whether it has `crit`; of the claims the issuer, which selects the
settings. Keys and places of keys in the header (`jwk`, `jku`, `x5u`) are ignored.
"""

from collections.abc import Callable, Sequence

from arco_catalog.authentication.authenticator import AuthenticationResult, RequestCredentials
from arco_catalog.authentication.claims import (
    UnverifiedToken,
    check_bearer_token,
    claim_at,
    expiry_ms,
    read_unverified,
    roles_in,
    text_claim,
)
from arco_catalog.authentication.gateway import printable
from arco_catalog.authentication.jwks import IssuerKeys, PublicKey
from arco_catalog.authentication.signatures import verified_claims
from arco_catalog.authentication.token_cache import TokenCache
from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.access import Identity
from storage_backends.lazy_dataclass import dataclass

KINDS = ("jwt", "at+jwt", "application/at+jwt")
"""Types of access tokens, in lower case; others are for logging out, for proofs, for events."""
MAX_KEY_ID = 256


@dataclass(frozen=True, slots=True)
class Issuer:
    """A trusted issuer: the realm, audiences and algorithms of its tokens, and the claims that name the principal and
    its roles."""

    url: str
    realm: str
    audiences: Sequence[str]
    algorithms: Sequence[str]
    principal_claim: str
    roles_claim: str | None


@dataclass(slots=True)
class _TrustedIssuer:
    """A trusted issuer, with the keys and the cached results of tokens. `withdrawn` is the value of `keys.withdrawn`
    when the cache was last emptied."""

    issuer: Issuer
    keys: IssuerKeys
    cache: TokenCache[AuthenticationResult]
    withdrawn: int = 0

    def recall(self, token: str) -> AuthenticationResult | None:
        """Returns the cached result of a token; None if there is none, it has expired, or the issuer's keys are too old
        to verify tokens. After an issuer withdrew a key the cache is emptied first, so that all tokens are verified
        anew."""
        if self.withdrawn != self.keys.withdrawn:
            self.cache.clear()
            self.withdrawn = self.keys.withdrawn
        return self.cache.get(token) if self.keys.are_usable() else None


class OidcAuthenticator:
    """Authenticates requests by bearer tokens of the configured issuers, which it verifies with the issuers' public
    keys. Belongs to one event loop."""

    def __init__(self, issuers: Sequence[tuple[Issuer, IssuerKeys]], now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._trusted = {
            issuer.url: _TrustedIssuer(issuer, keys, TokenCache[AuthenticationResult](now_ms))
            for issuer, keys in issuers
        }

    async def authenticate(self, credentials: RequestCredentials) -> AuthenticationResult | None:
        """Returns the principal of a bearer token, from the cache or by verifying the token; None without a token, and
        for one that is no JWT or of an issuer that is not configured. A cached one may start a refresh of the keys in
        the background. Raises `NotAuthorized` for an invalid token of a configured issuer, and `Unavailable` without
        the keys."""
        token = credentials.bearer
        if token is None:
            return None
        for trusted in self._trusted.values():
            known = trusted.recall(token)
            if known is not None:
                trusted.keys.refresh_if_old()
                return known
        unverified = read_unverified(token)
        issuer = None if unverified is None or unverified.issuer is None else self._trusted.get(unverified.issuer)
        if unverified is None or issuer is None:
            return None
        return await self._verify(token, unverified, issuer)

    async def close(self) -> None:
        """Cancels the fetches of issuers' keys that are under way."""
        for trusted in self._trusted.values():
            await trusted.keys.close()

    async def _verify(self, token: str, unverified: UnverifiedToken, trusted: _TrustedIssuer) -> AuthenticationResult:
        """Verifies the signature and the claims of an issuer's token, puts the result into the cache until the token
        expires, and returns it. Raises `NotAuthorized` for a token that is not valid, and `Unavailable` if the issuer's
        keys can't be had now."""
        issuer, algorithm = trusted.issuer, unverified.header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in issuer.algorithms:
            raise NotAuthorized("The token is signed by an algorithm that is not allowed for its issuer")
        keys = await trusted.keys.find_all(key_id(unverified), algorithm)
        claims = _claims_by_any(keys, token, algorithm, issuer)
        until_ms = expiry_ms(claims, self._now_ms())
        found = result_of(claims, issuer)
        trusted.recall(token)  # the keys that it was verified by are the newest
        trusted.cache.put(token, found, until_ms, found.name_count)
        return found


def _claims_by_any(keys: Sequence[PublicKey], token: str, algorithm: str, issuer: Issuer) -> JsonObject:
    """Returns the claims of a token that is signed with one of these keys of the issuer, the first that fits. Raises
    the `NotAuthorized` of `verified_claims` for the last key if none does, and one of its own without keys."""
    refused = NotAuthorized("The token is signed with a key that its issuer does not have")
    for key in keys:
        try:
            return verified_claims(
                token,
                key.jwk,
                algorithm,
                issuer=issuer.url,
                audiences=issuer.audiences,
                require=["iss", "aud", "exp"],
            )
        except NotAuthorized as error:
            refused = error
    raise refused


def key_id(unverified: UnverifiedToken) -> str:
    """Returns the id of the key that a token names. Raises `NotAuthorized` for a token without one of at most
    `MAX_KEY_ID` characters, of another type than access tokens, or with the header `crit`."""
    header, kind = unverified.header, unverified.header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in KINDS or "crit" in header:
        raise NotAuthorized("The token is not an access token: its header has another 'typ', or has 'crit'")
    key_id = header.get("kid")
    if not isinstance(key_id, str) or not 0 < len(key_id) <= MAX_KEY_ID:
        raise NotAuthorized(f"The token has no key id of 1 to {MAX_KEY_ID} characters (header 'kid')")
    return key_id


def result_of(claims: JsonObject, issuer: Issuer) -> AuthenticationResult:
    """Returns the result for a token of an issuer, given by its verified claims: the principal, its roles and the
    token's scopes. Fails if the claim of the principal is missing or malformed, the one of the roles
    is malformed, or the token is no bearer token."""
    check_bearer_token(claims)
    subject = text_claim({issuer.principal_claim: claim_at(claims, issuer.principal_claim)}, issuer.principal_claim)
    identity = Identity(f"{issuer.url} {subject}", roles_in(claims, issuer.roles_claim), issued=True)
    return AuthenticationResult(issuer.realm, identity, printable(subject), scopes=scopes_in(claims))


def scopes_in(claims: JsonObject) -> frozenset[str]:
    """Returns the words of a token's scope: of its claim `scope`, separated by blanks (RFC 9068), or else of `scp`, as
    Entra ID and Okta have it; each may also be an array. Empty if the token has neither."""
    for scope in (claims.get("scope"), claims.get("scp")):
        if isinstance(scope, str):
            return frozenset(scope.split())
        if isinstance(scope, list):
            return frozenset(word for word in scope if isinstance(word, str))
    return frozenset()
