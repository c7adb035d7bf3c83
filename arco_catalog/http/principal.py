"""Who asks, as the front door that let them in says (design.md, section 7): nobody else checks anybody yet."""

import re

from arco_catalog.http.asgi import Scope

ANONYMOUS = "anonymous"
"""Everybody, where nothing stands in front that would know."""
MAX_TEXT = 256
"""Characters of somebody's name."""
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_SESSION = re.compile(r"(arn:[a-z-]+:sts::[0-9]*:assumed-role/[^/]+)/.*")


def principal_of(scope: Scope) -> str:
    """The ARN that signed the request, or the subject of its token: what API Gateway, or a function URL, has checked.

    Of an assumed role without the session's name: an idempotency key is bound to its principal, and a client that
    renews its credentials between two tries is still the same.
    """
    context = _in(scope.get("aws.event"), "requestContext")
    authorizer = _in(context, "authorizer")
    signed = _in(_in(authorizer, "iam"), "userArn") or _in(_in(context, "identity"), "userArn")
    if isinstance(signed, str) and signed:
        return _told(_SESSION.sub(r"\1", signed))
    subject = _in(_in(_in(authorizer, "jwt"), "claims"), "sub")
    return _told(subject) if isinstance(subject, str) and subject else ANONYMOUS


def _in(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def _told(text: str) -> str:
    return CONTROL.sub("?", text[:MAX_TEXT])
