"""The entries of a realm's registry: catalogs, principals, principal roles, and the roles of each principal
(docs/design/access.md#realms)."""

import hashlib
from collections.abc import Mapping
from typing import Self

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.properties import PLANNING_MODES, SCAN_PLANNING_MODE
from arco_catalog.state.fields import mapping, objects, optional_text, text
from arco_catalog.state.index import Edits, Index, level
from arco_catalog.state.roles import DescribedEntry, RoleEntry
from storage_backends.lazy_dataclass import dataclass

EXTERNAL = "EXTERNAL"
"""The type of a catalog whose tables follow those of another catalog."""
SERVICE_ADMIN = "service_admin"
"""The principal role that manages a realm."""
CATALOG_ADMIN = "catalog_admin"
"""The catalog role that manages a catalog."""

ACT_FOR_OTHERS = "arco.act-for-others"
"""The property that allows a principal, if it is `true`, to request tokens of other principals."""
NAME_SOURCES = "arco.source"
"""The property that allows a principal, if it is `true`, to name the source of its changes."""
RUN_PIPELINE = "arco.pipeline"
"""The property that allows a principal, if it is `true`, to write to the namespace of the pipeline's tables."""


REALM_STATE = level("realm", ()) + "state"
"""Key of the entry that records that a realm was dropped."""


def is_dropped(index: Index) -> bool:
    """Whether the realm was dropped. The entry of `REALM_STATE` must be loaded."""
    entry = index.get(REALM_STATE)
    return entry is not None and entry.get("state") == "dropped"


def catalogs() -> str:
    """Returns the prefix of the index keys that the entries of catalogs have in the registry of a realm."""
    return level("catalog", ())


def catalog_key(name: str) -> str:
    """Returns the index key that the entry of a catalog has in the registry of a realm."""
    return catalogs() + name


def principals() -> str:
    """Returns the prefix of the index keys of all principals."""
    return level("principal", ())


def principal_key(name: str) -> str:
    """Returns the index key of a principal's entry."""
    return principals() + name


def principal_id_key(entity: str) -> str:
    """Returns the index key of the entry that has the name of the principal with an entity id."""
    return level("principal-id", ()) + entity


def client_key(client_id: str) -> str:
    """Returns the index key of the entry that has the name of the principal with a client id."""
    return level("client", ()) + client_id


def subject_key(subject: str) -> str:
    """Returns the index key of the entry that has the name of the principal with a subject, the identity that an issuer
    of tokens gives it."""
    return level("subject", ()) + subject


def principal_roles() -> str:
    """Returns the prefix of the index keys of all principal roles."""
    return level("principal-role", ())


def principal_role_key(name: str) -> str:
    """Returns the index key of a principal role's entry."""
    return principal_roles() + name


def roles_of(principal: str) -> str:
    """Returns the prefix of the index keys of the principal roles that a principal has."""
    return level("has-role", (principal,))


def members_of(role: str) -> str:
    """Returns the prefix of the index keys of the principals that have a principal role."""
    return level("member", (role,))


class CatalogEntry(DescribedEntry):
    """The entry of a catalog in the realm's registry. The catalog's state is in the folder `root`, which no other
    catalog ever had."""

    @property
    def root(self) -> str:
        """The path in the store under which the catalog's state is. Raises `InternalError` if the entry has none."""
        return text(self.json, "root")

    @property
    def kind(self) -> str:
        """The catalog's type, INTERNAL or EXTERNAL. Raises `InternalError` if the entry has none."""
        return text(self.json, "type")

    @property
    def storage(self) -> JsonObject:
        """The catalog's storage configuration, as the management API shows it; empty if the entry has none."""
        return mapping(self.json, "storage")

    @property
    def scan_planning(self) -> str | None:
        """Who should plan scans of the catalog's tables, by its property; None without a valid one."""
        mode = str(self.properties.get(SCAN_PLANNING_MODE, "")).lower()
        return mode if mode in PLANNING_MODES else None


