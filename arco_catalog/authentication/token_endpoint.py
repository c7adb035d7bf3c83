"""Answers `POST /v1/oauth/tokens`: client credentials (RFC 6749, section 4.4) and token exchange (RFC 8693), in the
form of Polaris's `oauth-tokens-api`, which clients of the Iceberg REST catalog know.

Token exchange is not impersonation. Its subject must be a live token of this server and realm, and the result has no
more rights. An unsigned subject, which Trino sends for its users, is accepted only from a principal that is registered
to act for others, and never for a principal that manages access. Where client credentials are sent, no token is read:
Java sends its expired token with them.

The scope `execute_tasks` is for the delegation service. It requires the principal role of that name, and a token with
this scope alone activates no principal role.
"""

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol
from urllib.parse import parse_qsl

from arco_catalog.authentication.authenticator import RequestCredentials
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
from storage_backends.lazy_dataclass import dataclass

CLIENT_CREDENTIALS = "client_credentials"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
JWT = "urn:ietf:params:oauth:token-type:jwt"
DEFAULT_SCOPE = "catalog"
"""The scope that clients send where none is configured: all roles of the principal."""
MAX_FIELDS = 32
MAX_ESCAPES = 8_192
"""Percent signs in a form: 64 KB of them alone take the event loop 40 ms. Tokens have none, and secrets a few."""

_NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_UNKNOWN_CLIENT = "The client id is unknown in this realm, or the secret is wrong, or there is no such realm"
_MALFORMED_BASIC = (
    "The header 'Authorization' is malformed: after 'Basic' it must have CLIENT_ID:CLIENT_SECRET, in UTF-8 and base64"
)
_DEAD_SUBJECT = "The subject token is not a live access token of this realm"


class Principals(Protocol):
    """The interface by which the token endpoint reads the principals of one realm from its registry."""

    async def by_client_id(self, client_id: str) -> PrincipalEntry | None:
        """Returns the principal of the realm with a client id, None if there is none."""
        ...

    async def by_id(self, entity: str) -> PrincipalEntry | None:
        """Returns the principal of the realm with an entity id, None if there is none."""
        ...

    async def by_name(self, name: str) -> PrincipalEntry | None:
        """Returns the principal of the realm with a name, None if there is none."""
        ...

    async def manages_access(self, principal: PrincipalEntry) -> bool:
        """Whether any role of the principal has the privilege `SERVICE_MANAGE_ACCESS`."""
        ...

    async def has_role(self, principal: PrincipalEntry, role: str) -> bool:
        """Whether the principal has a principal role of this name, and need not rotate the credentials first."""
        ...


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """An answer of the token endpoint, with a token or an error: status, JSON body and headers."""

    status: int
    body: JsonObject
    headers: Mapping[str, str]


