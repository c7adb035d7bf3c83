"""Creates, loads, changes and drops policies (docs/design/polaris.md#policies)."""

from arco_catalog.iceberg.errors import AlreadyExists, BadRequest, PolicyInUse, PolicyVersionMismatch
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.named_change import NamedChange
from arco_catalog.planning.answers import Answer, Document
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.descriptions import describe
from arco_catalog.planning.names import check_plain_name, existing_namespace, no_such
from arco_catalog.planning.policy_types import canonical_type, check_content, is_inheritable
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.lookup import load
from arco_catalog.protocol.mutation import NoOp
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.state.fields import mapping
from arco_catalog.state.index import Edits, Index, Namespace, namespace_key
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.policies import (
    FIRST_VERSION,
    PolicyEntry,
    detachment_edits,
    find_policy,
    policy_key,
    targets,
    targets_of,
)
from arco_catalog.state.roles import edits_without_grants, grants_on
from arco_catalog.state.version_floors import first_version, raised_floor
from storage_backends.lazy_dataclass import dataclass

MAX_CONTENT_BYTES = 64 << 10
"""Maximum size of a policy's content, and of its description."""


@dataclass(frozen=True, slots=True)
class PolicyText:
    """The fields of a policy that its users set and can change: the description and the content."""

    description: str | None
    content: str | None

    def check(self, policy_type: str) -> None:
        """Raises `BadRequest` if the description or content of a policy is too long, or if the type does not allow the
        content."""
        for field, value in (("description", self.description), ("content", self.content)):
            if value is not None and (size := len(value.encode())) > MAX_CONTENT_BYTES:
                raise BadRequest(
                    f"Invalid request.{field}: it is {size:,} bytes long, and at most {MAX_CONTENT_BYTES:,} are allowed"
                )
        check_content(policy_type, self.content)

    def described(self, name: str, policy_type: str, version: int) -> JsonObject:
        """Returns the JSON in answers of the policy with this name, type and version, without a description or content
        that is not set."""
        shown: JsonObject = {
            "policy-type": policy_type,
            "inheritable": is_inheritable(policy_type),
            "name": name,
            "version": version,
        }
        if self.description is not None:
            shown["description"] = self.description
        return shown if self.content is None else {**shown, "content": self.content}


async def create_policy(
    session: Session, namespace: Namespace, name: str, policy_type: str, text: PolicyText
) -> Answer:
    """Creates a policy, at version 0, or at a later version than a dropped policy of the same name, or of another name
    that has the same floor of versions (`floor_key`). Raises `NoSuchNamespace`, `AlreadyExists` if a policy has the
    name, and `BadRequest` for an invalid name or type, for a description or content that is too long, and for content
    that the type does not allow."""
    check_plain_name("policy", name)
    return await run(session, _Create(session, namespace, name, canonical_type(policy_type), text))


async def load_policy(session: Session, namespace: Namespace, name: str) -> JsonObject:
    """Returns the JSON of a policy. Raises `NoSuchPolicy`."""
    head = await session.head()
    await load(session.state, head.index, Needs(keys=[policy_key(namespace, name)]))
    return await described(session, existing_policy(head.index, namespace, name))


async def described(session: Session, policy: PolicyEntry) -> JsonObject:
    """Reads the stored document of the policy with this entry, and returns the JSON of it that answers show."""
    return mapping(await session.state.description("policy", policy.value), "policy")


async def update_policy(
    session: Session, namespace: Namespace, name: str, expected: int | None, text: PolicyText
) -> Answer:
    """Replaces the description and content of a policy, and increments its version unless both are unchanged. Raises
    `NoSuchPolicy`, `BadRequest` without an `expected` version and for a description or content that is too long or not
    allowed, and `PolicyVersionMismatch` unless the policy is at that version."""
    return await run(session, _Update(session, namespace, name, expected, text))


async def drop_policy(session: Session, namespace: Namespace, name: str, *, detach_all: bool) -> Answer:
    """Drops a policy for good, with the grants on it, and detaches it from all targets. Raises `NoSuchPolicy`, and
    without `detach_all` `PolicyInUse` if it is attached to something that exists."""
    return await run(session, _Drop(session, namespace, name, detach_all=detach_all))


def existing_policy(index: Index, namespace: Namespace, name: str) -> PolicyEntry:
    """Returns the entry of a policy; its key must be loaded. Raises `NoSuchPolicy`."""
    policy = find_policy(index, namespace, name)
    if policy is None:
        raise no_such("policy", namespace, name)
    return policy


class PolicyChange(NamedChange):
    """The base of changes of the registry that are about one policy: to create, change, drop, attach or detach it."""

    def __init__(self, session: Session, namespace: Namespace, name: str) -> None:
        super().__init__(session, namespace, name, policy_key)


