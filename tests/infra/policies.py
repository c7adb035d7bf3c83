"""Policies as AWS reads them: statements with lists where JSON may have a single value."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.infra.terraform import Resource


@dataclass(frozen=True)
class Statement:
    """One of a policy of `owner`, the address of a role's or bucket's policy."""

    owner: str
    id: str
    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: dict[str, Any]

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
        )
        for found in json.loads(policy)["Statement"]
    ]


def of_roles(resources: Iterable[Resource]) -> list[Statement]:
    """What all roles of a deployment may do."""
    policies = [resource for resource in resources if resource.type == "aws_iam_role_policy"]
    return [statement for found in policies for statement in statements(found.address, found.values["policy"])]


def of_bucket(resources: Iterable[Resource]) -> list[Statement]:
    """The bucket's policy."""
    policy = next(resource for resource in resources if resource.type == "aws_s3_bucket_policy")
    return statements(policy.address, policy.values["policy"])


def _list(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