class OAuthError(Exception):
    """An error that the token endpoint answers in OAuth's form (RFC 6749, section 5.2). It quotes nothing of the
    request."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(f"{error}: {description}")
        self.error = error
        self.description = description

    def answer(self) -> TokenAnswer:
        """Returns the error as an answer of the token endpoint (RFC 6749, section 5.2): with status 401 for a wrong
        client, else 400."""
        body: JsonObject = {"error": self.error, "error_description": self.description}
        if self.error != "invalid_client":
            return TokenAnswer(400, body, _NO_STORE)
        return TokenAnswer(401, body, {**_NO_STORE, "WWW-Authenticate": 'Basic realm="arco"'})


def parse_form(body: bytes) -> Mapping[str, str]:
    """Returns the fields of a form, without empty ones, and without parts that have no `=`. Raises `OAuthError` for a
    form that is not ASCII or has escapes that are not UTF-8, one with more than `MAX_FIELDS` fields or `MAX_ESCAPES`
    percent signs, or one that has a field twice."""
    if body.count(b"%") > MAX_ESCAPES:
        raise OAuthError("invalid_request", f"The form has more than {MAX_ESCAPES:,} percent signs")
    try:
        pairs = parse_qsl(body.decode("ascii"), max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError as error:
        raise OAuthError(
            "invalid_request",
            f"The request body is not a form in ASCII of at most {MAX_FIELDS} fields, or has percent escapes that are "
            "not UTF-8",
        ) from error
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise OAuthError("invalid_request", "A field of the form is given twice")
    return fields


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """The token endpoint of a deployment: answers a request to one of the realms with an access token of the catalog,
    or with an OAuth error."""

    tokens: OwnTokens
    secrets: Secrets

    async def answer(self, body: bytes, headers: Mapping[str, str], realm: str, principals: Principals) -> TokenAnswer:
        """Answers one request for a token, with the form in `body` and the headers under names in lower case, for a
        client or subject that is one of the `principals` of the realm. The answer has a token or an OAuth error. Raises
        `TooManyRequests` if too many secrets are being checked, and `Unavailable` without a key to sign with."""
        try:
            form = parse_form(body)
            token_claims = await self._decide(form, headers, realm, principals)
        except OAuthError as error:
            return error.answer()
        answer: JsonObject = {
            "access_token": await self.tokens.issue(token_claims),
            "token_type": "bearer",
            "issued_token_type": ACCESS_TOKEN,
            "expires_in": self.tokens.lifetime_s,
            "scope": scope_of(token_claims.roles, executes_tasks=token_claims.executes_tasks),
        }
        return TokenAnswer(200, answer, _NO_STORE)

    async def _decide(
        self, form: Mapping[str, str], headers: Mapping[str, str], realm: str, principals: Principals
    ) -> TokenClaims:
        """Returns the claims of the token for a request: by the client's credentials if it has any, whatever the grant
        type, else in exchange for a token. Raises `OAuthError`, also for a grant type or a requested type of token that
        is not supported, and the other errors of `_by_credentials` and `_by_exchange`."""
        grant = form.get("grant_type")
        if grant is None:
            raise OAuthError("invalid_request", "The field 'grant_type' is missing")
        if grant not in (CLIENT_CREDENTIALS, TOKEN_EXCHANGE):
            raise OAuthError(
                "unsupported_grant_type",
                "The grant type is not supported: the field 'grant_type' must be "
                f"{CLIENT_CREDENTIALS} or {TOKEN_EXCHANGE}",
            )
        if form.get("requested_token_type", ACCESS_TOKEN) != ACCESS_TOKEN:
            raise OAuthError(
                "invalid_request",
                f"The field 'requested_token_type' must be {ACCESS_TOKEN}, or left out, with either "
                "grant type: this server issues no others",
            )
        credentials = credentials_in(form, headers)
        if credentials is not None:
            return await self._by_credentials(*credentials, form.get("scope"), realm, principals)
        if grant == CLIENT_CREDENTIALS:
            raise OAuthError(
                "invalid_client", "The request has no client credentials: send 'client_id' and 'client_secret'"
            )
        return await self._by_exchange(form, headers, realm, principals)

    async def _by_credentials(
        self, client_id: str, secret: str, scope: str | None, realm: str, principals: Principals
    ) -> TokenClaims:
        """Returns the claims of a token for the client with this id and secret, with the roles that the scope requests;
        whether the client has these roles is not tested here. Raises `OAuthError` for an unknown client, a wrong
        secret, an unknown scope, and the scope for tasks if the client does not have the role for it or must rotate the
        secret first; and `TooManyRequests` if too many secrets are being checked."""
        principal = None if len(client_id) > MAX_CLIENT_ID else await principals.by_client_id(client_id)
        found = await self.secrets.check(secret, () if principal is None else principal.secrets)
        if principal is None or found is None:
            raise OAuthError("invalid_client", _UNKNOWN_CLIENT)
        roles, executes_tasks = _requested(scope, None)
        if executes_tasks and not await principals.has_role(principal, EXECUTE_TASKS):
            raise OAuthError(
                "invalid_scope",
                f"The scope requests {EXECUTE_TASKS}, and the client does not have the principal role of that name, or "
                "must rotate the client secret first",
            )
        token_claims = TokenClaims(realm, principal.entity, principal.name, client_id, roles, fingerprint(found))
        return replace(token_claims, executes_tasks=executes_tasks)

    async def _by_exchange(
        self, form: Mapping[str, str], headers: Mapping[str, str], realm: str, principals: Principals
    ) -> TokenClaims:
        """Returns the claims of a token in exchange for the request's `subject_token`, an access token of this server
        or the unsigned description of a principal, with at most the scope of that. Raises `OAuthError`, and
        `Unavailable` if the keys that verify tokens can't be had."""
        subject = form.get("subject_token")
        if subject is None or form.get("subject_token_type") not in (ACCESS_TOKEN, JWT):
            raise OAuthError(
                "invalid_request",
                f"Fields 'subject_token' and 'subject_token_type' are needed, with the type {ACCESS_TOKEN} or {JWT}",
            )
        claims = read_unsigned(subject)
        if claims is None:
            token_claims = await self._live(subject, realm, principals)
        else:
            token_claims = await self._for_another(claims, headers, realm, principals)
        roles, executes_tasks = _requested(form.get("scope"), token_claims.roles)
        if executes_tasks and not token_claims.executes_tasks:
            raise OAuthError(
                "invalid_scope", f"The scope requests {EXECUTE_TASKS}, and the subject token does not have that scope"
            )
        for_tasks_alone = roles is not None and not roles
        return replace(token_claims, roles=roles, executes_tasks=executes_tasks or for_tasks_alone)

    async def _live(self, token: str, realm: str, principals: Principals) -> TokenClaims:
        """Returns the claims of a token that this server issued in the realm, with the principal's present name, if it
        is valid, the principal exists, the secret that it was issued for is still valid, and the actor that it names,
        if any, may still act for the principal. Raises `OAuthError` otherwise, and `Unavailable` as `_by_exchange`
        does."""
        dead = OAuthError("invalid_grant", _DEAD_SUBJECT)
        try:
            verified = await self.tokens.verify(token)
        except NotAuthorized as error:
            raise dead from error
        if verified is None or verified[0].realm != realm:
            raise dead
        token_claims = verified[0]
        principal = await principals.by_id(token_claims.principal)
        secret_owner = principal if token_claims.actor is None else await principals.by_id(token_claims.actor)
        if (
            principal is None
            or secret_owner is None
            or token_claims.secret not in map(fingerprint, secret_owner.secrets)
        ):
            raise dead
        if token_claims.actor is not None:
            await _check_may_act(secret_owner, principal, principals)
        return replace(token_claims, name=principal.name)

    async def _for_another(
        self, claims: JsonObject, headers: Mapping[str, str], realm: str, principals: Principals
    ) -> TokenClaims:
        """Returns the claims of a token for the principal that an unsigned subject names by its claim `sub`, if the
        bearer of the request's own token may act for it and does not itself act for another. The token activates all
        roles of that principal. Raises `OAuthError` otherwise, and `Unavailable` as `_by_exchange` does."""
        refused = OAuthError(
            "unauthorized_client",
            "The subject token is not signed, and the request has no valid bearer token that a client registered to "
            "act for others got by client credentials, or the claim 'sub' of the subject token names no principal",
        )
        bearer = RequestCredentials(headers).bearer
        if bearer is None:
            raise refused
        try:
            token_claims = await self._live(bearer, realm, principals)
        except OAuthError as error:
            raise refused from error
        actor, name = await principals.by_id(token_claims.principal), claims.get("sub")
        if actor is None or token_claims.actor is not None or not isinstance(name, str) or not actor.acts_for_others:
            raise refused
        principal = await principals.by_name(name)
        if principal is None:
            raise refused
        await _check_may_act(actor, principal, principals)
        return TokenClaims(
            realm, principal.entity, principal.name, token_claims.client_id, None, token_claims.secret, actor.entity
        )


