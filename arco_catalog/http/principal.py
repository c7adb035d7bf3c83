"""The caller of a request, as the server's authenticators or else the gateway authenticated it
(docs/design/security.md)."""

from collections.abc import Mapping

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.authentication.authenticator import RequestCredentials
from arco_catalog.authentication.gateway import claims_in, inner, printable, signer_in, without_session
from arco_catalog.http.asgi import Scope
from arco_catalog.planning.access import Identity
from arco_catalog.protocol.operation_request import ANONYMOUS
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request. Idempotency keys are bound to `principal`; `session` distinguishes callers with one
    principal: by the session of an assumed role, or the id of the principal that acts for this one; None for any other
    caller. `identity` is the caller's identity in a realm, None without a realm or if the rights are not checked, and
    `name` is its name for receipts, None unless the server authenticated it. `unidentified_because` is the reason why
    the gateway or the server could not identify the caller, None for any other caller: a server that authenticates no
    callers rejects such a caller, except on public routes, because all of them would share one principal."""

    principal: str
    session: str | None = None
    unidentified_because: str | None = None
    identity: Identity | None = None
    name: str | None = None
    roles: tuple[str, ...] = ()
    """The names of the principal roles that the caller's token activates; empty if it names none."""
    realm: str | None = None
    """The realm whose principal the caller is; None for a caller whose identity an issuer or a gateway confirms."""

    @property
    def shown(self) -> str:
        """The caller's name in receipts: `name`, or the principal if that is None."""
        return self.principal if self.name is None else self.name

    @property
    def authenticated(self) -> bool:
        """Whether the caller is not anonymous."""
        return self.principal != ANONYMOUS


NO_CALLER = Caller(ANONYMOUS)
AUTHENTICATED_CALLER = "arco.caller"
"""The key of a scope under which an adapter passes the `Caller` that its platform authenticated."""
CLIENT_CERTIFICATE = "client_certificate"
"""The key of a scope's state under which a server passes the subject of a client certificate that it verified."""
GATEWAY_EVENT = "aws.event"
"""The key of a scope under which the adapter for Lambda passes the gateway's event, and other adapters an event of the
same form."""


async def authenticated_caller(
    authentication: Authentication, headers: Mapping[str, str], event: object, *, judged: bool
) -> tuple[str, Caller]:
    """Authenticates a request, and returns the name of its realm and its caller. The caller has an identity, by which
    its rights are verified, only if `judged`. Raises `NotAuthorized`, and `Unavailable` if an identity provider does
    not answer."""
    found = await authentication.authenticate(RequestCredentials(headers, event))
    identity = found.identity if judged else None
    realm = None if found.identity.issued else found.realm
    roles = tuple(sorted(found.identity.activated or ()))
    principal = found.identity.principal
    return found.realm, Caller(principal, found.session, None, identity, found.name, roles=roles, realm=realm)


def caller_of(scope: Scope) -> Caller:
    """Returns the caller that an adapter put into the scope, or else the one that a gateway authenticated: the ARN that
    signed the request, or the subject of the token. It is `NO_CALLER` without both, and if the gateway authenticated no
    caller. A caller that the gateway authenticated without an ARN or a subject has the reason in
    `unidentified_because`.

    The principal of an assumed role does not contain the session's name, so that a client which renews its credentials
    between two tries is still the same principal.
    """
    known = scope.get(AUTHENTICATED_CALLER)
    if isinstance(known, Caller):
        return known
    event = scope.get(GATEWAY_EVENT)
    if event is None:  # no gateway is in front
        return NO_CALLER
    context = inner(event, "requestContext")
    signed = signer_in(context)
    if signed:
        principal, session = without_session(signed)
        return Caller(printable(principal), None if session is None else printable(session))
    if signed is not None:
        return Caller(
            ANONYMOUS,
            unidentified_because="The request is signed, but API Gateway did not pass on the ARN of the caller",
        )
    claims = claims_in(context)
    if claims is None:
        return NO_CALLER
    subject = claims.get("sub")
    if isinstance(subject, str) and subject:
        return Caller(printable(subject))
    return Caller(ANONYMOUS, unidentified_because="The token has no subject (claim 'sub'): send a token that has one")
