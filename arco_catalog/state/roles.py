"""The entries of roles and grants in a registry's index (docs/design/access.md#records).

A catalog's registry has the catalog roles, their grants, and the principal roles that use them. One commit writes two
entries of each relation, one for each side. So a check of privileges reads only the entries of one securable and those
around it, and a list of a role's grants reads only the entries of the role.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Self

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.fields import integer, mapping, optional_text, text, texts
from arco_catalog.state.index import Edits, Index, Namespace, level
from storage_backends.lazy_dataclass import dataclass

CATALOG = "catalog"
"""The id of a catalog as a securable in its own registry. Other securables have their entity's id."""
ROOT = "root"
"""The id of a realm as a securable in its registry."""
FIRST_VERSION = 1
"""The version of a new entity, if no entity had the name before."""


def catalog_role_key(name: str) -> str:
    """Returns the index key of a catalog role's entry."""
    return catalog_roles() + name


def catalog_roles() -> str:
    """Returns the prefix of the index keys of all catalog roles."""
    return level("catalog-role", ())


def grant_key(securable: str, role: str) -> str:
    """Returns the index key of a role's grant on a securable, on the securable's side."""
    return grants_on(securable) + role


def grants_on(securable: str) -> str:
    """Returns the prefix of the index keys of all grants on a securable."""
    return level("grant", (securable,))


def granted_key(role: str, securable: str) -> str:
    """Returns the index key of a role's grant on a securable, on the role's side."""
    return granted_to(role) + securable


def granted_to(role: str) -> str:
    """Returns the prefix of the index keys of all grants of a role."""
    return level("granted", (role,))


def usage_key(principal_role: str, catalog_role: str) -> str:
    """Returns the index key of the relation that a principal role has a catalog role, on the principal role's side."""
    return used_by(principal_role) + catalog_role


def used_by(principal_role: str) -> str:
    """Returns the prefix of the index keys of the catalog roles that a principal role has."""
    return level("usage", (principal_role,))


def assignee_key(catalog_role: str, principal_role: str) -> str:
    """Returns the index key of the relation that a principal role has a catalog role, on the catalog role's side."""
    return assignees_of(catalog_role) + principal_role


def assignees_of(catalog_role: str) -> str:
    """Returns the prefix of the index keys of the principal roles that have a catalog role."""
    return level("assignee", (catalog_role,))


@dataclass(frozen=True, slots=True)
class DescribedEntry:
    """The base of the entries of principals, roles and catalogs: with an id, a name, properties, a version that counts
    changes, and the times of creation and last change in milliseconds."""

    json: JsonObject

    @classmethod
    def new(cls, *, entity: str, name: str, properties: Mapping[str, str], at_ms: int, **additional: JsonValue) -> Self:
        """Returns the entry of a new principal, role or catalog. `additional` has other fields of the entry, and the
        version if that is not to be `FIRST_VERSION`."""
        return cls(
            {
                "entity": entity,
                "name": name,
                "properties": {**properties},
                "version": FIRST_VERSION,
                "created_ms": at_ms,
                "updated_ms": at_ms,
                **additional,
            }
        )

    def updated(self, at_ms: int, **changed: JsonValue) -> Self:
        """Returns the entry of a principal, role or catalog with `changed` fields, the time of the change, and the next
        version unless `changed` gives another."""
        return type(self)({**self.json, "version": self.version + 1, **changed, "updated_ms": at_ms})

    @property
    def entity(self) -> str:
        """The entity id of the principal, role or catalog. Raises `InternalError` if the entry has none."""
        return text(self.json, "entity")

    @property
    def name(self) -> str:
        """The name of the principal, role or catalog. Raises `InternalError` if the entry has none."""
        return text(self.json, "name")

    @property
    def properties(self) -> JsonObject:
        """The properties of the principal, role or catalog; empty if the entry has none."""
        return mapping(self.json, "properties")

    @property
    def version(self) -> int:
        """The version, which every change of the principal, role or catalog increments. Raises `InternalError` if the
        entry has none."""
        return integer(self.json, "version")

    @property
    def created_ms(self) -> int:
        """The time of the creation in milliseconds since 1970. Raises `InternalError` if the entry has none."""
        return integer(self.json, "created_ms")

    @property
    def updated_ms(self) -> int:
        """The time of the last change, at first that of the creation, in milliseconds since 1970. Raises
        `InternalError` if the entry has none, even if it has the time of the creation."""
        return integer(self.json, "updated_ms")