def credentials_in(form: Mapping[str, str], headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns the client's id and secret, from a Basic header `Authorization` or else the form; None if there is no
    Basic header and the form has no secret. Raises `OAuthError` for a malformed header, a secret without a client id,
    and a form that has another id or secret than the header."""
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
        raise OAuthError("invalid_request", _MALFORMED_BASIC) from error
    if not colon:
        raise OAuthError("invalid_request", _MALFORMED_BASIC)
    if client_id not in (None, name) or secret not in (None, password):
        raise OAuthError(
            "invalid_request",
            "The header 'Authorization' and the form have different client ids or secrets: send one of them",
        )
    return name, password


def requested_roles(scope: str | None, granted: frozenset[str] | None) -> frozenset[str] | None:
    """Returns the principal roles that a scope requests, None for all; if it requests none, the `granted` ones, which
    are None for all. Raises `OAuthError` for an unknown scope, and for one that requests more than is granted."""
    words = [word for word in (scope or "").split() if word != DEFAULT_SCOPE]
    if not words:
        return granted
    try:
        requested = roles_of_scope(" ".join(words))
    except ValueError as error:
        raise OAuthError("invalid_scope", f"The scope is not known: {error}") from error
    if granted is not None and (requested is None or not requested <= granted):
        raise OAuthError("invalid_scope", "The subject token does not have all principal roles that the scope requests")
    return requested


def _requested(scope: str | None, granted: frozenset[str] | None) -> tuple[frozenset[str] | None, bool]:
    """Returns the principal roles that a scope requests, and whether it includes the word for tasks. The roles are
    `granted` (None for all) if the scope names none (the word `DEFAULT_SCOPE` names none), and an empty set if it is
    the word for tasks alone. Raises `OAuthError` for an unknown scope, and for roles that are not `granted`."""
    rest, executes_tasks = without_tasks(scope or "")
    if executes_tasks and not rest:
        return frozenset(), True
    return requested_roles(rest, granted), executes_tasks


async def _check_may_act(actor: PrincipalEntry, principal: PrincipalEntry, principals: Principals) -> None:
    """Raises `OAuthError` unless the actor is registered to act for others and does not have to rotate its credentials
    first, and the principal for which it is to act does not manage access."""
    if actor.must_rotate:
        raise OAuthError("unauthorized_client", f"{actor.name} must rotate its credentials before it acts for others")
    if not actor.acts_for_others or await principals.manages_access(principal):
        raise OAuthError(
            "unauthorized_client",
            "The client may not act for the principal of the subject token, which is not signed or was issued to a "
            "client that acts for others: the client is not registered for that, or the principal manages access",
        )
