"""Requests judged by policies, as AWS does within one account.

Source: IAM user guide, "Policy evaluation logic", "IAM JSON policy elements: Condition operators", "... : Variables and
tags" (`${*}` is a literal asterisk).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.infra.policies import Statement

ARN_OF_CALLER = "aws:PrincipalArn"


@dataclass(frozen=True)
class Request:
    """What a principal asks for. A session of a role is that role."""

    principal: str
    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> Mapping[str, str]:
        """All condition keys that the request has."""
        return {"aws:SecureTransport": "true", ARN_OF_CALLER: self.principal, **self.context}


@dataclass(frozen=True)
class Policies:
    """What speaks of a request: the principal's own policies, those of the resource, and of a session (None: none)."""

    identity: Sequence[Statement]
    resource: Sequence[Statement] = ()
    session: Sequence[Statement] | None = None

    def allow(self, request: Request) -> bool:
        """Nothing denies it, the principal's or the resource's policies allow it, and the session's does not take that
        away."""
        spoken = [*self.identity, *self.resource, *(self.session or ())]
        if any(_speaks(statement, request) for statement in spoken if not statement.allows):
            return False
        if self.session is not None and not _allowed(self.session, request):
            return False
        return _allowed(self.identity, request) or _allowed(self.resource, request)


def _allowed(statements: Sequence[Statement], request: Request) -> bool:
    return any(statement.allows and _speaks(statement, request) for statement in statements)


def _speaks(statement: Statement, request: Request) -> bool:
    return (
        any(_matches(pattern.lower(), request.action.lower()) for pattern in statement.actions)
        and (not statement.resources or any(_matches(pattern, request.resource) for pattern in statement.resources))
        and not any(_matches(pattern, request.resource) for pattern in statement.not_resources)
        and (not statement.principals or any(each in ("*", request.principal) for each in statement.principals))
        and all(
            _OPERATORS[operator](request.keys.get(key), (values,) if isinstance(values, str) else tuple(values))
            for operator, keys in statement.conditions.items()
            for key, values in keys.items()
        )
    )


def _matches(pattern: str, text: str) -> bool:
    """A `*` stands for any text, slashes included, a `?` for one character."""
    wild = {"*": ".*", "?": "."}
    parts = re.findall(r"\$\{[*?$]\}|.", pattern, re.DOTALL)
    spelled = (re.escape(part[2]) if len(part) > 1 else wild.get(part) or re.escape(part) for part in parts)
    return re.fullmatch("".join(spelled), text, re.DOTALL) is not None


def _like(value: str | None, patterns: tuple[str, ...]) -> bool:
    return value is not None and any(_matches(pattern, value) for pattern in patterns)


# What each says of a key that the request does not have is theirs: negated operators hold then.
_OPERATORS: Mapping[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "StringEquals": lambda value, expected: value in expected,
    "StringLike": _like,
    "StringLikeIfExists": lambda value, patterns: value is None or _like(value, patterns),
    "ArnEquals": _like,
    "ArnNotEquals": lambda value, patterns: not _like(value, patterns),
    "Bool": lambda value, expected: value in expected,
}
