"""Lists, drops, assigns and revokes catalog roles. The registry of each catalog has the roles of that catalog, and
which principal role has which of them."""

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
from arco_catalog.operations.management.roles import RoleKind
from arco_catalog.planning.attempt import Attempt
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.realm import CATALOG_ADMIN, names_under
from arco_catalog.state.roles import (
    RoleEntry,
    assignee_key,
    assignees_of,
    catalog_role_key,
    catalog_roles,
    grant_key,
    granted_key,
    granted_to,
    ids_under,
    usage_edits,
    usage_key,
    used_by,
)
from arco_catalog.state.version_floors import raised_floor

CATALOG_ROLE = RoleKind("catalog role", catalog_roles(), catalog_role_key, described)


async def catalog_roles_used_by(session: Session, principal_role: RoleEntry) -> JsonObject:
    """Returns the catalog roles that a principal role has in the session's catalog, as the answer that lists them."""

    def steps(index: Index) -> Steps[JsonObject]:
        yield Needs(scans=[Scan(used_by(principal_role.entity))])
        names = sorted(names_under(index, used_by(principal_role.entity)).values())
        yield Needs(keys=[catalog_role_key(name) for name in names])
        return listing("roles", [described(CATALOG_ROLE.existing(index, name)) for name in names])

    return await found(session, steps)


async def principal_roles_using(session: Session, name: str) -> Mapping[str, str]:
    """Returns the names of the principal roles that have a catalog role, by their ids, also of roles that were dropped
    from the realm since. Raises `NotFound` for the catalog role."""

    def steps(index: Index) -> Steps[Mapping[str, str]]:
        yield Needs(keys=[catalog_role_key(name)])
        assignees = assignees_of(CATALOG_ROLE.existing(index, name).entity)
        yield Needs(scans=[Scan(assignees)])
        return names_under(index, assignees)

    return await found(session, steps)


async def drop_catalog_role(session: Session, name: str) -> None:
    """Drops a catalog role with its grants, and takes it from all principal roles. Raises `NotFound`, and `BadRequest`
    for the role that manages the catalog."""
    await run(session, _Drop(session, name))


async def assign_catalog_role(session: Session, principal_role: RoleEntry, name: str) -> None:
    """Gives a principal role a catalog role; if it has it already, the commit has only an entry for the history. Raises
    `NotFound` if there is no such catalog role."""
    await run(session, _Assign(session, principal_role, name, used=True))


async def revoke_catalog_role(session: Session, principal_role: RoleEntry, name: str) -> None:
    """Takes a catalog role from a principal role. Raises `NotFound` if there is no such catalog role, and `BadRequest`
    if the principal role does not have it."""
    await run(session, _Assign(session, principal_role, name, used=False))


class _Drop(EntityChange):
    kind = "drop-catalog-role"

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, {"name": name})
        self.name = name

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the removal of the catalog role with the grants of it and the assignments to principal roles; the
        version is kept, so that the next role of the name has a higher one. The body is None. Raises `NotFound`, and
        an error for the role that manages the catalog."""
        yield Needs(keys=[catalog_role_key(self.name)])
        role = CATALOG_ROLE.existing(index, self.name)
        if self.name == CATALOG_ADMIN:
            raise BadRequest(f"The catalog role {CATALOG_ADMIN} cannot be dropped: it manages the catalog")
        yield Needs(scans=[Scan(assignees_of(role.entity)), Scan(granted_to(role.entity))])
        edits: dict[str, JsonObject | None] = {catalog_role_key(self.name): None}
        edits |= yield from raised_floor(index, catalog_role_key(self.name), role.version)
        for principal_role in ids_under(index, assignees_of(role.entity)):
            edits[assignee_key(role.entity, principal_role)] = None
            edits[usage_key(principal_role, role.entity)] = None
        for securable in ids_under(index, granted_to(role.entity)):
            edits[granted_key(role.entity, securable)] = None
            edits[grant_key(securable, role.entity)] = None
        return edits, None


class _Assign(EntityChange):
    def __init__(self, session: Session, principal_role: RoleEntry, name: str, used: bool) -> None:
        super().__init__(session, {"principal_role": principal_role.name, "role": name})
        self.kind = "assign-catalog-role" if used else "revoke-catalog-role"
        self.status = 201 if used else 204
        self.principal_role, self.name, self.used = principal_role, name, used

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the assignment of the catalog role to the principal role, also if there is one already, or, if not
        `used`, the removal of it. The body is None. Raises `NotFound` for the catalog role, and an error if there
        is none to remove."""
        yield Needs(keys=[catalog_role_key(self.name)])
        role = CATALOG_ROLE.existing(index, self.name)
        yield Needs(keys=[usage_key(self.principal_role.entity, role.entity)])
        if not self.used and index.get(usage_key(self.principal_role.entity, role.entity)) is None:
            raise grant_not_found(
                f"Nothing was revoked: principal role {self.principal_role.name} does not have the catalog role "
                f"{self.name}"
            )
        return usage_edits(self.principal_role, role, self.used), None
