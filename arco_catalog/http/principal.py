"""Who asks, as the front door that let them in says (design.md, section 7): nobody else checks anybody yet."""

import hashlib
import re
from dataclasses import dataclass

from arco_catalog.http.asgi import Scope
from arco_catalog.operations.operation_request import ANONYMOUS

MAX_TEXT = 256
"""Characters of somebody's name."""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_ROLE = re.compile(r"(arn:[a-z-]+:sts::[0-9]*:assumed-role/[^/]+)/(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Caller:
    """`principal` is what an idempotency key is bound to; `session` tells apart who assumed one role. `nameless` says
    what is wrong with a caller that was let in and has no name: such are refused, or all of them would be one."""

    principal: str
    session: str | None = None
    nameless: str | None = None

    @property
    def authenticated(self) -> bool:
        """Whether somebody has checked who this is."""
        return self.principal != ANONYMOUS


NOBODY = Caller(ANONYMOUS)


def caller_of(scope: Scope) -> Caller:
    """The ARN that signed the request, or the subject of its token: what API Gateway, or a function URL, has checked.

    Of an assumed role the session's name stands apart: a client that renews its credentials between two tries is still
    the same principal.
    """
    context = _in(scope.get("aws.event"), "requestContext")
    authorizer = _in(context, "authorizer")
    iam, jwt = _in(authorizer, "iam"), _in(authorizer, "jwt")
    signed = _in(iam, "userArn") or _in(_in(context, "identity"), "userArn")
    if isinstance(signed, str) and signed:
        role = _ROLE.fullmatch(signed)
        return Caller(_told(signed)) if role is None else Caller(_told(role[1]), _told(role[2]) or None)
    if iam is not None:
        return Caller(
            ANONYMOUS, nameless="The request is signed, but the gateway did not pass on the caller's identity"
        )
    if jwt is None:
        return NOBODY
    subject = _in(_in(jwt, "claims"), "sub")
    if isinstance(subject, str) and subject:
        return Caller(_told(subject))
    return Caller(ANONYMOUS, nameless="The token has no subject (claim 'sub'): use one that says whose it is")


def _in(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def _told(text: str) -> str:
    """The text as it may stand in receipts and logs. What had to be changed gets a digest: two names stay two."""
    told = CONTROL.sub("?", text[:MAX_TEXT])
    if told == text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{told[: MAX_TEXT - 17]}~{digest}"
