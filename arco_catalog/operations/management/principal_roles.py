"""Lists, drops, assigns and revokes the principal roles of a realm, and describes who makes a request. The realm's
registry has the roles, and which principal has which of them."""

from collections.abc import Mapping

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.management.entities import (
    EntityChange,
    described,
    found,
    grant_not_found,
    listing,
)
from arco_catalog.operations.management.principals import ROOT_PRINCIPAL, existing_principal, shown
from arco_catalog.operations.management.roles import RoleKind
from arco_catalog.planning.access import Identity
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.judgement import rotation_required, standing_of
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.rights import RealmAccess, no_such_principal
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.realm import (
    SERVICE_ADMIN,
    find_principal_role,
    members_of,
    membership_edits,
    names_under,
    principal_key,
    principal_role_key,
    principal_roles,
    roles_of,
)
from arco_catalog.state.roles import ROOT, RoleEntry, grant_key, granted_key
from arco_catalog.state.version_floors import raised_floor


def shown_role(role: RoleEntry) -> JsonObject:
    """Returns a principal role as answers show it."""
    return {**described(role), "federated": role.json.get("federated") is True}


PRINCIPAL_ROLE = RoleKind("principal role", principal_roles(), principal_role_key, shown_role)


async def roles_by_id(session: Session, names: Mapping[str, str]) -> JsonObject:
    """Returns the principal roles with these ids, in the form of the response, in order of names. `names` maps each id
    to the role's name. It does not have a dropped role, also if another role has its name now."""
    return await found(session, lambda index: _roles(index, names))


def _roles(index: Index, names: Mapping[str, str]) -> Steps[JsonObject]:
    """Returns the listing of the principal roles with these ids that still exist, in order of names. `names` maps each
    id to the role's name."""
    there = yield from _existing(index, names)
    return listing("roles", map(shown_role, there))


def _existing(index: Index, names: Mapping[str, str]) -> Steps[list[RoleEntry]]:
    """Returns the entries of the principal roles with these ids that still exist, in order of names. `names` maps each
    id to the role's name."""
    yield Needs(keys=[principal_role_key(name) for name in names.values()])
    there = (find_principal_role(index, name) for name in sorted(names.values()))
    return [role for role in there if role is not None and role.entity in names]


async def describe_caller(session: Session) -> JsonObject:
    """Returns the name of the principal that makes a request, None if rights are not checked, and the names of the
    principal roles that its token activates, sorted. Raises the errors of `Session.head`, and `Forbidden` for a
    principal that must rotate its credentials."""
    access = session.access.of_grants
    if not isinstance(access, RealmAccess):
        return {"principal": None, "principalRoles": []}
    identity = access.identity
    return await found(session, lambda index: _caller(index, identity))


def _caller(index: Index, identity: Identity) -> Steps[JsonObject]:
    """Returns the JSON of the caller's principal and the roles that its token activates. Raises `UnknownPrincipal` if
    `standing_of` returns None, as for an outdated token, and `Forbidden` for a principal that must rotate
    its credentials first."""
    standing = yield from standing_of(index, identity)
    if standing is None:
        raise no_such_principal()
    if standing.must_rotate:
        raise rotation_required(standing)
    assigned = names_under(index, roles_of(standing.id))
    roles = yield from _existing(index, {role: assigned[role] for role in standing.roles})
    return {"principal": standing.name, "principalRoles": [role.name for role in roles]}


async def roles_of_principal(session: Session, name: str) -> JsonObject:
    """Returns the principal roles that a principal has, as the answer that lists them. Raises `NotFound` for the
    principal."""

    def steps(index: Index) -> Steps[JsonObject]:
        yield Needs(keys=[principal_key(name)])
        roles = roles_of(existing_principal(index, name).entity)
        yield Needs(scans=[Scan(roles)])
        return (yield from _roles(index, names_under(index, roles)))

    return await found(session, steps)


