"""What the registry says of policies and of what they are attached to, as the simulation looks at it."""

from collections.abc import Mapping
from dataclasses import dataclass

from arco_catalog.planning.access import Securable
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.fields import optional_text, text
from arco_catalog.state.index import Index, level, namespaces_in
from arco_catalog.state.policies import PolicyEntry, attached_to, targets_of
from arco_catalog.state.roles import CATALOG
from tools.support.catalog_fixture import NS

Pairs = frozenset[tuple[str, str]]
"""Targets and the policies that are attached to them, by their ids."""


@dataclass(frozen=True)
class Snapshot:
    """What HEAD says at one instant. `relations`, `policies` and `namespaces` are by name, `dropped` those with a
    tombstone."""

    relations: Mapping[str, RelationEntry]
    namespaces: Mapping[str, str]
    policies: Mapping[str, PolicyEntry]
    dropped: frozenset[str]
    attached: Pairs
    targets: Mapping[tuple[str, str], str | None]
    """The same pairs from the policies' side, each with the target's name."""

    @classmethod
    def of(cls, index: Index) -> "Snapshot":
        relations = {key.split("\n")[-1]: RelationEntry(entry) for key, entry in index.scan(level("relation", NS))}
        policies = {key.split("\n")[-1]: PolicyEntry(entry) for key, entry in index.scan(level("policy", NS))}
        targets = {_pair(key)[::-1]: optional_text(entry, "name") for key, entry in index.scan(_kind(targets_of("x")))}
        return cls(
            relations,
            {key.split("\n")[-1]: text(entry, "entity") for key, entry in index.scan(namespaces_in(()))},
            policies,
            frozenset(text(entry, "entity") for _, entry in index.scan("tombstone\n")),
            frozenset(_pair(key) for key, _ in index.scan(_kind(attached_to("x")))),
            {(target, policy): name for (target, policy), name in targets.items()},
        )

    def names(self) -> Mapping[str, str | None]:
        """What a policy can be attached to: by the id, with the name of what has one in a namespace."""
        relations = {relation.entity: name for name, relation in self.relations.items()}
        return {CATALOG: None, **dict.fromkeys(self.namespaces.values()), **relations}

    def entity_of(self, target: Securable) -> str | None:
        """The id of a target; None if it is not there."""
        if target.name is not None:
            relation = self.relations.get(target.name)
            return None if relation is None else relation.entity
        return self.namespaces.get(target.namespace[0]) if target.namespace else CATALOG

    def has(self, policy: str, target: Securable) -> bool:
        """Whether a policy is attached to this target."""
        on, entry = self.entity_of(target), self.policies.get(policy)
        return on is not None and entry is not None and (on, entry.entity) in self.attached

    def is_generic(self, target: str | None) -> bool:
        """Whether a name means a generic table, for which predefined policies are not."""
        return target is not None and target in self.relations and self.relations[target].kind == "generic-table"

    def in_use(self, policy: str) -> bool:
        """Whether a policy is attached to something that is not dropped."""
        entry, living = self.policies.get(policy), self.names()
        return entry is not None and any(by == entry.entity and target in living for target, by in self.attached)

    def rival(self, policy: str, target: Securable) -> bool:
        """Whether another policy of the same type is attached to this target."""
        wanted = self.policies.get(policy)
        return wanted is not None and any(
            other.policy_type == wanted.policy_type and self.has(name, target)
            for name, other in self.policies.items()
            if name != policy
        )


def _kind(prefix: str) -> str:
    return prefix.split("\n")[0] + "\n"


def _pair(key: str) -> tuple[str, str]:
    _, first, second = key.split("\n")
    return first, second
