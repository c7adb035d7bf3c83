"""Attaches policies to a catalog, to its namespaces and to what is in these, and detaches them
(docs/design/polaris.md#attachments)."""

from collections.abc import Mapping

from arco_catalog.iceberg.errors import BadRequest, ConflictPolicyAttachment, NoSuchMapping
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.policies.policies import PolicyChange, existing_policy
from arco_catalog.planning.access import Securable
from arco_catalog.planning.answers import Answer, Document
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.names import dotted
from arco_catalog.planning.policy_types import check_target
from arco_catalog.planning.registry_change import Change
from arco_catalog.planning.securables import absent, chain_of
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.state.entries import find_relation
from arco_catalog.state.index import Index, Namespace
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.policies import (
    PolicyEntry,
    Target,
    attached_to,
    attachment_edits,
    attachments,
    detachment_edits,
)
from arco_catalog.state.stored_fields import keep_stored_fields

MAX_PARAMETERS_BYTES = 8 << 10
"""Maximum size of all parameters of one attachment, names and values: they are part of the registry's index."""
MAX_ATTACHED = 1_000
"""Maximum number of policies on one target."""


async def attach_policy(
    session: Session, namespace: Namespace, name: str, target: Securable, parameters: Mapping[str, str]
) -> Answer:
    """Attaches a policy to a target. If it is attached already, these parameters replace the previous ones. Raises
    `NoSuchPolicy`, the errors of `existing_target`, `BadRequest` for a kind of target that the policy's type does not
    allow and for too large parameters or too many policies, and `ConflictPolicyAttachment` if another policy of the
    same inheritable type is attached to the target."""
    return await run(session, _Attach(session, namespace, name, target, parameters))


async def detach_policy(session: Session, namespace: Namespace, name: str, target: Securable) -> Answer:
    """Detaches a policy from a target. Raises `NoSuchPolicy`, the errors of `existing_target`, and `NoSuchMapping` if
    the policy is not attached to the target."""
    return await run(session, _Detach(session, namespace, name, target))


def existing_target(index: Index, securable: Securable) -> Steps[Target]:
    """Computes the target for a securable to which a policy can be attached. Raises the errors of `absent` if it does
    not exist, and `PendingTransaction` if the name is the intent of a transaction."""
    chain = yield from chain_of(index, securable)
    if chain is None:
        raise absent(securable)
    if securable.name is not None:
        relation = find_relation(index, securable.namespace, securable.name)
        if relation is not None:
            relation.require_committed()
    return Target(chain[-1], securable.namespace, securable.name)


class _Mapping(PolicyChange):
    def __init__(self, session: Session, namespace: Namespace, name: str, target: Securable) -> None:
        super().__init__(session, namespace, name)
        self.target = target

    def found(self, index: Index) -> Steps[tuple[PolicyEntry, Target]]:
        """Computes the policy and its target, and loads all attachments of the target. Raises `NoSuchPolicy`, and the
        errors of `existing_target`."""
        yield Needs(keys=[self.key])
        policy = existing_policy(index, self.namespace, self.name)
        target = yield from existing_target(index, self.target)
        yield Needs(scans=[Scan(attached_to(target.entity))])
        return policy, target

    def changed(self, policy: PolicyEntry, target: Target, edits: Mapping[str, JsonObject | None]) -> Change:
        """Returns the change with these edits, which has an empty answer, and which the history describes by the policy
        and its target."""
        to: JsonObject = {"entity": target.entity, "namespace": [*target.namespace], "name": target.name}
        return Change(edits=edits, answer=Document(204), detail=self.detail(policy.entity, target=to))


class _Attach(_Mapping):
    kind = "attach-policy"

    def __init__(
        self, session: Session, namespace: Namespace, name: str, target: Securable, parameters: Mapping[str, str]
    ) -> None:
        super().__init__(session, namespace, name, target)
        self.parameters = parameters

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the attachment of the policy to the target, with the parameters in place of earlier ones. Raises
        `NoSuchPolicy`, the errors of `existing_target`, an error for a kind of target, parameters and a number of
        policies that are not allowed, and `ConflictPolicyAttachment` for a second policy of one inheritable type."""
        index = read_set.head.index
        policy, target = yield from self.found(index)
        if target.name is not None:
            relation = find_relation(index, target.namespace, target.name)
            check_target(policy.policy_type, "table" if relation is None else relation.kind)
        self._check_room(index, policy, target)
        edits = attachment_edits(policy, self.namespace, self.name, target, self.parameters)
        return self.changed(policy, target, (yield from keep_stored_fields(index, edits)))

    def _check_room(self, index: Index, policy: PolicyEntry, target: Target) -> None:
        """Raises `BadRequest` if the parameters of the attachment are too long, or the target has `MAX_ATTACHED` other
        policies; and `ConflictPolicyAttachment` if another one of the same inheritable type is attached to it."""
        size = sum(len(name.encode()) + len(value.encode()) for name, value in self.parameters.items())
        if size > MAX_PARAMETERS_BYTES:
            raise BadRequest(
                f"Invalid request.parameters: they are {size:,} bytes long, more than {MAX_PARAMETERS_BYTES:,}"
            )
        others = [other for entity, other in attachments(index, target.entity) if entity != policy.entity]
        if len(others) >= MAX_ATTACHED:
            raise BadRequest(
                f"{self.target} has {len(others):,} policies attached, and at most {MAX_ATTACHED:,} are allowed: "
                "detach one first"
            )
        for other in others if policy.inheritable else ():
            if other.policy_type == policy.policy_type:
                raise ConflictPolicyAttachment(
                    f"Policy {dotted(other.namespace, other.name)} of the type {policy.policy_type} is attached to "
                    f"{self.target} already, and only one of an inheritable type can be: detach it first"
                )


class _Detach(_Mapping):
    kind = "detach-policy"

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the removal of the policy's attachment to the target. Raises `NoSuchPolicy`, the errors of
        `existing_target`, and `NoSuchMapping` if the policy is not attached to it."""
        index = read_set.head.index
        policy, target = yield from self.found(index)
        if all(entity != policy.entity for entity, _ in attachments(index, target.entity)):
            raise NoSuchMapping(f"Policy {self.full_name} is not attached to {self.target}")
        return self.changed(policy, target, detachment_edits(policy.entity, target.entity))