async def principals_with_role(session: Session, name: str) -> JsonObject:
    """Returns the principals that have a principal role, as the answer that lists them. Raises `NotFound` for the
    role."""

    def steps(index: Index) -> Steps[JsonObject]:
        yield Needs(keys=[principal_role_key(name)])
        members = members_of(PRINCIPAL_ROLE.existing(index, name).entity)
        yield Needs(scans=[Scan(members)])
        names = sorted(names_under(index, members).values())
        yield Needs(keys=[principal_key(each) for each in names])
        return listing("principals", [shown(existing_principal(index, each)) for each in names])

    return await found(session, steps)


async def drop_principal_role(session: Session, name: str) -> None:
    """Drops a principal role with the grant on the realm that it may have, and takes it from all principals. Catalog
    roles that it has are left in the catalogs, under an id that no role has any more. Raises `NotFound`, and
    `BadRequest` for the role that manages the realm."""
    await run(session, _Drop(session, name))


async def assign_principal_role(session: Session, principal: str, role: str) -> None:
    """Gives a principal a principal role; if it has it already, the commit has only an entry for the history. Raises
    `NotFound` for either."""
    await run(session, _Assign(session, principal, role, member=True))


async def revoke_principal_role(session: Session, principal: str, role: str) -> None:
    """Takes a principal role from a principal. Raises `NotFound` for either, and `BadRequest` if the principal does not
    have the role, and for the role that manages the realm from the root principal."""
    await run(session, _Assign(session, principal, role, member=False))


class _Drop(EntityChange):
    kind = "drop-principal-role"

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, {"name": name})
        self.name = name

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the removal of the principal role with the grant on the realm and the memberships of principals; the
        version is kept, so that the next role of the name has a higher one. The body is None. Raises `NotFound`, and
        an error for the role that manages the realm."""
        yield Needs(keys=[principal_role_key(self.name)])
        role = PRINCIPAL_ROLE.existing(index, self.name)
        if self.name == SERVICE_ADMIN:
            raise BadRequest(f"The principal role {SERVICE_ADMIN} cannot be dropped: it manages the realm")
        yield Needs(keys=[grant_key(ROOT, role.entity)], scans=[Scan(members_of(role.entity))])
        edits: dict[str, JsonObject | None] = {
            principal_role_key(self.name): None,
            grant_key(ROOT, role.entity): None,
            granted_key(role.entity, ROOT): None,
        }
        edits |= yield from raised_floor(index, principal_role_key(self.name), role.version)
        for principal in names_under(index, members_of(role.entity)):
            edits[members_of(role.entity) + principal] = None
            edits[roles_of(principal) + role.entity] = None
        return edits, None


class _Assign(EntityChange):
    def __init__(self, session: Session, principal: str, role: str, member: bool) -> None:
        super().__init__(session, {"assignee": principal, "role": role})
        self.kind = "assign-principal-role" if member else "revoke-principal-role"
        self.status = 201 if member else 204
        self.principal, self.role, self.member = principal, role, member

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the membership of the principal in the principal role, also if there is one already, or, if not
        `member`, the removal of it. The body is None. Raises `NotFound` for either, and an error if there is none
        to remove, and for that of the root principal in the role that manages the realm."""
        yield Needs(keys=[principal_key(self.principal), principal_role_key(self.role)])
        principal, role = existing_principal(index, self.principal), PRINCIPAL_ROLE.existing(index, self.role)
        yield Needs(keys=[roles_of(principal.entity) + role.entity])
        if not self.member and (self.principal, self.role) == (ROOT_PRINCIPAL, SERVICE_ADMIN):
            raise BadRequest(f"{SERVICE_ADMIN} cannot be revoked from the root principal: it manages the realm")
        if not self.member and index.get(roles_of(principal.entity) + role.entity) is None:
            raise grant_not_found(f"Principal {self.principal} does not have the principal role {self.role}")
        return membership_edits(principal, role, self.member), None
