"""What `POST /v1/oauth/tokens` answers: client credentials (RFC 6749, section 4.4) and token exchange (RFC 8693), in
the form of Polaris's `oauth-tokens-api`, which clients of the Iceberg REST catalog know.

Token exchange is no impersonation. Its subject must be a live token of ours, of the same realm, and the result can do
no more than it. A subject that nobody signed, as Trino sends it for its users, is taken only from a principal that was
registered to act for others, and never for one who manages access. Client credentials decide alone, whatever else is
sent: Java sends its expired token with them.

The scope `execute_tasks` is for the delegation service. It is given to who has the principal role of that name, and a
token that was asked for with it alone activates no principal role.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import parse_qsl

from arco_catalog.authentication.authenticator import Presented
from arco_catalog.authentication.claims import read_unsigned
from arco_catalog.authentication.secrets import MAX_CLIENT_ID, Secrets, fingerprint
from arco_catalog.authentication.tokens import (
    EXECUTE_TASKS,
    OwnTokens,
    TokenClaims,
    roles_of_scope,
    scope_of,
    without_tasks,
)
from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.realm import PrincipalEntry

CLIENT_CREDENTIALS = "client_credentials"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
JWT = "urn:ietf:params:oauth:token-type:jwt"
DEFAULT_SCOPE = "catalog"
"""What clients ask for where no scope was configured: here, all roles that they have."""
MAX_FIELDS = 32

_NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_UNKNOWN_CLIENT = "The client id is unknown in this realm, or the secret is wrong, or there is no such realm"
_DEAD_SUBJECT = "The subject token is no live access token of this realm"


class Principals(Protocol):
    """The principals of one realm, as its registry has them now."""

    async def by_client_id(self, client_id: str) -> PrincipalEntry | None:
        """The principal with a client id."""
        ...

    async def by_id(self, entity: str) -> PrincipalEntry | None:
        """The principal with an id."""
        ...

    async def by_name(self, name: str) -> PrincipalEntry | None:
        """The principal with a name."""
        ...

    async def manages_access(self, principal: PrincipalEntry) -> bool:
        """Whether it has `SERVICE_MANAGE_ACCESS` by any of its roles."""
        ...

    async def has_role(self, principal: PrincipalEntry, role: str) -> bool:
        """Whether it has a principal role of this name."""
        ...


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """What the endpoint answers, as JSON."""

    status: int
    body: JsonObject
    headers: Mapping[str, str]


class OAuthError(Exception):
    """A refusal in OAuth's terms, which quotes nothing of the request."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(f"{error}: {description}")
        self.error = error
        self.description = description

    def answer(self) -> TokenAnswer:
        """The refusal in OAuth's form (RFC 6749, section 5.2)."""
        body: JsonObject = {"error": self.error, "error_description": self.description}
        if self.error != "invalid_client":
            return TokenAnswer(400, body, _NO_STORE)
        return TokenAnswer(401, body, {**_NO_STORE, "WWW-Authenticate": 'Basic realm="arco"'})


