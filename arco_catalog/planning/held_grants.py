"""The grants by which one principal is judged in a catalog: those of its catalog roles, each read once for all
requirements that share a `HeldGrants`."""

from collections.abc import Iterator, Sequence

from arco_catalog.state.index import Index
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.roles import grant_key, granted_to, ids_under, privileges_held, used_by

RoleGrant = tuple[str, Sequence[str]]
"""The id of a catalog role, and the names of the privileges that it was granted on a securable."""


def catalog_roles_of(index: Index, principal_roles: Sequence[str]) -> Steps[Sequence[str]]:
    """Returns the ids of the catalog roles that these principal roles have, sorted."""
    yield Needs(scans=[Scan(used_by(role)) for role in principal_roles])
    return sorted({role for principal_role in principal_roles for role in ids_under(index, used_by(principal_role))})


class HeldGrants:
    """The grants of the catalog roles that a principal's active roles have, by one HEAD of the catalog's registry. It
    keeps what it has read, so it is valid for that HEAD alone."""

    def __init__(self, index: Index, principal_roles: Sequence[str]) -> None:
        self._index = index
        self._principal_roles = principal_roles
        self._roles: Sequence[str] | None = None
        self._granted: dict[str, Sequence[RoleGrant]] = {}
        self._has_any: bool | None = None

    def roles(self) -> Steps[Sequence[str]]:
        """Returns the ids of the catalog roles, sorted, which the first call reads."""
        if self._roles is None:
            self._roles = yield from catalog_roles_of(self._index, self._principal_roles)
        return self._roles

    def on(self, chain: Sequence[str]) -> Steps[Sequence[Sequence[RoleGrant]]]:
        """Returns for each securable of a chain the grants on it, in the order of the roles, grants without privileges
        left out. Grants that an earlier call has read are not read again."""
        roles = yield from self.roles()
        new = [securable for securable in chain if securable not in self._granted]
        yield Needs(keys=[grant_key(securable, role) for securable in new for role in roles])
        for securable in new:
            self._granted[securable] = [*self._grants_on(securable, roles)]
        return [self._granted[securable] for securable in chain]

    def _grants_on(self, securable: str, roles: Sequence[str]) -> Iterator[RoleGrant]:
        """Yields the ones of the roles that have privileges on a securable, with these."""
        for role in roles:
            names = [*privileges_held(self._index, securable, [role])]
            if names:
                yield role, names

    def has_any(self) -> Steps[bool]:
        """Whether the roles have any grant in the catalog."""
        if self._has_any is None:
            self._has_any = yield from self._find_any()
        return self._has_any

    def _find_any(self) -> Steps[bool]:
        """Returns whether any of the roles has a grant in the catalog."""
        for role in (yield from self.roles()):  # role by role, because usually the first one has a grant
            yield Needs(scans=[Scan(granted_to(role), until=lambda entry: True)])
            if self._index.any_in(granted_to(role)):
                return True
        return False


def names_of(grants: Sequence[Sequence[RoleGrant]]) -> Iterator[str]:
    """Iterates over the names of the privileges in grants on the securables of a chain; one may appear more than
    once."""
    return (name for on_one in grants for _, names in on_one for name in names)
