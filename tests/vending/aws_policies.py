"""What IAM does with a policy, as far as ours go: a second reader, written from its user guide."""

import json
import re
from typing import Any


def matches(pattern: str, text: str) -> bool:
    """Whether `*` and `?` in a pattern cover a text; `${*}`, `${?}` and `${$}` are the characters themselves."""
    tokens = re.findall(r"\$\{[*?$]\}|.", pattern, re.DOTALL)
    spelled = [{"*": ".*", "?": "."}.get(token) or re.escape(token[2] if len(token) > 1 else token) for token in tokens]
    return re.fullmatch("".join(spelled), text, re.DOTALL) is not None


def allows(policy: str, action: str, arn: str, prefix: str | None = None) -> bool:
    """Whether a policy allows an action on a resource, a LIST with this prefix."""
    return any(_allows(statement, action, arn, prefix) for statement in json.loads(policy)["Statement"])


def _allows(statement: dict[str, Any], action: str, arn: str, prefix: str | None) -> bool:
    if statement["Effect"] != "Allow" or action not in _listed(statement["Action"]):
        return False
    if not any(matches(resource, arn) for resource in _listed(statement["Resource"])):
        return False
    for operator, conditions in statement.get("Condition", {}).items():
        assert (operator, [*conditions]) == ("StringLike", ["s3:prefix"])
        if prefix is None or not any(matches(value, prefix) for value in conditions["s3:prefix"]):
            return False
    return True


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
