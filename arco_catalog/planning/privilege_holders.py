"""Which principal roles hold privileges on a securable, and by which grants (docs/design/access.md#who-has-access).
Rights are judged elsewhere, by `judgement.held_among`, as if a principal had one role alone."""

from collections.abc import Mapping, Sequence

from arco_catalog.planning.access import Securable, Standing
from arco_catalog.planning.held_grants import HeldGrants
from arco_catalog.planning.judgement import held_among
from arco_catalog.planning.privilege_check import GrantPath, path_in_catalog
from arco_catalog.planning.privileges import Privilege
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.realm import names_under
from arco_catalog.state.roles import assignees_of, grants_on, ids_under

P = Privilege

USUAL: Mapping[str, Sequence[Privilege]] = {
    "namespace": (
        *(P.NAMESPACE_LIST, P.NAMESPACE_READ_PROPERTIES, P.NAMESPACE_WRITE_PROPERTIES),
        *(P.NAMESPACE_CREATE, P.NAMESPACE_DROP),
        *(P.TABLE_LIST, P.TABLE_READ_DATA, P.TABLE_WRITE_DATA, P.TABLE_CREATE, P.TABLE_DROP),
        *(P.VIEW_CREATE, P.CATALOG_MANAGE_ACCESS),
    ),
    "table": (
        *(P.TABLE_LIST, P.TABLE_READ_PROPERTIES, P.TABLE_READ_DATA, P.TABLE_WRITE_DATA),
        *(P.TABLE_WRITE_PROPERTIES, P.TABLE_DROP, P.CATALOG_MANAGE_ACCESS),
    ),
    "view": (
        *(P.VIEW_LIST, P.VIEW_READ_PROPERTIES, P.VIEW_WRITE_PROPERTIES, P.VIEW_DROP),
        P.CATALOG_MANAGE_ACCESS,
    ),
}
"""The privileges on each type of securable that a list of its holders has unless one is selected. No grant on the realm
implies any of them."""


def principal_roles_on(index: Index, chain: Sequence[str]) -> Steps[Mapping[str, str]]:
    """Returns the names of the principal roles that have a catalog role with a grant on one of these securables, by
    their ids, from the index of the catalog's registry. A role may have been dropped from the realm since."""
    yield Needs(scans=[Scan(grants_on(securable)) for securable in chain])
    catalog_roles = sorted({role for securable in chain for role in ids_under(index, grants_on(securable))})
    yield Needs(scans=[Scan(assignees_of(role)) for role in catalog_roles])
    assigned = [names_under(index, assignees_of(role)) for role in catalog_roles]
    return {entity: name for names in assigned for entity, name in names.items()}


def paths_of(
    index: Index, role: str, privileges: Sequence[Privilege], on: Securable, *, runs_pipeline: bool
) -> Steps[Sequence[tuple[Privilege, GrantPath]]]:
    """Returns those of these privileges on a securable that a principal with the principal role with the id `role` has
    by this role, in the given order, each with the outermost grant. `runs_pipeline`: it may use them in the pipeline's
    own namespace."""
    standing = Standing("", "", (role,), frozenset(), runs_pipeline=runs_pipeline)
    grants = HeldGrants(index, standing.roles)
    held = yield from held_among(index, standing, privileges, on, grants)
    found: list[tuple[Privilege, GrantPath]] = []
    for privilege in privileges:
        path = (yield from path_in_catalog(index, standing, privilege, on, grants)) if privilege in held else None
        if path is not None:
            found.append((privilege, path))
    return found
