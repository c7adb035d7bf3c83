"""Bearer tokens of issuers that were configured (OpenID Connect), verified by their public keys.

A token says which key it was signed with, and nothing else that we believe before the signature is checked: its issuer
only picks the settings by which it is checked, and where it says that keys are (`jku`, `x5u`, `jwk`) is not read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arco_catalog.authentication.authenticator import Authenticated, Presented
from arco_catalog.authentication.claims import (
    Unverified,
    claim_at,
    expiry_ms,
    read_unverified,
    roles_in,
    text_claim,
)
from arco_catalog.authentication.gateway import printable
from arco_catalog.authentication.jwks import IssuerKeys
from arco_catalog.authentication.remembered import Remembered
from arco_catalog.authentication.signatures import verified_claims
from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.access import Identity

KINDS = ("jwt", "at+jwt", "application/at+jwt")
"""Types of tokens that are for us, in lower case; others are for logging out, for proofs, for events."""
MAX_KEY_ID = 256


@dataclass(frozen=True, slots=True)
class Issuer:
    """An issuer whose tokens are taken: in which realm, for which audiences, signed by which algorithms, and which
    claims name the principal and its roles."""

    url: str
    realm: str
    audiences: Sequence[str]
    algorithms: Sequence[str]
    principal_claim: str
    roles_claim: str | None


@dataclass(slots=True)
class _Trusted:
    issuer: Issuer
    keys: IssuerKeys
    remembered: Remembered[Authenticated]
    withdrawn: int = 0

    def recall(self, token: str) -> Authenticated | None:
        """Whom a token was verified to be for; after a key was withdrawn, tokens are verified again."""
        if self.withdrawn != self.keys.withdrawn:
            self.remembered.clear()
            self.withdrawn = self.keys.withdrawn
        return self.remembered.get(token)


class OidcAuthenticator:
    """Authenticates by tokens of issuers. Belongs to one event loop."""

    def __init__(self, issuers: Sequence[tuple[Issuer, IssuerKeys]], now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._trusted = {
            issuer.url: _Trusted(issuer, keys, Remembered[Authenticated](now_ms)) for issuer, keys in issuers
        }

    async def authenticate(self, presented: Presented) -> Authenticated | None:
        token = presented.bearer
        if token is None:
            return None
        for trusted in self._trusted.values():
            known = trusted.recall(token)
            if known is not None:
                trusted.keys.tend()
                return known
        said = read_unverified(token)
        issuer = None if said is None or said.issuer is None else self._trusted.get(said.issuer)
        if said is None or issuer is None:
            return None
        return await self._verify(token, said, issuer)

    async def close(self) -> None:
        """Ends what is done in the background."""
        for trusted in self._trusted.values():
            await trusted.keys.close()

    async def _verify(self, token: str, said: Unverified, trusted: _Trusted) -> Authenticated:
        issuer, algorithm = trusted.issuer, said.header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in issuer.algorithms:
            raise NotAuthorized("The token is signed by an algorithm that is not taken of its issuer")
        key = await trusted.keys.find(key_id(said), algorithm)
        if key is None:
            raise NotAuthorized("The token is signed with a key that its issuer does not have")
        claims = verified_claims(
            token,
            key.jwk,
            algorithm,
            issuer=issuer.url,
            audiences=issuer.audiences,
            require=["iss", "aud", "exp"],
        )
        until_ms = expiry_ms(claims, self._now_ms())
        found = whom(claims, issuer)
        trusted.recall(token)  # the keys that it was verified by are the newest
        trusted.remembered.put(token, found, until_ms)
        return found


def key_id(said: Unverified) -> str:
    """The name of the key that a token says that it was signed with. Raises `NotAuthorized` for a token without one, or
    of a kind that is not for us."""
    header, kind = said.header, said.header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in KINDS or "crit" in header:
        raise NotAuthorized("The token is no access token")
    named = header.get("kid")
    if not isinstance(named, str) or not 0 < len(named) <= MAX_KEY_ID:
        raise NotAuthorized("The token does not name the key that it was signed with (header 'kid')")
    return named


def whom(claims: JsonObject, issuer: Issuer) -> Authenticated:
    """Whom verified claims are about. Raises `NotAuthorized` if they don't say."""
    subject = text_claim({issuer.principal_claim: claim_at(claims, issuer.principal_claim)}, issuer.principal_claim)
    identity = Identity(f"{issuer.url} {subject}", roles_in(claims, issuer.roles_claim), issued=True)
    return Authenticated(issuer.realm, identity, printable(subject), scopes=scopes_in(claims))


def scopes_in(claims: JsonObject) -> frozenset[str]:
    """The words of a token's scope: a text with blanks between them (RFC 9068), or `scp`, as Entra ID and Okta have
    it."""
    for said in (claims.get("scope"), claims.get("scp")):
        if isinstance(said, str):
            return frozenset(said.split())
        if isinstance(said, list):
            return frozenset(word for word in said if isinstance(word, str))
    return frozenset()