@dataclass(frozen=True, slots=True)
class Secret:
    """A stored secret of a principal: its digest and salt, and the scheme of the digest (authentication/secrets.py)."""

    json: JsonObject

    @property
    def scheme(self) -> str:
        """The name of the hash that made the digest. Raises `InternalError` if the record has none."""
        return text(self.json, "scheme")

    @property
    def salt(self) -> str:
        """The salt of the digest, in hexadecimal. Raises `InternalError` if the record has none."""
        return text(self.json, "salt")

    @property
    def digest(self) -> str:
        """The digest of the salt and the secret, in hexadecimal. Raises `InternalError` if the record has none."""
        return text(self.json, "digest")

    @property
    def fingerprint(self) -> str:
        """A short digest that identifies this secret without revealing it. Tokens contain that of the secret for which
        they were issued."""
        return hashlib.sha256(f"arco fingerprint {self.salt} {self.digest}".encode()).hexdigest()[:16]


class PrincipalEntry(DescribedEntry):
    """The entry of a principal in the realm's registry: a person or service that makes requests."""

    @property
    def client_id(self) -> str:
        """The id with which clients of the principal request tokens. Raises `InternalError` if the entry has none."""
        return text(self.json, "client_id")

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The valid secrets, newest first. After a rotation there are two, so that clients can change to the new
        one."""
        return tuple(Secret(item) for item in objects(self.json, "secrets"))

    @property
    def subject(self) -> str | None:
        """The principal's identity at an issuer of tokens: the issuer and the subject, separated by a space. None for a
        principal that only this realm authenticates, by a client id and a secret, which every principal has."""
        return optional_text(self.json, "subject")

    @property
    def must_rotate(self) -> bool:
        """Whether the principal must rotate the credentials before it may do anything else that needs a privilege. It
        may request tokens before."""
        return self.json.get("must_rotate") is True

    @property
    def acts_for_others(self) -> bool:
        """Whether the principal may request tokens of other principals, except of those that manage access."""
        return self.properties.get(ACT_FOR_OTHERS) == "true"

    @property
    def names_sources(self) -> bool:
        """Whether the principal may name the source of its changes."""
        return self.properties.get(NAME_SOURCES) == "true"

    @property
    def runs_pipeline(self) -> bool:
        """Whether the principal's privileges to write also count in the namespace of the pipeline's tables. That alone
        gives no privilege."""
        return self.properties.get(RUN_PIPELINE) == "true"

    def with_secrets(self, secrets: tuple[Secret, ...], at_ms: int, **changed: str | bool) -> Self:
        """Returns the principal's entry with these secrets in place of its own, with the `changed` fields, the time
        `at_ms` of the change, and the next version."""
        return self.updated(at_ms, secrets=[secret.json for secret in secrets], **changed)


def find_catalog(index: Index, name: str) -> CatalogEntry | None:
    """Returns the entry of the catalog with this name in a realm's index, None if there is none."""
    entry = index.get(catalog_key(name))
    return None if entry is None else CatalogEntry(entry)


def find_principal(index: Index, name: str) -> PrincipalEntry | None:
    """Returns the entry of the principal with this name in a realm's index, None if there is none."""
    entry = index.get(principal_key(name))
    return None if entry is None else PrincipalEntry(entry)


def find_principal_role(index: Index, name: str) -> RoleEntry | None:
    """Returns the entry of the principal role with this name in a realm's index, None if there is none."""
    entry = index.get(principal_role_key(name))
    return None if entry is None else RoleEntry(entry)


def name_under(index: Index, key: str) -> str | None:
    """Returns the field `name` of the entry of a key in a realm's index, None if there is no entry."""
    entry = index.get(key)
    return None if entry is None else text(entry, "name")


def principal_edits(principal: PrincipalEntry) -> Edits:
    """Returns the index changes that store a new or changed principal. They do not remove the keys of a former
    client id or subject."""
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
    """Returns the index changes that give a principal a principal role; without `member` those that take it away."""
    of, to = roles_of(principal.entity) + role.entity, members_of(role.entity) + principal.entity
    if not member:
        return {of: None, to: None}
    return {of: {"name": role.name}, to: {"name": principal.name}}


def names_under(index: Index, prefix: str) -> Mapping[str, str]:
    """Returns the field `name` of all entries under a prefix of a realm's index, by the ids at the ends of their
    keys."""
    return {key[len(prefix) :]: text(entry, "name") for key, entry in index.scan(prefix)}
