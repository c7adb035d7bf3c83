"""The entries of policies and of their attachments in a catalog's index (docs/design/polaris.md#policies).

An attachment refers to its two entities by their ids, so it stays valid after a rename, and applies again when a
dropped entity is undropped. One commit writes two entries of it, one for each side.
"""

from collections.abc import Iterator, Mapping
from typing import Self

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.entries import find_namespace, find_relation
from arco_catalog.state.fields import integer, optional_text, text, texts
from arco_catalog.state.index import Edits, Index, Namespace, level, namespace_key, relation_key
from arco_catalog.state.roles import CATALOG
from storage_backends.lazy_dataclass import dataclass

FIRST_VERSION = 0
"""The version of a policy whose name none had before."""


def policy_key(namespace: Namespace, name: str) -> str:
    """Returns the index key of a policy's entry."""
    return policies_in(namespace) + name


def policies_in(namespace: Namespace) -> str:
    """Returns the prefix of the index keys of a namespace's policies."""
    return level("policy", namespace)


def attached_to(target: str) -> str:
    """Returns the prefix of the index keys of the attachments of an entity, or of the catalog, by the ids of their
    policies."""
    return level("policy-attached", (target,))


def targets_of(policy: str) -> str:
    """Returns the prefix of the index keys of a policy's attachments, by the ids of their targets."""
    return level("policy-target", (policy,))


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """The registry's entry of a policy under its name. The text is an immutable object with the id `value`; each
    version has one."""

    json: JsonObject

    @classmethod
    def new(cls, *, entity: str, policy_type: str, inheritable: bool, value: str, version: int) -> Self:
        """Returns the entry of a new policy of this type, at this version. `value` is the id of its text."""
        return cls(
            {"entity": entity, "type": policy_type, "inheritable": inheritable, "version": version, "value": value}
        )

    def with_value(self, value: str) -> "PolicyEntry":
        """Returns the policy's entry with its next version, after a change of its text: `value` is the id of the new
        one."""
        return PolicyEntry({**self.json, "version": self.version + 1, "value": value})

    @property
    def entity(self) -> str:
        """The policy's entity id. Raises `InternalError` if the entry has none."""
        return text(self.json, "entity")

    @property
    def policy_type(self) -> str:
        """The name of the policy's type. Raises `InternalError` if the entry has none."""
        return text(self.json, "type")

    @property
    def inheritable(self) -> bool:
        """Whether objects inside a target inherit the policy; False if the entry does not record it."""
        return self.json.get("inheritable") is True

    @property
    def version(self) -> int:
        """The policy's version, which every change of the text increments. Raises `InternalError` if the entry has
        none."""
        return integer(self.json, "version")

    @property
    def value(self) -> str:
        """The id of the stored object with the policy's text. Raises `InternalError` if the entry has none."""
        return text(self.json, "value")


def find_policy(index: Index, namespace: Namespace, name: str) -> PolicyEntry | None:
    """Returns the entry of the policy that has a name in a namespace, None if there is none."""
    entry = index.get(policy_key(namespace, name))
    return None if entry is None else PolicyEntry(entry)


@dataclass(frozen=True, slots=True)
class AttachedPolicy:
    """The index entry of a policy's attachment on the side of the target: the namespace, name, type and inheritance of
    the policy, and the parameters of the attachment."""

    json: JsonObject

    @property
    def namespace(self) -> Namespace:
        """The namespace of the policy, not of the target; empty if the entry has none."""
        return texts(self.json, "namespace")

    @property
    def name(self) -> str:
        """The name of the policy, not of the target. Raises `InternalError` if the entry has none."""
        return text(self.json, "name")

    @property
    def policy_type(self) -> str:
        """The name of the policy's type. Raises `InternalError` if the entry has none."""
        return text(self.json, "type")

    @property
    def inheritable(self) -> bool:
        """Whether objects inside the target inherit the policy; False if the entry does not record it."""
        return self.json.get("inheritable") is True


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a policy's attachment: the catalog, a namespace, or with a `name` a table or view in a
    namespace."""

    entity: str
    namespace: Namespace = ()
    name: str | None = None

    @property
    def key(self) -> str | None:
        """The index key of the entry of the namespace, table or view that is the target; None for the catalog, which
        has none."""
        if self.name is not None:
            return relation_key(self.namespace, self.name)
        return namespace_key(self.namespace) if self.namespace else None

    def is_live(self, index: Index) -> bool:
        """Whether the target's name still has this entity; False if it was dropped or the name passed to another.
        Always True for the catalog. The entry of `key` must be loaded."""
        if self.name is not None:
            relation = find_relation(index, self.namespace, self.name)
            return relation is not None and relation.entity == self.entity
        namespace = find_namespace(index, self.namespace)
        return self.entity == CATALOG or (namespace is not None and namespace.entity == self.entity)


def attachments(index: Index, target: str) -> Iterator[tuple[str, AttachedPolicy]]:
    """Yields the id and the attachment of each policy on an entity. The scan of `attached_to` must be loaded."""
    prefix = attached_to(target)
    for key, entry in index.scan(prefix):
        yield key[len(prefix) :], AttachedPolicy(entry)


def targets(index: Index, policy: str) -> Iterator[Target]:
    """Yields the targets of a policy. The scan of `targets_of` must be loaded."""
    prefix = targets_of(policy)
    for key, entry in index.scan(prefix):
        yield Target(key[len(prefix) :], texts(entry, "namespace"), optional_text(entry, "name"))


def attachment_edits(
    policy: PolicyEntry, namespace: Namespace, name: str, target: Target, parameters: Mapping[str, str]
) -> Edits:
    """Returns the index changes that attach a policy with this name to a target. The parameters replace those of an
    earlier attachment."""
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
    """Returns the index changes that detach a policy from a target, given the ids of both."""
    return {attached_to(target) + policy: None, targets_of(policy) + target: None}


def edits_without_attachments(index: Index, target: str) -> Edits:
    """Returns the index changes that detach all policies from an entity that will never be restored. The scan of
    `attached_to` must be loaded."""
    edits: dict[str, JsonObject | None] = {}
    for policy, _ in attachments(index, target):
        edits.update(detachment_edits(policy, target))
    return edits


def renamed_attachments(index: Index, target: str, namespace: Namespace, name: str) -> Edits:
    """Returns the index changes that write the new name of an entity into the attachments of its policies. The scan of
    `attached_to` must be loaded."""
    entry: JsonObject = {"namespace": [*namespace], "name": name}
    return {targets_of(policy) + target: entry for policy, _ in attachments(index, target)}
