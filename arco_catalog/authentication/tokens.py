"""Access tokens of the catalog: JWTs by HS256, which only servers with the same key can sign or verify.

A token names its realm, the id of its principal, and the principal roles that it activates. The realm's registry has,
for each request, whether that principal still exists and still has these roles.
"""

from collections.abc import Callable

from arco_catalog.authentication.authenticator import AuthenticationResult, RequestCredentials
from arco_catalog.authentication.claims import UnverifiedToken, expiry_ms, read_unverified, role_names, text_claim
from arco_catalog.authentication.keys import KeySource, SigningKey
from arco_catalog.authentication.signatures import sign, verified_claims
from arco_catalog.authentication.token_cache import TokenCache
from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.access import Identity
from arco_catalog.state.runtime import Runtime
from storage_backends.lazy_dataclass import dataclass

ISSUER = "arco"
"""The claim `iss` of the catalog's tokens."""
AUDIENCE = "arco-catalog"
"""The claim `aud` unless another is configured; it distinguishes deployments that share a key."""
LIFETIME_S = 3_600
ALGORITHM = "HS256"
KIND = "at+jwt"
"""The type of access tokens (RFC 9068, section 2.1)."""

EXECUTE_TASKS = "execute_tasks"
"""The scope that lets a token submit tasks to the delegation service. Alone it activates no principal role."""
ALL_ROLES = "PRINCIPAL_ROLE:ALL"
_ROLE_PREFIX = "PRINCIPAL_ROLE:"


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """The claims of an access token of the catalog: its realm, the id and name of the principal, the client id of the
    client that requested it, the principal roles that it activates (None for all), the fingerprint of the secret that
    it was first issued for, and the id of the principal that acts for this one (`actor`), if any. With an actor, client
    id and secret are the actor's. `executes_tasks` is whether it is for the delegation service."""

    realm: str
    principal: str
    name: str
    client_id: str
    roles: frozenset[str] | None
    secret: str
    actor: str | None = None
    executes_tasks: bool = False


