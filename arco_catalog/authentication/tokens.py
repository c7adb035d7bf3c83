"""Access tokens that we sign ourselves: JWTs by HS256, which only servers with the same key can make or check.

A token names its realm, its principal by its id, and the principal roles that it activates. Whether that principal
still exists and still has these roles is the realm's registry to say, with each request.
"""

from collections.abc import Callable
from dataclasses import dataclass

from arco_catalog.authentication.authenticator import Authenticated, Presented
from arco_catalog.authentication.claims import Unverified, expiry_ms, read_unverified, role_names, text_claim
from arco_catalog.authentication.keys import KeySource, SigningKey
from arco_catalog.authentication.remembered import Remembered
from arco_catalog.authentication.signatures import sign, verified_claims
from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.access import Identity
from arco_catalog.state.runtime import Runtime

ISSUER = "arco"
"""What our own tokens have as `iss`."""
AUDIENCE = "arco-catalog"
"""What they have as `aud` unless something else is configured: deployments that share a key are told apart by it."""
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
    """What a token of ours says: whose it is, in which realm, which principal roles it activates (None for all), the
    fingerprint of the secret that it was first given for, and who acts for the principal, if somebody else does;
    `executes_tasks` is whether it is for the delegation service."""

    realm: str
    principal: str
    name: str
    client_id: str
    roles: frozenset[str] | None
    secret: str
    actor: str | None = None
    executes_tasks: bool = False


class OwnTokens:
    """Signs access tokens, and verifies them."""

    def __init__(
        self, keys: KeySource, runtime: Runtime, audience: str = AUDIENCE, lifetime_s: int = LIFETIME_S
    ) -> None:
        self._keys = keys
        self._runtime = runtime
        self._audience = audience
        self.lifetime_s = lifetime_s

    async def issue(self, says: TokenClaims, until_ms: int | None = None) -> str:
        """A signed token, which expires after the lifetime, or earlier. Raises `Unavailable` without a key."""
        key = (await self._keys.current()).newest
        now = self._runtime.now_ms() // 1_000
        expires = now + self.lifetime_s if until_ms is None else min(now + self.lifetime_s, until_ms // 1_000)
        claims: dict[str, JsonValue] = {
            "iss": ISSUER,
            "aud": self._audience,
            "sub": says.principal,
            "name": says.name,
            "client_id": says.client_id,
            "realm": says.realm,
            "scope": scope_of(says.roles, executes_tasks=says.executes_tasks),
            "cred": says.secret,
            "iat": now,
            "exp": expires,
            "jti": self._runtime.uuid(),
        }
        if says.actor is not None:
            claims["act"] = {"sub": says.actor}
        return sign(claims, key.secret, ALGORITHM, {"typ": KIND, "kid": key.id})

    async def verify(self, token: str) -> tuple[TokenClaims, int, SigningKey] | None:
        """What a token says, until when it is taken in milliseconds, and the key that signed it; None for one that does
        not claim to be ours. Raises `NotAuthorized` for one that does, and is not, or has expired; and `Unavailable`
        without a key."""
        said = read_unverified(token)
        if said is None or said.issuer != ISSUER:
            return None
        key = await self._key_of(said)
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
        """Whether tokens that the key signed are still taken."""
        return (await self._keys.current()).find(key.id) is not None

    async def _key_of(self, said: Unverified) -> SigningKey:
        header = said.header
        if header.get("alg") != ALGORITHM or header.get("typ") != KIND or "crit" in header:
            raise NotAuthorized("The token is not signed as this server signs")
        named = header.get("kid")
        key = await self._keys.find(named) if isinstance(named, str) else None
        if key is None:
            raise NotAuthorized("The token is signed with a key that this server does not have")
        return key


class InternalAuthenticator:
    """Authenticates by tokens that we signed."""

    def __init__(self, tokens: OwnTokens, now_ms: Callable[[], int]) -> None:
        self._tokens = tokens
        self._remembered: Remembered[tuple[Authenticated, SigningKey]] = Remembered(now_ms)

    async def authenticate(self, presented: Presented) -> Authenticated | None:
        token = presented.bearer
        if token is None:
            return None
        known = self._remembered.get(token)
        if known is not None and await self._tokens.key_is_valid(known[1]):
            return known[0]
        verified = await self._tokens.verify(token)
        if verified is None:
            return None
        says, until_ms, key = verified
        found = Authenticated(
            says.realm,
            Identity(says.principal, says.roles, secret=says.secret, actor=says.actor),
            says.name,
            says.actor,
            frozenset({EXECUTE_TASKS} if says.executes_tasks else ()),
        )
        self._remembered.put(token, (found, key), until_ms)
        return found


def scope_of(roles: frozenset[str] | None, *, executes_tasks: bool = False) -> str:
    """Principal roles as a scope, and the one for tasks."""
    words = [ALL_ROLES] if roles is None else [_ROLE_PREFIX + name for name in sorted(roles)]
    return " ".join([*words, EXECUTE_TASKS] if executes_tasks else words)


def without_tasks(scope: str) -> tuple[str, bool]:
    """A scope without the word for tasks, and whether it had that."""
    words = scope.split()
    return " ".join(word for word in words if word != EXECUTE_TASKS), EXECUTE_TASKS in words


def roles_of_scope(scope: str) -> frozenset[str] | None:
    """The principal roles that a scope names, None for all. Raises `ValueError` for anything else."""
    words = scope.split()
    if ALL_ROLES in words:
        return None
    if not words or not all(word.startswith(_ROLE_PREFIX) for word in words):
        raise ValueError(f"expected {ALL_ROLES}, or {_ROLE_PREFIX}NAME with blanks between several")
    try:
        return role_names(word.removeprefix(_ROLE_PREFIX) for word in words)
    except NotAuthorized as error:
        raise ValueError("a principal role has a name that none may have") from error


def _read(claims: JsonObject) -> TokenClaims:
    """What a token of ours says. Whatever is missing was made by a version that this one cannot read."""
    actor = claims.get("act")
    rest, executes_tasks = without_tasks(text_claim(claims, "scope", at_most=1 << 14))
    try:
        roles = roles_of_scope(rest) if rest or not executes_tasks else frozenset[str]()
    except ValueError as error:
        raise NotAuthorized("The token has a scope that this server does not know") from error
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
