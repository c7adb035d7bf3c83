"""The principal of a request, as the gateway authenticated it (docs/design/security.md). The catalog does not
authenticate yet."""

import hashlib
import re
from dataclasses import dataclass

from arco_catalog.http.asgi import Scope
from arco_catalog.planning.access import Identity
from arco_catalog.protocol.operation_request import ANONYMOUS

MAX_TEXT = 256
"""How many characters of a principal's name are kept."""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_ROLE = re.compile(r"(arn:[a-z-]+:sts::[0-9]*:assumed-role/[^/]+)/(.*)", re.DOTALL)


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


def caller_of(scope: Scope) -> Caller:
    """The ARN that signed the request, or the subject of its token: what API Gateway, or a function URL, has checked.

    Of an assumed role the session's name stands apart: a client that renews its credentials between two tries is still
    the same principal.
    """
    known = scope.get(AUTHENTICATED_CALLER)
    if isinstance(known, Caller):
        return known
    event = scope.get("aws.event")
    if event is None:  # no gateway is in front
        return NO_CALLER
    context = _in(event, "requestContext")
    authorizer = _in(context, "authorizer")
    iam, jwt = _in(authorizer, "iam"), _in(authorizer, "jwt")
    signed = _in(iam, "userArn") or _in(_in(context, "identity"), "userArn")
    if isinstance(signed, str) and signed:
        role = _ROLE.fullmatch(signed)
        return Caller(printable(signed)) if role is None else Caller(printable(role[1]), printable(role[2]) or None)
    if iam is not None:
        return Caller(
            ANONYMOUS,
            unidentified_because="The request is signed, but the gateway did not pass on the caller's identity",
        )
    if jwt is None:
        return NO_CALLER
    subject = _in(_in(jwt, "claims"), "sub")
    if isinstance(subject, str) and subject:
        return Caller(printable(subject))
    return Caller(
        ANONYMOUS, unidentified_because="The token has no subject (claim 'sub'): use one that says whose it is"
    )


def _in(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def printable(text: str) -> str:
    """The text as it may stand in receipts and logs. What had to be changed gets a digest: two names stay two."""
    printable = CONTROL.sub("?", text[:MAX_TEXT])
    if printable == text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{printable[: MAX_TEXT - 17]}~{digest}"
