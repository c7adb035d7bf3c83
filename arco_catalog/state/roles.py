"""What a registry's index holds of roles and grants (docs/design/access.md#records).

A catalog's registry has its catalog roles, their grants, and which principal role has which of them. Each relation is
kept twice, once from each side, by the same commit: a check of privileges looks only at the chain of one object, and
the grants of one role are listed without looking at any object.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.fields import integer, mapping, optional_text, text, texts
from arco_catalog.state.index import Edits, Index, Namespace, level

CATALOG = "catalog"
"""The securable that a catalog is in its own registry; others have their entity's id."""
ROOT = "root"
"""The securable that a realm is in its registry."""
FIRST_VERSION = 1
"""The version of an entity whose name none had before."""


def catalog_role_key(name: str) -> str:
    """Key of a catalog role."""
    return catalog_roles() + name


def catalog_roles() -> str:
    """Prefix of the keys of all catalog roles."""
    return level("catalog-role", ())


def grant_key(securable: str, role: str) -> str:
    """Key of what a role holds on a securable."""
    return grants_on(securable) + role


def grants_on(securable: str) -> str:
    """Prefix of the keys of all grants on a securable."""
    return level("grant", (securable,))


def granted_key(role: str, securable: str) -> str:
    """Key of the same grant, from the role's side."""
    return granted_to(role) + securable


def granted_to(role: str) -> str:
    """Prefix of the keys of all grants of a role."""
    return level("granted", (role,))


def usage_key(principal_role: str, catalog_role: str) -> str:
    """Key of the fact that a principal role has a catalog role."""
    return used_by(principal_role) + catalog_role


def used_by(principal_role: str) -> str:
    """Prefix of the keys of the catalog roles that a principal role has."""
    return level("usage", (principal_role,))


def assignee_key(catalog_role: str, principal_role: str) -> str:
    """Key of the same fact, from the catalog role's side."""
    return assignees_of(catalog_role) + principal_role


def assignees_of(catalog_role: str) -> str:
    """Prefix of the keys of the principal roles that have a catalog role."""
    return level("assignee", (catalog_role,))


@dataclass(frozen=True, slots=True)
class Described:
    """An entry with an id, properties, a version, and its times in milliseconds: principals, roles and catalogs."""

    json: JsonObject

    @classmethod
    def new(cls, *, entity: str, name: str, properties: Mapping[str, str], at_ms: int, **additional: JsonValue) -> Self:
        """An entry to store."""
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
        """The entry after a change, which is its next version unless another is given."""
        return type(self)({**self.json, "version": self.version + 1, **changed, "updated_ms": at_ms})

    @property
    def entity(self) -> str:
        return text(self.json, "entity")

    @property
    def name(self) -> str:
        return text(self.json, "name")

    @property
    def properties(self) -> JsonObject:
        return mapping(self.json, "properties")

    @property
    def version(self) -> int:
        return integer(self.json, "version")

    @property
    def created_ms(self) -> int:
        return integer(self.json, "created_ms")

    @property
    def updated_ms(self) -> int:
        return integer(self.json, "updated_ms")


class RoleEntry(Described):
    """A catalog role in its catalog's registry, or a principal role in its realm's."""


@dataclass(frozen=True, slots=True)
class GrantEntry:
    """What one role holds on one securable, as the role's side has it: with the name that the securable had when it was
    granted or last renamed."""

    json: JsonObject

    @classmethod
    def new(
        cls, *, securable: str, kind: str, namespace: Namespace, name: str | None, privileges: Iterable[str]
    ) -> Self:
        """An entry to store."""
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
        return text(self.json, "securable")

    @property
    def kind(self) -> str:
        return text(self.json, "type")

    @property
    def namespace(self) -> Namespace:
        return texts(self.json, "namespace")

    @property
    def name(self) -> str | None:
        return optional_text(self.json, "name")

    @property
    def privileges(self) -> tuple[str, ...]:
        return texts(self.json, "privileges")

    def with_privileges(self, privileges: Iterable[str]) -> "GrantEntry":
        """The same grant of other privileges."""
        return GrantEntry({**self.json, "privileges": [*sorted(set(privileges))]})

    def renamed(self, namespace: Namespace, name: str) -> "GrantEntry":
        """The same grant, now that its securable has this name."""
        return GrantEntry({**self.json, "namespace": [*namespace], "name": name})


def grant_edits(role: str, grant: GrantEntry) -> Edits:
    """Edits that make this all that a role holds on a securable; no privileges end it."""
    if not grant.privileges:
        return {grant_key(grant.securable, role): None, granted_key(role, grant.securable): None}
    return {
        grant_key(grant.securable, role): {"privileges": [*grant.privileges]},
        granted_key(role, grant.securable): grant.json,
    }


def usage_edits(principal_role: RoleEntry, catalog_role: RoleEntry, used: bool = True) -> Edits:
    """Edits by which a principal role has a catalog role, or no longer has it."""
    of, to = (
        usage_key(principal_role.entity, catalog_role.entity),
        assignee_key(catalog_role.entity, principal_role.entity),
    )
    if not used:
        return {of: None, to: None}
    return {of: {"name": catalog_role.name}, to: {"name": principal_role.name}}


def ids_under(index: Index, prefix: str) -> Iterator[str]:
    """The last parts of all keys under a prefix."""
    for key, _ in index.scan(prefix):
        yield key[len(prefix) :]


def privileges_held(index: Index, securable: str, roles: Iterable[str]) -> Iterator[str]:
    """The privileges that roles hold on a securable itself."""
    for role in roles:
        entry = index.get(grant_key(securable, role))
        if entry is not None:
            yield from texts(entry, "privileges")


def edits_without_grants(index: Index, securable: str) -> Edits:
    """Edits that end all grants on a securable; the scan of `grants_on` is loaded."""
    edits: dict[str, JsonObject | None] = {}
    for role in ids_under(index, grants_on(securable)):
        edits[grant_key(securable, role)] = None
        edits[granted_key(role, securable)] = None
    return edits


def renamed_grants(index: Index, securable: str, roles: Iterable[str], namespace: Namespace, name: str) -> Edits:
    """Edits by which the grants of these roles on a securable show its new name; their keys are loaded."""
    stored = {key: index.get(key) for key in (granted_key(role, securable) for role in roles)}
    return {key: GrantEntry(entry).renamed(namespace, name).json for key, entry in stored.items() if entry is not None}