class _Create(PolicyChange):
    kind = "create-policy"

    def __init__(self, session: Session, namespace: Namespace, name: str, policy_type: str, text: PolicyText) -> None:
        super().__init__(session, namespace, name)
        self.policy_type = policy_type
        self.text = text

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the creation of the policy, at version 0 or above that of a dropped policy of the name, or of another
        name that has the same floor of versions (`floor_key`), and the write of the text. Raises `NoSuchNamespace`,
        `AlreadyExists`, and an error for a description or content that is too long or not allowed."""
        index = read_set.head.index
        yield Needs(keys=[namespace_key(self.namespace), self.key])
        existing_namespace(index, self.namespace)
        if find_policy(index, self.namespace, self.name) is not None:
            raise AlreadyExists(f"Policy already exists: {self.full_name}")
        self.text.check(self.policy_type)
        version = yield from first_version(index, self.key, FIRST_VERSION)
        shown = self.text.described(self.name, self.policy_type, version)
        value, write = describe(self.context, attempt, "policy", self.namespace, self.name, shown)
        entry = PolicyEntry.new(
            entity=attempt.entity,
            policy_type=self.policy_type,
            inheritable=is_inheritable(self.policy_type),
            value=value.id,
            version=version,
        )
        return Change(
            edits={self.key: entry.json},
            answer=Document(200, {"policy": shown}, value),
            detail=self.detail(attempt.entity, type=self.policy_type),
            first=[write],
        )


class _Update(PolicyChange):
    kind = "update-policy"

    def __init__(
        self, session: Session, namespace: Namespace, name: str, expected: int | None, text: PolicyText
    ) -> None:
        super().__init__(session, namespace, name)
        self.expected = expected
        self.text = text
        self._known: dict[str, JsonObject] = {}
        """The stored description of the policy, by the value's id."""

    def needs_base(self, read_set: RegistryReadSet) -> bool:
        """Whether `load_base` must be called: the policy's entry is not loaded, or the text was not read yet. False if
        there is no such policy."""
        index = read_set.head.index
        if index.missing(Needs(keys=[self.key])):
            return True
        policy = find_policy(index, self.namespace, self.name)
        return policy is not None and policy.value not in self._known

    async def load_base(self, read_set: RegistryReadSet) -> None:
        """Loads the policy's entry, reads the text of it from the store, and keeps it for `change`; reads no text if
        there is no such policy."""
        index = read_set.head.index
        await load(self.state, index, Needs(keys=[self.key]))
        policy = find_policy(index, self.namespace, self.name)
        if policy is not None:
            self._known[policy.value] = await self.session.state.description("policy", policy.value)

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change | NoOp]:
        """Plans the replacement of the policy's text, with the next version; `NoOp` if the text does not differ.
        Raises `NoSuchPolicy`, an error without an expected version and for a text that is too long or not allowed,
        and `PolicyVersionMismatch` for another version."""
        yield Needs(keys=[self.key])
        policy = existing_policy(read_set.head.index, self.namespace, self.name)
        if self.expected is None:
            raise BadRequest("Invalid request: missing required field 'current-policy-version'")
        if self.expected != policy.version:
            raise PolicyVersionMismatch(
                f"Policy {self.full_name} is at version {policy.version}, not {self.expected}: load it and try again"
            )
        self.text.check(policy.policy_type)
        stored = self._known[policy.value]
        now = mapping(stored, "policy")
        if self.text.described(self.name, policy.policy_type, policy.version) == now:
            return NoOp(Document(200, {"policy": now}))
        shown = self.text.described(self.name, policy.policy_type, policy.version + 1)
        value, write = describe(self.context, attempt, "policy", self.namespace, self.name, shown, replaced=stored)
        return Change(
            edits={self.key: policy.with_value(value.id).json},
            answer=Document(200, {"policy": shown}, value),
            detail=self.detail(policy.entity),
            first=[write],
        )


class _Drop(PolicyChange):
    kind = "drop-policy"

    def __init__(self, session: Session, namespace: Namespace, name: str, *, detach_all: bool) -> None:
        super().__init__(session, namespace, name)
        self.detach_all = detach_all

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the drop of the policy with the grants on it and all attachments, and keeps the version, so that the
        next policy of the name has a higher one. Raises `NoSuchPolicy`, and without `detach_all` `PolicyInUse` if it is
        attached to something that exists."""
        index = read_set.head.index
        yield Needs(keys=[self.key])
        policy = existing_policy(index, self.namespace, self.name)
        yield Needs(scans=[Scan(targets_of(policy.entity))])
        attached = [*targets(index, policy.entity)]
        if not self.detach_all:
            yield Needs(keys=[target.key for target in attached if target.key is not None])
            if any(target.is_live(index) for target in attached):
                raise PolicyInUse(
                    f"Policy {self.full_name} was not dropped: it is attached to a catalog, namespace, table or view. "
                    "Detach it first, or drop it with detach-all=true"
                )
        edits: dict[str, JsonObject | None] = {self.key: None}
        edits |= yield from raised_floor(index, self.key, policy.version)
        for target in attached:
            edits.update(detachment_edits(policy.entity, target.entity))
        grants: Edits = {}
        if self.session.settings.has_grants:
            yield Needs(scans=[Scan(grants_on(policy.entity))])
            grants = edits_without_grants(index, policy.entity)
        detail = self.detail(policy.entity, detach_all=self.detach_all)
        return Change(edits={**edits, **grants}, answer=Document(204), detail=detail)
