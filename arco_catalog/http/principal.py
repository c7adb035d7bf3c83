"""Who makes a request: as a deployment's authenticators know it, or else as the gateway authenticated it
(docs/design/security.md)."""

from collections.abc import Mapping
from dataclasses import dataclass

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.authentication.authenticator import RequestCredentials
from arco_catalog.authentication.gateway import claims_in, inner, printable, signer_in, without_session
from arco_catalog.http.asgi import Scope
from arco_catalog.planning.access import Identity
from arco_catalog.protocol.operation_request import ANONYMOUS


@dataclass(frozen=True, slots=True)
class Caller:
    """`principal` is what an idempotency key is bound to; `session` tells apart who assumed one role. `identity` is
    whom a realm knows it as, None where there is no realm, or nobody asks; `name` is its name there.
    `unidentified_because` says why an authenticated caller has no name: such callers are refused, or all of them would
    be one principal."""

    principal: str
    session: str | None = None
    unidentified_because: str | None = None
    identity: Identity | None = None
    name: str | None = None
    realm: str | None = None
    """The realm that holds the principal; None where an issuer or a gateway vouches for the caller."""

    @property
    def shown(self) -> str:
        """How receipts name it."""
        return self.principal if self.name is None else self.name

    @property
    def authenticated(self) -> bool:
        """Whether the gateway authenticated the caller."""
        return self.principal != ANONYMOUS


NO_CALLER = Caller(ANONYMOUS)
AUTHENTICATED_CALLER = "arco.caller"
"""Where an adapter puts the `Caller` into a scope that it makes itself."""
CLIENT_CERTIFICATE = "client_certificate"
"""Where a server puts the subject of a client's certificate, which it has verified, into the state of a scope."""
GATEWAY_EVENT = "aws.event"
"""Where the adapter for Lambda puts the event of the gateway that invoked us, and others what has its form."""


async def authenticated_caller(
    authentication: Authentication, headers: Mapping[str, str], event: object, *, judged: bool
) -> tuple[str, Caller]:
    """The realm that a request is for, and who makes it; what that may do is asked only if it is to be `judged`. Raises
    `NotAuthorized`, and `Unavailable` if nobody can tell."""
    found = await authentication.authenticate(RequestCredentials(headers, event))
    identity = found.identity if judged else None
    realm = None if found.identity.issued else found.realm
    return found.realm, Caller(found.identity.principal, found.session, None, identity, found.name, realm)


def caller_of(scope: Scope) -> Caller:
    """The ARN that signed the request, or the subject of its token: what API Gateway, or a function URL, has checked.

    Of an assumed role the session's name stands apart: a client that renews its credentials between two tries is still
    the same principal.
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
            unidentified_because="The request is signed, but the gateway did not pass on the caller's identity",
        )
    claims = claims_in(context)
    if claims is None:
        return NO_CALLER
    subject = claims.get("sub")
    if isinstance(subject, str) and subject:
        return Caller(printable(subject))
    return Caller(
        ANONYMOUS, unidentified_because="The token has no subject (claim 'sub'): use one that says whose it is"
    )
