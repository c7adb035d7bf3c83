"""What the registry says of policies and of what they are attached to, as the simulation looks at it."""

from collections.abc import Mapping
from dataclasses import dataclass

from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.fields import optional_text, text
from arco_catalog.state.index import Index, level
from arco_catalog.state.policies import PolicyEntry, attached_to, targets_of
from tools.support.catalog_fixture import NS

Pairs = frozenset[tuple[str, str]]
"""Targets and the policies that are attached to them, by their ids."""


@dataclass(frozen=True)
class Snapshot:
    """What HEAD says at one instant. `relations` and `policies` are by name, `dropped` those with a tombstone."""

    relations: Mapping[str, RelationEntry]
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
            policies,
            frozenset(text(entry, "entity") for _, entry in index.scan("tombstone\n")),
            frozenset(_pair(key) for key, _ in index.scan(_kind(attached_to("x")))),
            {(target, policy): name for (target, policy), name in targets.items()},
        )

    def has(self, policy: str, target: str) -> bool:
        """Whether a policy is attached to what a name means."""
        on, entry = self.relations.get(target), self.policies.get(policy)
        return on is not None and entry is not None and (on.entity, entry.entity) in self.attached

    def is_generic(self, target: str) -> bool:
        """Whether a name means a generic table, for which predefined policies are not."""
        return target in self.relations and self.relations[target].kind == "generic-table"

    def in_use(self, policy: str) -> bool:
        """Whether a policy is attached to something that is not dropped."""
        return any(self.has(policy, name) for name in self.relations)

    def rival(self, policy: str, target: str) -> bool:
        """Whether another policy of the same type is attached to what a name means."""
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
