"""The check of a privilege, and the grant that explains its outcome (docs/design/access.md#checks). Rights are judged
elsewhere, by `judgement.judge`."""

from collections.abc import Iterable

from arco_catalog.planning.access import Securable, Standing
from arco_catalog.planning.held_grants import HeldGrants
from arco_catalog.planning.judgement import allowed_by
from arco_catalog.planning.privileges import Privilege
from arco_catalog.planning.securables import find_chain
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.realm import name_under, names_under, roles_of
from arco_catalog.state.roles import ROOT, assignee_key, grant_key, privileges_held, usage_key
from storage_backends.lazy_dataclass import dataclass

MAX_CHECKS = 1_000
"""Maximum number of checks in one request."""


@dataclass(frozen=True, slots=True)
class Check:
    """The question whether a principal has a privilege on a securable, whose type is `kind` in the terms of the API.
    `principal` is a name, None for the caller."""

    privilege: Privilege
    kind: str
    on: Securable
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class GrantPath:
    """The grant of a privilege on a securable, and the roles by which a principal has it. `granted` is the privilege of
    the grant, which is or implies the one that was checked. `catalog_role` and `on` are None if it is a grant on the
    realm itself, which a principal role has without a catalog role."""

    principal_role: str
    catalog_role: str | None
    granted: str
    on: Securable | None


def path_in_catalog(
    index: Index, standing: Standing, privilege: Privilege, on: Securable, grants: HeldGrants
) -> Steps[GrantPath | None]:
    """Returns the outermost grant by which a principal has a privilege on a securable, from the index of the catalog's
    registry, by which `grants` are the principal's; None if there is none. For a securable that does not exist, the
    grants on those that would contain it count, as `judge` counts them."""
    chain, _ = yield from find_chain(index, on)
    for depth, of_roles in enumerate((yield from grants.on(chain))):
        for role, names in of_roles:
            granted = _implying(names, privilege)
            if granted is not None:
                principal_role, name = yield from _role_names(index, standing, role)
                return GrantPath(principal_role, name, granted, _container(on, depth))
    return None


def path_in_realm(index: Index, standing: Standing, privilege: Privilege) -> Steps[GrantPath | None]:
    """Returns a grant on the realm itself by which a principal has a privilege, from the index of the realm's registry;
    None if there is none."""
    yield Needs(keys=[grant_key(ROOT, role) for role in standing.roles], scans=[Scan(roles_of(standing.id))])
    names = names_under(index, roles_of(standing.id))
    for role in standing.roles:
        granted = _implying(privileges_held(index, ROOT, [role]), privilege)
        if granted is not None and role in names:
            return GrantPath(names[role], None, granted, None)
    return None


def _implying(granted: Iterable[str], privilege: Privilege) -> str | None:
    """Returns the first of these privileges that is or implies `privilege`; None if there is none."""
    return next((name for name in granted if privilege in allowed_by([name])), None)


def _role_names(index: Index, standing: Standing, role: str) -> Steps[tuple[str, str]]:
    """Returns the names of a principal role of the principal that has the catalog role with the id `role`, and of this
    catalog role; the id of the principal role if no name of it is found. `catalog_roles_of` has loaded which principal
    roles have it."""
    used = {each: name_under(index, usage_key(each, role)) for each in standing.roles}
    principal_role, name = next((each, name) for each, name in used.items() if name is not None)
    yield Needs(keys=[assignee_key(role, principal_role)])
    return name_under(index, assignee_key(role, principal_role)) or principal_role, name


def _container(on: Securable, depth: int) -> Securable:
    """Returns the securable at a depth of the chain of `on`: the catalog, then the namespaces, then `on` itself."""
    return on if depth > len(on.namespace) else Securable(on.namespace[:depth])
