"""Answers which privileges principals have in a catalog, by the function that judges requests, and explains each
outcome (docs/design/access.md#checks)."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.management.grants import shown_grant
from arco_catalog.operations.realms import Realm
from arco_catalog.planning.access import Identity, Requirement, Securable, Standing
from arco_catalog.planning.held_grants import HeldGrants
from arco_catalog.planning.judgement import describe_lack, holds, reserved, rotation_required
from arco_catalog.planning.policy_questions import Actor
from arco_catalog.planning.privilege_check import Check, GrantPath, path_in_catalog, path_in_realm
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out, load
from arco_catalog.protocol.policy import PolicyAccess
from arco_catalog.protocol.rights import CatalogAccess
from arco_catalog.state.access import State
from arco_catalog.state.needs import Needs
from arco_catalog.state.realm import find_principal, principal_key
from arco_catalog.state.registry import RegistryState
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Subject:
    """The principal of checks: its name, its standing in the realm, its grants in the catalog, and what was found of
    its grants on the realm itself, by their privileges."""

    name: str
    standing: Standing
    grants: HeldGrants
    in_realm: dict[Privilege, GrantPath | None] = field(default_factory=dict)


async def check_rights(session: Session, realm: Realm, batch: Sequence[Check]) -> JsonObject:
    """Returns the outcome of each check, in order, as the answer that lists them: all by one HEAD of the catalog and
    one of the realm. A principal that does not exist gets the outcome of one without privileges. If the server has a
    policy, a check is allowed only if the policy allows it, too. Raises the errors of `Session.head` and of the policy,
    and `StoreUnavailable` if the deadline passes."""
    head, registry = await session.head(), realm.lookups()
    state = _Batch(session, head, realm, registry, await realm_head(session, registry))
    subjects = await state.subjects({check.principal for check in batch})
    results: list[JsonValue] = []
    for check in batch:
        session.check_deadline()
        await asyncio.sleep(0)  # noqa: TID251 - no time passes: a batch may be large
        results.append(await state.result(subjects[check.principal], check))
    if isinstance(session.access, PolicyAccess):
        results = await state.with_consent(session.access, subjects, batch, results)
    return {"results": results}


async def realm_head(session: Session, registry: State) -> RegistryState:
    """Returns the HEAD of the realm with the records in `registry`, to be called after `Session.head`: the cached one
    if rights are by grants, since `Session.head` has just read it, else as read from the store."""
    cached = registry.cached_head() if session.access.checks_grants else None
    return cached or await registry.head()


@dataclass(frozen=True, slots=True)
class _Batch:
    """The state by which one batch is answered: a HEAD of the catalog and one of the realm, which is in `registry`."""

    session: Session
    head: RegistryState
    realm: Realm
    registry: State
    realm_head: RegistryState

    async def subjects(self, principals: Collection[str | None]) -> Mapping[str | None, _Subject | None]:
        """Returns the subjects by the names of their principals, that of the caller under None. None for a principal
        that does not exist, and for a caller without access control."""
        own = self.session.access.of_grants
        caller = self._subject_of(own.standing) if isinstance(own, CatalogAccess) else None
        names = sorted(name for name in principals if name is not None)
        await load(self.registry, self.realm_head.index, Needs(keys=[*map(principal_key, names)]))
        return {None: caller, **{name: await self._subject(name) for name in names}}

    async def _subject(self, name: str) -> _Subject | None:
        """Returns the principal of this name, and the roles and grants that it has; None if it does not exist, or if
        the session's catalog belongs to no realm. The name's key must be loaded."""
        principal, entry = find_principal(self.realm_head.index, name), self.session.catalog.entry
        if principal is None or entry is None:
            return None
        identity, warehouse = Identity(principal.entity), self.session.settings.warehouse
        access = CatalogAccess(self.registry, self.realm.judgements, warehouse, entry, identity, ())
        await access.read_at(self.realm_head)
        return self._subject_of(access.standing)

    def _subject_of(self, standing: Standing | None) -> _Subject | None:
        """Returns the subject of checks for the principal with this standing in the realm, and with the grants that its
        roles have in the catalog; None without a standing."""
        if standing is None:
            return None
        return _Subject(standing.name, standing, HeldGrants(self.head.index, standing.roles))

    async def result(self, subject: _Subject | None, check: Check) -> JsonObject:
        """Returns the outcome of one check by the grants of a subject, as answers show it: with the grant that allows
        it, or the reason why it is not allowed. `subject` is None for a principal that does not exist, which has no
        privileges, and for a caller without checks of rights, who has all."""
        if subject is None:
            return _without_subject(check)
        shown: JsonObject = {"allowed": False, "principal": subject.name}
        index, required = self.head.index, Requirement(check.privilege, check.on)
        judged = holds(index, self.session.settings.warehouse, subject.standing, required, subject.grants)
        allowed = await carry_out(self.session.state, index, judged)
        path = await self._path(subject, check)
        if not allowed:
            return {**shown, "reason": _why_not(subject.standing, required, path)}
        return {**shown, "allowed": True, **_shown_path(path, check)}

    async def with_consent(
        self,
        access: PolicyAccess,
        subjects: Mapping[str | None, _Subject | None],
        batch: Sequence[Check],
        results: Sequence[JsonValue],
    ) -> list[JsonValue]:
        """Returns a copy of these results of a batch, in which a check that grants allow and the server's policy does
        not is not allowed. Queries the policy once for every principal that grants allow something."""
        decided = [*results]
        allowed: dict[str | None, list[int]] = {}
        for place, check in enumerate(batch):
            if _is_allowed(results[place]):
                allowed.setdefault(check.principal, []).append(place)
        for principal, places in allowed.items():
            subject, actor = subjects[principal], access.actor
            if principal is not None and subject is not None:
                actor = Actor(subject.name, subject.standing.id, subject.standing.role_names, actor.realm)
            required = [Requirement(batch[place].privilege, batch[place].on) for place in places]
            consents = await access.consents(self.session.state, self.head, required, actor)
            for place, consent in zip(places, consents, strict=True):
                if not consent:
                    check = batch[place]
                    reason = f"The policy does not allow principal {actor.principal} {check.privilege} on {check.on}"
                    decided[place] = {"allowed": False, "principal": actor.principal, "reason": reason}
        return decided

    async def _path(self, subject: _Subject, check: Check) -> GrantPath | None:
        """Returns the roles and the grant by which a subject has the privilege of a check; None if it has not. A
        privilege on the realm itself is searched once for a subject, whatever securable the check names."""
        standing, privilege, index = subject.standing, check.privilege, self.head.index
        if privilege not in standing.service:
            found = path_in_catalog(index, standing, privilege, check.on, subject.grants)
            return await carry_out(self.session.state, index, found)
        if privilege not in subject.in_realm:
            index = self.realm_head.index
            path = await carry_out(self.registry, index, path_in_realm(index, standing, privilege))
            subject.in_realm[privilege] = path
        return subject.in_realm[privilege]


def _is_allowed(result: JsonValue) -> bool:
    """Whether the result of a check has `allowed: true`; False for a value of any other form."""
    return isinstance(result, dict) and result.get("allowed") is True


def _without_subject(check: Check) -> JsonObject:
    """Returns the outcome for a principal that does not exist, as for one without privileges, or for a caller
    without access control."""
    if check.principal is None:
        return {"allowed": True, "principal": None, "reason": "The rights of this caller are not checked"}
    reason = describe_lack(check.principal, check.privilege, check.on)
    return {"allowed": False, "principal": check.principal, "reason": reason}


def _why_not(standing: Standing, required: Requirement, path: GrantPath | None) -> str:
    """Returns the reason why a check is not allowed: with a grant by `path`, that the principal must rotate its
    credentials, or that the privilege is reserved for the pipeline; otherwise that it does not have the privilege."""
    if path is not None and standing.must_rotate:
        return rotation_required(standing).message
    if path is not None and required.reserved:
        return reserved(standing).message
    return describe_lack(standing.name, required.privilege, required.on)


def _shown_path(path: GrantPath | None, check: Check) -> JsonObject:
    """Returns the fields that show by which principal role, catalog role (unless the grant is on the realm) and grant a
    check is allowed; no fields without a path."""
    if path is None:
        return {}
    if path.on is None:
        return {"principalRole": path.principal_role, "grant": grant_of(path, check.kind, check.on)}
    return {
        "principalRole": path.principal_role,
        "catalogRole": path.catalog_role,
        "grant": grant_of(path, check.kind, check.on),
    }


def grant_of(path: GrantPath, kind: str, on: Securable) -> JsonObject:
    """Returns the grant by which a principal has a privilege on `on`, a securable of this kind, as answers show it."""
    if path.on is None:
        return {"type": "realm", "privilege": path.granted}
    granted_on = kind if path.on == on else "namespace" if path.on.namespace else "catalog"
    return shown_grant(granted_on, path.on.namespace, path.on.name, path.granted)