class OwnTokens:
    """Signs and verifies the catalog's own access tokens."""

    def __init__(
        self, keys: KeySource, runtime: Runtime, audience: str = AUDIENCE, lifetime_s: int = LIFETIME_S
    ) -> None:
        self._keys = keys
        self._runtime = runtime
        self._audience = audience
        self.lifetime_s = lifetime_s

    async def issue(self, token_claims: TokenClaims, until_ms: int | None = None) -> str:
        """Signs a token with these claims by the first of the keys, and returns it. It expires after the lifetime, or
        at `until_ms` (milliseconds since 1970) if that is earlier. Raises `Unavailable` without a key."""
        key = (await self._keys.current()).newest
        now = self._runtime.now_ms() // 1_000
        expires = now + self.lifetime_s if until_ms is None else min(now + self.lifetime_s, until_ms // 1_000)
        claims: dict[str, JsonValue] = {
            "iss": ISSUER,
            "aud": self._audience,
            "sub": token_claims.principal,
            "name": token_claims.name,
            "client_id": token_claims.client_id,
            "realm": token_claims.realm,
            "scope": scope_of(token_claims.roles, executes_tasks=token_claims.executes_tasks),
            "cred": token_claims.secret,
            "iat": now,
            "exp": expires,
            "jti": self._runtime.uuid(),
        }
        if token_claims.actor is not None:
            claims["act"] = {"sub": token_claims.actor}
        return sign(claims, key.secret, ALGORITHM, {"typ": KIND, "kid": key.id})

    async def verify(self, token: str) -> tuple[TokenClaims, int, SigningKey] | None:
        """Returns three things: the claims of a token, its expiry with the allowed skew in milliseconds since 1970, and
        the key that signed it; None for a token of another issuer or a text that is no JWT. Raises `NotAuthorized` for
        one that is not valid or has expired, and `Unavailable` without a key."""
        unverified = read_unverified(token)
        if unverified is None or unverified.issuer != ISSUER:
            return None
        key = await self._key_of(unverified)
        claims = verified_claims(
            token,
            key.secret,
            ALGORITHM,
            issuer=ISSUER,
            audiences=[self._audience],
            require=["exp", "iat", "sub", "jti"],
        )
        until_ms = expiry_ms(claims, self._runtime.now_ms())
        return _read(claims), until_ms, key

    async def key_is_valid(self, key: SigningKey) -> bool:
        """Whether a key that verified a token is one of the present keys. Raises `Unavailable` if these can't be read
        and there are no old ones."""
        return (await self._keys.current()).find(key.id) is not None

    async def _key_of(self, unverified: UnverifiedToken) -> SigningKey:
        """Returns the key of this server that a token names as its signer. Raises `NotAuthorized` for any other token,
        and `Unavailable` if the keys can't be read and there are no old ones."""
        header = unverified.header
        if header.get("alg") != ALGORITHM or header.get("typ") != KIND or "crit" in header:
            raise NotAuthorized(
                "The token is not one of this server's: its header has another 'alg' or 'typ', or has 'crit'"
            )
        key_id = header.get("kid")
        key = await self._keys.find(key_id) if isinstance(key_id, str) else None
        if key is None:
            raise NotAuthorized("The token is signed with a key that this server does not have: request a new token")
        return key


class InternalAuthenticator:
    """Authenticates requests by bearer tokens that the catalog itself has issued; caches the results until the tokens
    expire, or the key that signed them is removed."""

    def __init__(self, tokens: OwnTokens, now_ms: Callable[[], int]) -> None:
        self._tokens = tokens
        self._cache: TokenCache[tuple[AuthenticationResult, SigningKey]] = TokenCache(now_ms)

    async def authenticate(self, credentials: RequestCredentials) -> AuthenticationResult | None:
        """Returns the principal of a bearer token that this catalog issued, from the cache while the key that signed
        the token is there, or by verifying the token; None without a token, and for one that is no JWT or of another
        issuer. Raises `NotAuthorized` for an invalid token, and `Unavailable` without keys."""
        token = credentials.bearer
        if token is None:
            return None
        known = self._cache.get(token)
        if known is not None and await self._tokens.key_is_valid(known[1]):
            return known[0]
        verified = await self._tokens.verify(token)
        if verified is None:
            return None
        token_claims, until_ms, key = verified
        found = AuthenticationResult(
            token_claims.realm,
            Identity(token_claims.principal, token_claims.roles, secret=token_claims.secret, actor=token_claims.actor),
            token_claims.name,
            token_claims.actor,
            frozenset({EXECUTE_TASKS} if token_claims.executes_tasks else ()),
        )
        self._cache.put(token, (found, key), until_ms, found.name_count)
        return found


def scope_of(roles: frozenset[str] | None, *, executes_tasks: bool = False) -> str:
    """Returns the scope, words separated by blanks, of a token that activates these principal roles, None for all;
    empty for no roles. With `executes_tasks` it includes the word for tasks."""
    words = [ALL_ROLES] if roles is None else [_ROLE_PREFIX + name for name in sorted(roles)]
    return " ".join([*words, EXECUTE_TASKS] if executes_tasks else words)


def without_tasks(scope: str) -> tuple[str, bool]:
    """Returns a scope without the word for tasks (`EXECUTE_TASKS`), and whether that word was there."""
    words = scope.split()
    return " ".join(word for word in words if word != EXECUTE_TASKS), EXECUTE_TASKS in words


def roles_of_scope(scope: str) -> frozenset[str] | None:
    """Returns the principal roles that a scope names; None, for all, if `ALL_ROLES` is among its words. Raises
    `ValueError` for an empty scope, and if any word is not a principal role's, also beside `ALL_ROLES`."""
    words = scope.split()
    if not words or not all(word.startswith(_ROLE_PREFIX) for word in words):
        raise ValueError(f"expected {ALL_ROLES}, or {_ROLE_PREFIX}NAME with blanks between several")
    try:
        names = role_names(word.removeprefix(_ROLE_PREFIX) for word in words)
    except NotAuthorized as error:
        raise ValueError("the name of a principal role must have 1 to 256 letters, digits or any of _ . : -") from error
    return None if ALL_ROLES in words else names


def _read(claims: JsonObject) -> TokenClaims:
    """Returns the claims of one of the catalog's own tokens, read from their JSON. Fails if one other
    than `act` is missing, one is malformed, or the scope is unknown, as when another version of this program has issued
    the token."""
    actor = claims.get("act")
    rest, executes_tasks = without_tasks(text_claim(claims, "scope", max_length=1 << 14))
    try:
        roles = roles_of_scope(rest) if rest or not executes_tasks else frozenset[str]()
    except ValueError as error:
        raise NotAuthorized("The token has a scope that this server does not know: request a new token") from error
    return TokenClaims(
        realm=text_claim(claims, "realm"),
        principal=text_claim(claims, "sub"),
        name=text_claim(claims, "name"),
        client_id=text_claim(claims, "client_id"),
        roles=roles,
        secret=text_claim(claims, "cred"),
        actor=text_claim(actor, "sub") if isinstance(actor, dict) else None,
        executes_tasks=executes_tasks,
    )