class RoleEntry(DescribedEntry):
    """The entry of a catalog role in the catalog's registry, or of a principal role in the realm's."""


@dataclass(frozen=True, slots=True)
class GrantEntry:
    """The entry of a grant on the side of the role: the privileges of one role on one securable, and the name that the
    securable had at the grant or its last rename."""

    json: JsonObject

    @classmethod
    def new(
        cls, *, securable: str, kind: str, namespace: Namespace, name: str | None, privileges: Iterable[str]
    ) -> Self:
        """Returns the entry of a new grant. `kind` is the type of the securable, whose `name` is None if it is a
        namespace, a catalog or a realm."""
        return cls(
            {
                "securable": securable,
                "type": kind,
                "namespace": [*namespace],
                "name": name,
                "privileges": [*sorted(set(privileges))],
            }
        )

    @property
    def securable(self) -> str:
        """The id of the securable: the entity id, or a fixed one for the catalog or the realm itself. Raises
        `InternalError` if the entry has none."""
        return text(self.json, "securable")

    @property
    def kind(self) -> str:
        """The type of the securable, such as `table`, `catalog` or, for the realm, `root`. Raises `InternalError` if
        the entry has none."""
        return text(self.json, "type")

    @property
    def namespace(self) -> Namespace:
        """The namespace in which the securable is, or which it is; empty for a catalog or the realm."""
        return texts(self.json, "namespace")

    @property
    def name(self) -> str | None:
        """The securable's name in the namespace; None for a namespace, a catalog or the realm."""
        return optional_text(self.json, "name")

    @property
    def privileges(self) -> tuple[str, ...]:
        """The names of the granted privileges, sorted; empty if the entry has none."""
        return texts(self.json, "privileges")

    def with_privileges(self, privileges: Iterable[str]) -> "GrantEntry":
        """Returns the grant with these privileges in place of its own."""
        return GrantEntry({**self.json, "privileges": [*sorted(set(privileges))]})

    def renamed(self, namespace: Namespace, name: str) -> "GrantEntry":
        """Returns the grant with the new name of its securable."""
        return GrantEntry({**self.json, "namespace": [*namespace], "name": name})


def grant_edits(role: str, grant: GrantEntry) -> Edits:
    """Returns the index changes that replace a role's grant on a securable, in both of its entries; a grant without
    privileges removes them."""
    if not grant.privileges:
        return {grant_key(grant.securable, role): None, granted_key(role, grant.securable): None}
    return {
        grant_key(grant.securable, role): {"privileges": [*grant.privileges]},
        granted_key(role, grant.securable): grant.json,
    }


def usage_edits(principal_role: RoleEntry, catalog_role: RoleEntry, used: bool = True) -> Edits:
    """Returns the index changes that give a principal role a catalog role; without `used` those that take it away."""
    of, to = (
        usage_key(principal_role.entity, catalog_role.entity),
        assignee_key(catalog_role.entity, principal_role.entity),
    )
    if not used:
        return {of: None, to: None}
    return {of: {"name": catalog_role.name}, to: {"name": principal_role.name}}


def ids_under(index: Index, prefix: str) -> Iterator[str]:
    """Iterates over the ids at the ends of all keys under a prefix."""
    for key, _ in index.scan(prefix):
        yield key[len(prefix) :]


def privileges_held(index: Index, securable: str, roles: Iterable[str]) -> Iterator[str]:
    """Iterates over the privileges that these roles have on a securable itself, not on one around it; one may appear
    more than once. The keys of their grants must be loaded."""
    for role in roles:
        entry = index.get(grant_key(securable, role))
        if entry is not None:
            yield from texts(entry, "privileges")


def edits_without_grants(index: Index, securable: str) -> Edits:
    """Returns the index changes that remove all grants on a securable. The scan of `grants_on` must be loaded."""
    edits: dict[str, JsonObject | None] = {}
    for role in ids_under(index, grants_on(securable)):
        edits[grant_key(securable, role)] = None
        edits[granted_key(role, securable)] = None
    return edits


def renamed_grants(index: Index, securable: str, roles: Iterable[str], namespace: Namespace, name: str) -> Edits:
    """Returns the index changes that write a securable's new name into the grants of these roles. Their keys must be
    loaded."""
    stored = {key: index.get(key) for key in (granted_key(role, securable) for role in roles)}
    return {key: GrantEntry(entry).renamed(namespace, name).json for key, entry in stored.items() if entry is not None}