def parse_form(body: bytes) -> Mapping[str, str]:
    """The fields of a form, without empty ones. Raises `OAuthError` for one that is malformed, or has a field twice."""
    try:
        pairs = parse_qsl(body.decode("ascii"), max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError as error:
        raise OAuthError("invalid_request", "The body is not a form") from error
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise OAuthError("invalid_request", "A field of the form is given twice")
    return fields


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Answers requests for tokens of a deployment's realms."""

    tokens: OwnTokens
    secrets: Secrets

    async def answer(self, body: bytes, headers: Mapping[str, str], realm: str, principals: Principals) -> TokenAnswer:
        """The answer to one request, whose headers have lower-case names. Raises `TooManyRequests` and `Unavailable`,
        which say nothing of who asks."""
        try:
            form = parse_form(body)
            says = await self._decide(form, headers, realm, principals)
        except OAuthError as error:
            return error.answer()
        answer: JsonObject = {
            "access_token": await self.tokens.issue(says),
            "token_type": "bearer",
            "issued_token_type": ACCESS_TOKEN,
            "expires_in": self.tokens.lifetime_s,
            "scope": scope_of(says.roles, executes_tasks=says.executes_tasks),
        }
        return TokenAnswer(200, answer, _NO_STORE)

    async def _decide(
        self, form: Mapping[str, str], headers: Mapping[str, str], realm: str, principals: Principals
    ) -> TokenClaims:
        grant = form.get("grant_type")
        if grant is None:
            raise OAuthError("invalid_request", "The field 'grant_type' is missing")
        if grant not in (CLIENT_CREDENTIALS, TOKEN_EXCHANGE):
            raise OAuthError("unsupported_grant_type", "Only client_credentials and token-exchange are supported")
        if form.get("requested_token_type", ACCESS_TOKEN) != ACCESS_TOKEN:
            raise OAuthError("invalid_request", "Only access tokens are given")
        credentials = credentials_in(form, headers)
        if credentials is not None:
            return await self._by_credentials(*credentials, form.get("scope"), realm, principals)
        if grant == CLIENT_CREDENTIALS:
            raise OAuthError("invalid_client", "A client id and its secret are needed")
        return await self._by_exchange(form, headers, realm, principals)

    async def _by_credentials(
        self, client_id: str, secret: str, scope: str | None, realm: str, principals: Principals
    ) -> TokenClaims:
        principal = None if len(client_id) > MAX_CLIENT_ID else await principals.by_client_id(client_id)
        found = await self.secrets.check(secret, () if principal is None else principal.secrets)
        if principal is None or found is None:
            raise OAuthError("invalid_client", _UNKNOWN_CLIENT)
        roles, executes_tasks = _asked(scope, None)
        if executes_tasks and not await principals.has_role(principal, EXECUTE_TASKS):
            raise OAuthError("invalid_scope", f"The client does not have the principal role {EXECUTE_TASKS}")
        says = TokenClaims(realm, principal.entity, principal.name, client_id, roles, fingerprint(found))
        return replace(says, executes_tasks=executes_tasks)

    async def _by_exchange(
        self, form: Mapping[str, str], headers: Mapping[str, str], realm: str, principals: Principals
    ) -> TokenClaims:
        subject = form.get("subject_token")
        if subject is None or form.get("subject_token_type") not in (ACCESS_TOKEN, JWT):
            raise OAuthError("invalid_request", "A subject token is needed, and its type: access_token or jwt")
        claims = read_unsigned(subject)
        if claims is None:
            says = await self._live(subject, realm, principals)
        else:
            says = await self._for_another(claims, headers, realm, principals)
        roles, executes_tasks = _asked(form.get("scope"), says.roles)
        if executes_tasks and not says.executes_tasks:
            raise OAuthError("invalid_scope", f"The subject token does not have the scope {EXECUTE_TASKS}")
        for_tasks_alone = roles is not None and not roles
        return replace(says, roles=roles, executes_tasks=executes_tasks or for_tasks_alone)

    async def _live(self, token: str, realm: str, principals: Principals) -> TokenClaims:
        """What a live token of ours says, if nothing that it was given for has ended since."""
        dead = OAuthError("invalid_grant", _DEAD_SUBJECT)
        try:
            verified = await self.tokens.verify(token)
        except NotAuthorized as error:
            raise dead from error
        if verified is None or verified[0].realm != realm:
            raise dead
        says = verified[0]
        principal = await principals.by_id(says.principal)
        whose = principal if says.actor is None else await principals.by_id(says.actor)
        if principal is None or whose is None or says.secret not in map(fingerprint, whose.secrets):
            raise dead
        if says.actor is not None:
            await _check_may_act(whose, principal, principals)
        return replace(says, name=principal.name)

    async def _for_another(
        self, claims: JsonObject, headers: Mapping[str, str], realm: str, principals: Principals
    ) -> TokenClaims:
        """A token for whom an unsigned subject names, if the bearer may act for others."""
        refused = OAuthError(
            "unauthorized_client", "The subject token is not signed, and the client may not act for it"
        )
        bearer = Presented(headers).bearer
        if bearer is None:
            raise refused
        try:
            says = await self._live(bearer, realm, principals)
        except OAuthError as error:
            raise refused from error
        actor, name = await principals.by_id(says.principal), claims.get("sub")
        if actor is None or says.actor is not None or not isinstance(name, str) or not actor.acts_for_others:
            raise refused
        principal = await principals.by_name(name)
        if principal is None:
            raise refused
        await _check_may_act(actor, principal, principals)
        return TokenClaims(realm, principal.entity, principal.name, says.client_id, None, says.secret, actor.entity)


def credentials_in(form: Mapping[str, str], headers: Mapping[str, str]) -> tuple[str, str] | None:
    """A client's id and secret, from the header `Authorization` or else the form, None without a secret. Raises
    `OAuthError` for a malformed header, or two different ones."""
    scheme, _, encoded = headers.get("authorization", "").partition(" ")
    client_id, secret = form.get("client_id"), form.get("client_secret")
    if scheme.lower() != "basic":
        if secret is None:
            return None
        if client_id is None:
            raise OAuthError("invalid_client", _UNKNOWN_CLIENT)
        return client_id, secret
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except ValueError as error:
        raise OAuthError("invalid_request", "The header 'Authorization' is malformed") from error
    if not colon:
        raise OAuthError("invalid_request", "The header 'Authorization' is malformed")
    if client_id not in (None, name) or secret not in (None, password):
        raise OAuthError("invalid_request", "The client is given in two ways that differ")
    return name, password


def asked_roles(scope: str | None, granted: frozenset[str] | None) -> frozenset[str] | None:
    """The principal roles that a request asks for, out of those that it may have: None for all. Raises `OAuthError`."""
    words = [word for word in (scope or "").split() if word != DEFAULT_SCOPE]
    if not words:
        return granted
    try:
        asked = roles_of_scope(" ".join(words))
    except ValueError as error:
        raise OAuthError("invalid_scope", f"The scope is not known: {error}") from error
    if granted is not None and (asked is None or not asked <= granted):
        raise OAuthError("invalid_scope", "The subject token does not have all of these roles")
    return asked


def _asked(scope: str | None, granted: frozenset[str] | None) -> tuple[frozenset[str] | None, bool]:
    """The principal roles that a request asks for, none of them if it asks for tasks alone, and whether it asks for
    tasks. Raises `OAuthError`."""
    rest, executes_tasks = without_tasks(scope or "")
    if executes_tasks and not rest:
        return frozenset(), True
    return asked_roles(rest, granted), executes_tasks


async def _check_may_act(actor: PrincipalEntry, principal: PrincipalEntry, principals: Principals) -> None:
    """Raises `OAuthError` unless an actor is registered to act for others, and the principal is one of these."""
    if not actor.acts_for_others or await principals.manages_access(principal):
        raise OAuthError("unauthorized_client", "The subject token is not signed, and the client may not act for it")
