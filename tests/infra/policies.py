"""Policies as AWS reads them: statements with lists where JSON may have a single value."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.infra.terraform import Resource

LATER = ("aws_iam_role_policy.pipeline_schedule[0]", "aws_iam_role_policy.pipeline_engine[0]")
"""Policies that name what gets its id when it is made. Tests read the documents that they are made of."""


@dataclass(frozen=True)
class Statement:
    """One of a policy of `owner`, the address of a role's or bucket's policy."""

    owner: str
    id: str
    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: dict[str, Any]
    principals: tuple[str, ...] = ()
    """ARNs, services, or `*`: in policies of resources."""
    not_resources: tuple[str, ...] = ()
    """What the statement is not about, where it is about all else."""

    @property
    def allows(self) -> bool:
        return self.effect == "Allow"


def statements(owner: str, policy: str) -> list[Statement]:
    """Those of a policy document."""
    return [
        Statement(
            owner,
            found.get("Sid", ""),
            found["Effect"],
            _list(found["Action"]),
            _list(found.get("Resource", [])),
            found.get("Condition", {}),
            _principals(found.get("Principal", {})),
            _list(found.get("NotResource", [])),
        )
        for found in _statements(json.loads(policy).get("Statement") or [])
    ]


def to_be_written(owner: str, blocks: Iterable[Mapping[str, Any]]) -> list[Statement]:
    """Those of a document that names what is not yet made: such resources are taken for any."""
    return [
        Statement(
            owner,
            block["sid"],
            block["effect"] or "Allow",
            tuple(block["actions"]),
            tuple(resource or "*" for resource in block["resources"]),
            {each["test"]: {each["variable"]: each["values"]} for each in block["condition"]},
        )
        for block in blocks
    ]


def of_roles(resources: Iterable[Resource]) -> list[Statement]:
    """What all roles of a deployment may do, but for `LATER`."""
    policies = [resource for resource in resources if resource.type in ("aws_iam_role_policy", "aws_iam_policy")]
    return [
        statement
        for found in policies
        if "policy" in found.values or found.address not in LATER
        for statement in statements(found.address, found.values["policy"])
    ]


def of_bucket(resources: Iterable[Resource]) -> list[Statement]:
    """The bucket's policy."""
    policy = next(resource for resource in resources if resource.type == "aws_s3_bucket_policy")
    return statements(policy.address, policy.values["policy"])


def _statements(found: dict[str, Any] | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [found] if isinstance(found, dict) else found


def _principals(found: str | dict[str, str | list[str]]) -> tuple[str, ...]:
    if isinstance(found, str):
        return (found,)
    return tuple(each for value in found.values() for each in _list(value))


def _list(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
