"""What principals may do by the records alone, computed anew from all entries of both registries: the code that judges
requests shares nothing with this but the spelling of keys, and which privilege implies which."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.privileges import Privilege, allowed
from arco_catalog.state.fields import integer, text, texts
from arco_catalog.state.index import namespace_key, relation_key, relations_in, tombstones_of
from arco_catalog.state.realm import members_of, principal_id_key, roles_of
from arco_catalog.state.roles import CATALOG, assignees_of, granted_to, grants_on, used_by

Entries = Mapping[str, JsonObject]
"""All of a registry, by key."""


@dataclass(frozen=True, slots=True)
class Right:
    """A privilege on a table of the namespace, on the newest of the tables that were dropped under a name there, or on
    the namespace."""

    privilege: str
    table: str | None
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class CatalogState:
    """A catalog's registry at an instant. `homes` are the ids of the namespaces that tables were in before, by the ids
    of the tables."""

    entries: Entries
    homes: Mapping[str, str]

    def next_homes(self) -> Mapping[str, str]:
        """Where tables were before the next state."""
        namespace = self.entries.get(namespace_key(("db",)))
        if namespace is None:
            return self.homes
        live = (entry for key, entry in self.entries.items() if key.startswith(relations_in(("db",))))
        return {**self.homes, **{text(entry, "entity"): text(namespace, "entity") for entry in live}}


def has(realm: Entries, state: CatalogState, principal: str, right: Right) -> bool:
    """Whether a principal, by its id, has a right; not on what does not exist."""
    catalog = state.entries
    if principal_id_key(principal) not in realm:
        return False
    namespace = catalog.get(namespace_key(("db",)))
    if namespace is None:
        return False
    entities = [CATALOG, text(namespace, "entity")]
    if right.table is not None and right.dropped:
        prefix = tombstones_of(("db",), right.table)
        tombstones = [entry for key, entry in catalog.items() if key.startswith(prefix)]
        if not tombstones:
            return False
        dropped = text(max(tombstones, key=lambda entry: integer(entry, "sequence")), "entity")
        entities = [*entities, dropped] if state.homes[dropped] == entities[1] else [CATALOG]
    elif right.table is not None:
        relation = catalog.get(relation_key(("db",), right.table))
        if relation is None:
            return False
        entities.append(text(relation, "entity"))
    roles = {
        catalog_role
        for principal_role in _ids(realm, roles_of(principal))
        for catalog_role in _ids(catalog, used_by(principal_role))
    }
    held = {
        Privilege(privilege)
        for entity in entities
        for role in roles
        for privilege in texts(catalog.get(grants_on(entity) + role, {"privileges": []}), "privileges")
    }
    return Privilege(right.privilege) in allowed(held)


def check_realm(realm: Entries) -> None:
    """Both sides of each relation of a realm agree, and nothing names what there is no more."""
    principals = {text(entry, "entity"): name for name, entry in _named(realm, "principal")}
    roles = {text(entry, "entity"): name for name, entry in _named(realm, "principal-role")}
    for kind in ("principal-id", "client"):
        for key, entry in _named(realm, kind):
            principal = realm.get(f"principal\n\n{text(entry, 'name')}")
            assert principal is not None, f"{kind} {key} leads to a principal that is gone"
            assert key in (principal["entity"], principal["client_id"]), f"{kind} {key} leads to another principal"
    assert {key for key, _ in _named(realm, "principal-id")} == set(principals)
    memberships, members = _pairs(realm, "has-role"), _pairs(realm, "member")
    assert set(memberships) == {(member, role) for role, member in members}, "one side of a membership is missing"
    for (member, role), entry in memberships.items():
        assert text(entry, "name") == roles[role], "a membership of a role that is gone"
        assert text(realm[members_of(role) + member], "name") == principals[member], "a member that is gone"


def check_catalog(catalog: Entries) -> None:
    """The same of a catalog; a role of the realm that is gone may still be named, by its id, which nobody has again."""
    roles = {text(entry, "entity"): name for name, entry in _named(catalog, "catalog-role")}
    usages, assignees = _pairs(catalog, "usage"), _pairs(catalog, "assignee")
    assert set(usages) == {(user, role) for role, user in assignees}, "one side of a use of a role is missing"
    for (user, role), entry in usages.items():
        assert text(entry, "name") == roles[role], "a use of a catalog role that is gone"
        assert assignees_of(role) + user in catalog
    grants, granted = _pairs(catalog, "grant"), _pairs(catalog, "granted")
    assert set(grants) == {(securable, role) for role, securable in granted}, "one side of a grant is missing"
    entities = {CATALOG}
    names = {}
    for key, entry in catalog.items():
        kind = key.partition("\n")[0]
        if kind in ("namespace", "relation", "tombstone"):
            entities.add(text(entry, "entity"))
        if kind == "relation":
            names[text(entry, "entity")] = key.rpartition("\n")[2]
    for (securable, role), entry in grants.items():
        other = catalog[granted_to(role) + securable]
        assert role in roles, "a grant of a catalog role that is gone"
        assert securable in entities, "a grant on what is gone"
        assert entry["privileges"] == other["privileges"], "the sides of a grant differ"
        assert securable not in names or other["name"] == names[securable], "a grant that shows an old name"


def _ids(entries: Entries, prefix: str) -> Iterator[str]:
    return (key[len(prefix) :] for key in entries if key.startswith(prefix))


def _named(entries: Entries, kind: str) -> Iterator[tuple[str, JsonObject]]:
    prefix = f"{kind}\n\n"
    return ((key[len(prefix) :], entry) for key, entry in entries.items() if key.startswith(prefix))


def _pairs(entries: Entries, kind: str) -> dict[tuple[str, str], JsonObject]:
    found = (key.split("\n") for key in entries if key.startswith(f"{kind}\n"))
    return {(one, other): entries[f"{kind}\n{one}\n{other}"] for _, one, other in found}
