"""What the registry of a realm holds: catalogs, principals, principal roles, and which principal has which
(docs/design/access.md#realms)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import mapping, optional_text, sequence, text
from arco_catalog.state.index import Edits, Index, level
from arco_catalog.state.roles import Described, RoleEntry

EXTERNAL = "EXTERNAL"
"""The type of a catalog whose tables follow another's."""
SERVICE_ADMIN = "service_admin"
"""The principal role that manages a realm."""
CATALOG_ADMIN = "catalog_admin"
"""The catalog role that manages a catalog."""

ACT_FOR_OTHERS = "arco.act-for-others"
"""The property by which a principal is registered to ask for tokens of other principals: `true`."""
NAME_SOURCES = "arco.source"
"""The property by which a principal is registered to say on whose behalf it makes its changes: `true`."""
RUN_PIPELINE = "arco.pipeline"
"""The property by which a principal is registered to write to the namespace of the pipeline's tables: `true`."""


REALM_STATE = level("realm", ()) + "state"
"""Key of the entry that a realm has once it was dropped."""


def is_dropped(index: Index) -> bool:
    """Whether the realm was dropped; the entry is loaded."""
    entry = index.get(REALM_STATE)
    return entry is not None and entry.get("state") == "dropped"


def catalogs() -> str:
    """Prefix of the keys of all catalogs."""
    return level("catalog", ())


def catalog_key(name: str) -> str:
    """Key of a catalog."""
    return catalogs() + name


def principals() -> str:
    """Prefix of the keys of all principals."""
    return level("principal", ())


def principal_key(name: str) -> str:
    """Key of a principal."""
    return principals() + name


def principal_id_key(entity: str) -> str:
    """Key that leads from a principal's id to its name."""
    return level("principal-id", ()) + entity


def client_key(client_id: str) -> str:
    """Key that leads from a client id to the name of its principal."""
    return level("client", ()) + client_id


def subject_key(subject: str) -> str:
    """Key that leads from who somebody is to an issuer of tokens to the name of its principal."""
    return level("subject", ()) + subject


def principal_roles() -> str:
    """Prefix of the keys of all principal roles."""
    return level("principal-role", ())


def principal_role_key(name: str) -> str:
    """Key of a principal role."""
    return principal_roles() + name


def roles_of(principal: str) -> str:
    """Prefix of the keys of the principal roles that a principal has."""
    return level("has-role", (principal,))


def members_of(role: str) -> str:
    """Prefix of the keys of the principals that have a principal role."""
    return level("member", (role,))


class CatalogEntry(Described):
    """A catalog of the realm. Its state lies under `root`, a folder that no other catalog ever had."""

    @property
    def root(self) -> str:
        return text(self.json, "root")

    @property
    def kind(self) -> str:
        return text(self.json, "type")

    @property
    def storage(self) -> JsonObject:
        return mapping(self.json, "storage")


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret of a principal as it is kept: its digest, and how that was made (access/secrets.py)."""

    json: JsonObject

    @property
    def scheme(self) -> str:
        return text(self.json, "scheme")

    @property
    def salt(self) -> str:
        return text(self.json, "salt")

    @property
    def digest(self) -> str:
        return text(self.json, "digest")

    @property
    def fingerprint(self) -> str:
        """Tells it from other secrets, and nothing about it: tokens say by it what they were given for."""
        return hashlib.sha256(f"arco fingerprint {self.salt} {self.digest}".encode()).hexdigest()[:16]


class PrincipalEntry(Described):
    """Somebody, or something, that makes requests."""

    @property
    def client_id(self) -> str:
        return text(self.json, "client_id")

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """Those that are valid, the newest first: two, so that a rotation leaves no gap."""
        return tuple(Secret(item) for item in sequence(self.json, "secrets") if isinstance(item, dict))

    @property
    def subject(self) -> str | None:
        """Who it is to an issuer of tokens: the issuer and the subject, with a space between; None for a principal of
        this realm's own."""
        return optional_text(self.json, "subject")

    @property
    def must_rotate(self) -> bool:
        """Whether it may do nothing before it has rotated its credentials."""
        return self.json.get("must_rotate") is True

    @property
    def acts_for_others(self) -> bool:
        """Whether it is registered to ask for tokens of other principals."""
        return self.properties.get(ACT_FOR_OTHERS) == "true"

    @property
    def names_sources(self) -> bool:
        """Whether it is registered to say on whose behalf it makes its changes."""
        return self.properties.get(NAME_SOURCES) == "true"

    @property
    def runs_pipeline(self) -> bool:
        """Whether it is registered to write to the namespace of the pipeline's tables."""
        return self.properties.get(RUN_PIPELINE) == "true"

    def with_secrets(self, secrets: tuple[Secret, ...], at_ms: int, **changed: str | bool) -> Self:
        """The entry with these secrets and no others."""
        return self.updated(at_ms, secrets=[secret.json for secret in secrets], **changed)


def find_catalog(index: Index, name: str) -> CatalogEntry | None:
    """The catalog of a name."""
    entry = index.get(catalog_key(name))
    return None if entry is None else CatalogEntry(entry)


def find_principal(index: Index, name: str) -> PrincipalEntry | None:
    """The principal of a name."""
    entry = index.get(principal_key(name))
    return None if entry is None else PrincipalEntry(entry)


def find_principal_role(index: Index, name: str) -> RoleEntry | None:
    """The principal role of a name."""
    entry = index.get(principal_role_key(name))
    return None if entry is None else RoleEntry(entry)


def name_under(index: Index, key: str) -> str | None:
    """The name that an id leads to."""
    entry = index.get(key)
    return None if entry is None else text(entry, "name")


def principal_edits(principal: PrincipalEntry) -> Edits:
    """Edits that make a principal, or change it without changing its client id."""
    there: JsonObject = {"name": principal.name}
    edits: dict[str, JsonObject | None] = {
        principal_key(principal.name): principal.json,
        principal_id_key(principal.entity): there,
        client_key(principal.client_id): there,
    }
    if principal.subject is not None:
        edits[subject_key(principal.subject)] = there
    return edits


def membership_edits(principal: PrincipalEntry, role: RoleEntry, member: bool = True) -> Edits:
    """Edits by which a principal has a role, or no longer has it."""
    of, to = roles_of(principal.entity) + role.entity, members_of(role.entity) + principal.entity
    if not member:
        return {of: None, to: None}
    return {of: {"name": role.name}, to: {"name": principal.name}}


def names_under(index: Index, prefix: str) -> Mapping[str, str]:
    """Names by the ids that keys under a prefix end with."""
    return {key[len(prefix) :]: text(entry, "name") for key, entry in index.scan(prefix)}
