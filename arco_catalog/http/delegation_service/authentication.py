"""Authentication of the delegation service's callers: by tokens with the scope `execute_tasks`, or by client
certificates (docs/delegation.md#who-may-call)."""

from collections.abc import Mapping

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.authentication.authenticator import AuthenticationResult, RequestCredentials
from arco_catalog.authentication.tokens import EXECUTE_TASKS
from arco_catalog.http.asgi import Asgi, Receive, Scope, Send
from arco_catalog.http.principal import AUTHENTICATED_CALLER, CLIENT_CERTIFICATE, Caller
from arco_catalog.iceberg.errors import Forbidden
from arco_catalog.operations.management.standing import has_role
from arco_catalog.operations.realms import Realm
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TaskAuthenticator:
    """Authenticates callers by `tokens`, and accepts only tokens with the scope `execute_tasks`. A principal of one of
    the `realms` must also still have the role of that name, and need not rotate the credentials. For a token of an
    external issuer the scope is enough."""

    tokens: Authentication
    realms: Mapping[str, Realm]

    async def authenticate(self, presented: RequestCredentials) -> AuthenticationResult | None:
        """Authenticates a request to the delegation service by the token. Raises `NotAuthorized` for a missing or
        invalid token, or one of another realm than `Polaris-Realm` names, `Unavailable` if the keys that verify it
        can't be had, and `Forbidden` for a token without the scope `execute_tasks`, and for a token of the catalog's
        own that is not valid any more, or whose principal does not have the role of that name any more, must rotate the
        credentials first, or is of a realm that is not served here."""
        found = await self.tokens.authenticate(presented)
        if EXECUTE_TASKS not in found.scopes:
            raise Forbidden(f"The token does not have the scope {EXECUTE_TASKS}, which the delegation service requires")
        if not found.identity.issued:
            realm = self.realms.get(found.realm)
            if realm is None or not await has_role(realm.lookups(), found.identity, EXECUTE_TASKS):
                raise Forbidden(
                    "The token is not valid any more, as after a reset of the secret, or the principal does not have "
                    f"the principal role {EXECUTE_TASKS} any more, must rotate the credentials first, or is of a realm "
                    "that this service does not serve"
                )
        return found


@dataclass(frozen=True, slots=True)
class CertificateCallers:
    """An ASGI app that identifies the caller of a request by the subject of the client certificate, and calls the
    `inner` app. The caller of a request without a certificate is unidentified, and the inner app rejects it, except for
    `/health`."""

    inner: Asgi

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            subject = scope.get("state", {}).get(CLIENT_CERTIFICATE)
            unidentified = Caller("", unidentified_because="The client sent no certificate with a subject")
            scope = {**scope, AUTHENTICATED_CALLER: Caller(subject) if subject else unidentified}
        await self.inner(scope, receive, send)
