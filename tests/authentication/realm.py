"""A realm in memory, and what signs its tokens."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from arco_catalog.authentication.keys import KeySource, from_text
from arco_catalog.authentication.secrets import VALID, Secrets, new_client_id, new_secret
from arco_catalog.authentication.token_endpoint import TokenEndpoint
from arco_catalog.authentication.tokens import InternalAuthenticator, OwnTokens
from arco_catalog.state.realm import PrincipalEntry, Secret
from arco_catalog.state.runtime import SystemRuntime
from tests.support.fake_runtime import FakeRuntime

KEY = "a-key-of-this-test-that-signs-tokens-0123456789"
OTHER_KEY = "another-key-of-this-test-that-signs-0123456789"


def with_secret(stored: Iterable[Secret], secret: Secret) -> tuple[Secret, ...]:
    """Adds a secret to those of a principal: the newest first, and no more than are valid at once."""
    return (secret, *stored)[:VALID]


@dataclass
class Realm:
    """The principals of a realm, by their names, with their secrets in the clear."""

    runtime: FakeRuntime
    name: str = "r1"
    principals: dict[str, PrincipalEntry] = field(default_factory=dict)
    clear: dict[str, str] = field(default_factory=dict)
    managers: set[str] = field(default_factory=set)
    roles: dict[str, set[str]] = field(default_factory=dict)
    secrets: Secrets = field(default_factory=lambda: Secrets(SystemRuntime().entropy))

    async def add(self, name: str, properties: Mapping[str, str] | None = None) -> PrincipalEntry:
        """A new principal, with a generated secret."""
        principal = PrincipalEntry.new(
            entity=self.runtime.ulid(),
            name=name,
            properties=properties or {},
            at_ms=self.runtime.now_ms(),
            client_id=new_client_id(SystemRuntime().entropy),
            secrets=[],
        )
        self.principals[name] = principal
        await self.rotate(name)
        return self.principals[name]

    async def rotate(self, name: str, secret: str | None = None) -> None:
        """Another secret for a principal, beside the one that it had last."""
        self.clear[name] = secret or new_secret(SystemRuntime().entropy)
        principal = self.principals[name]
        kept = await self.secrets.keep(self.clear[name], principal.secrets)
        self.principals[name] = principal.with_secrets(with_secret(principal.secrets, kept), self.runtime.now_ms())

    async def by_client_id(self, client_id: str) -> PrincipalEntry | None:
        return next((each for each in self.principals.values() if each.client_id == client_id), None)

    async def by_id(self, entity: str) -> PrincipalEntry | None:
        return next((each for each in self.principals.values() if each.entity == entity), None)

    async def by_name(self, name: str) -> PrincipalEntry | None:
        return self.principals.get(name)

    async def manages_access(self, principal: PrincipalEntry) -> bool:
        return principal.name in self.managers

    async def has_role(self, principal: PrincipalEntry, role: str) -> bool:
        return role in self.roles.get(principal.name, ())


def own_tokens(runtime: FakeRuntime, keys: str = KEY, audience: str = "arco-catalog") -> OwnTokens:
    return OwnTokens(KeySource(from_text(keys), runtime.now_ms), runtime, audience)


def authenticator(runtime: FakeRuntime, tokens: OwnTokens | None = None) -> InternalAuthenticator:
    return InternalAuthenticator(tokens or own_tokens(runtime), runtime.now_ms)


def endpoint(realm: Realm, keys: str = KEY) -> TokenEndpoint:
    return TokenEndpoint(own_tokens(realm.runtime, keys), realm.secrets)
