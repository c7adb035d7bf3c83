"""What a catalog's index holds of policies: each under its name, and what it is attached to
(docs/design/polaris.md#policies).

An attachment is between two entities, by their ids, so that it follows what is renamed, and is there again when what
was dropped is restored. It is kept twice, once from each side, by the same commit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.entries import find_namespace, find_relation
from arco_catalog.state.fields import integer, optional_text, text, texts
from arco_catalog.state.index import Edits, Index, Namespace, level, namespace_key, relation_key
from arco_catalog.state.roles import CATALOG

FIRST_VERSION = 0
"""The version of a policy whose name none had before."""


def policy_key(namespace: Namespace, name: str) -> str:
    """Key of a policy."""
    return policies_in(namespace) + name


def policies_in(namespace: Namespace) -> str:
    """Prefix of the keys of a namespace's policies."""
    return level("policy", namespace)


def attached_to(target: str) -> str:
    """Prefix of the keys of what is attached to an entity, or to the catalog."""
    return level("policy-attached", (target,))


def targets_of(policy: str) -> str:
    """Prefix of the keys of the same facts, from the policy's side."""
    return level("policy-target", (policy,))


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A policy under its name. What it says is an immutable value of its own, `value`, one for each version."""

    json: JsonObject

    @classmethod
    def new(cls, *, entity: str, policy_type: str, inheritable: bool, value: str, version: int) -> Self:
        """An entry to store."""
        return cls(
            {"entity": entity, "type": policy_type, "inheritable": inheritable, "version": version, "value": value}
        )

    def with_value(self, value: str) -> "PolicyEntry":
        """The next version."""
        return PolicyEntry({**self.json, "version": self.version + 1, "value": value})

    @property
    def entity(self) -> str:
        return text(self.json, "entity")

    @property
    def policy_type(self) -> str:
        return text(self.json, "type")

    @property
    def inheritable(self) -> bool:
        return self.json.get("inheritable") is True

    @property
    def version(self) -> int:
        return integer(self.json, "version")

    @property
    def value(self) -> str:
        return text(self.json, "value")


def find_policy(index: Index, namespace: Namespace, name: str) -> PolicyEntry | None:
    """The policy of this name."""
    entry = index.get(policy_key(namespace, name))
    return None if entry is None else PolicyEntry(entry)


@dataclass(frozen=True, slots=True)
class AttachedPolicy:
    """One of the policies that are attached to an entity, by its own name."""

    json: JsonObject

    @property
    def namespace(self) -> Namespace:
        return texts(self.json, "namespace")

    @property
    def name(self) -> str:
        return text(self.json, "name")

    @property
    def policy_type(self) -> str:
        return text(self.json, "type")

    @property
    def inheritable(self) -> bool:
        return self.json.get("inheritable") is True


@dataclass(frozen=True, slots=True)
class Target:
    """What a policy is attached to: the catalog, a namespace, or with a `name` something in one."""

    entity: str
    namespace: Namespace = ()
    name: str | None = None

    @property
    def key(self) -> str | None:
        """Under which it is found while it lives; None for the catalog."""
        if self.name is not None:
            return relation_key(self.namespace, self.name)
        return namespace_key(self.namespace) if self.namespace else None

    def is_live(self, index: Index) -> bool:
        """Whether its name still means it, and not another that came after it, or nothing."""
        if self.name is not None:
            relation = find_relation(index, self.namespace, self.name)
            return relation is not None and relation.entity == self.entity
        namespace = find_namespace(index, self.namespace)
        return self.entity == CATALOG or (namespace is not None and namespace.entity == self.entity)


def attachments(index: Index, target: str) -> Iterator[tuple[str, AttachedPolicy]]:
    """The policies that are attached to an entity, each by its id; the scan of `attached_to` is loaded."""
    prefix = attached_to(target)
    for key, entry in index.scan(prefix):
        yield key[len(prefix) :], AttachedPolicy(entry)


def targets(index: Index, policy: str) -> Iterator[Target]:
    """What a policy is attached to; the scan of `targets_of` is loaded."""
    prefix = targets_of(policy)
    for key, entry in index.scan(prefix):
        yield Target(key[len(prefix) :], texts(entry, "namespace"), optional_text(entry, "name"))


def attachment_edits(
    policy: PolicyEntry, namespace: Namespace, name: str, target: Target, parameters: Mapping[str, str]
) -> Edits:
    """Edits by which a policy of this name is attached, with these parameters alone."""
    attached: JsonObject = {
        "namespace": [*namespace],
        "name": name,
        "type": policy.policy_type,
        "inheritable": policy.inheritable,
        "parameters": {**parameters},
    }
    return {
        attached_to(target.entity) + policy.entity: attached,
        targets_of(policy.entity) + target.entity: {"namespace": [*target.namespace], "name": target.name},
    }


def detachment_edits(policy: str, target: str) -> Edits:
    """Edits by which a policy is attached no longer."""
    return {attached_to(target) + policy: None, targets_of(policy) + target: None}


def edits_without_attachments(index: Index, target: str) -> Edits:
    """Edits that detach everything from an entity which will never be there again; the scan of `attached_to` is
    loaded."""
    edits: dict[str, JsonObject | None] = {}
    for policy, _ in attachments(index, target):
        edits.update(detachment_edits(policy, target))
    return edits


def renamed_attachments(index: Index, target: str, namespace: Namespace, name: str) -> Edits:
    """Edits by which the policies that are attached to something find it under its new name; the scan of `attached_to`
    is loaded."""
    entry: JsonObject = {"namespace": [*namespace], "name": name}
    return {targets_of(policy) + target: entry for policy, _ in attachments(index, target)}
