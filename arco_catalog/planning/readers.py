"""Computes the tables and views that each principal may load, from the grants of a realm and of one of its catalogs
(docs/design/access.md#privileges).

The rules are those of `judge`, applied to all principals at once. Each principal counts with all its roles; a token
that activates fewer may load less.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, TypeAlias

from arco_catalog.planning.access import Identity, Standing
from arco_catalog.planning.held_grants import catalog_roles_of
from arco_catalog.planning.judgement import allowed_by, standing_of
from arco_catalog.planning.privileges import Privilege
from arco_catalog.state.entries import find_relation
from arco_catalog.state.index import Index, Namespace, relation_key
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.realm import PrincipalEntry, principals
from arco_catalog.state.roles import GrantEntry, granted_to
from storage_backends.lazy_dataclass import dataclass

Loaded: TypeAlias = Literal["table", "view"]
"""The kinds of entities that can be loaded."""

LOADS: Mapping[Loaded, Privilege] = {
    "table": Privilege.TABLE_READ_PROPERTIES,
    "view": Privilege.VIEW_READ_PROPERTIES,
}
"""The privilege that the load of a table or a view requires."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Entities of one kind that a principal may load: all of the catalog, all in `namespace` and below it, or the one
    `entity` in `namespace`."""

    kind: Loaded
    namespace: Namespace | None = None
    entity: str | None = None


def standings_of(index: Index) -> Steps[Sequence[Standing]]:
    """Returns the rights, with all their roles, of all principals of a realm's registry that have a principal role and
    need not rotate their credentials first. The index is that of the realm."""
    yield Needs(scans=[Scan(principals())])
    entities = [PrincipalEntry(entry).entity for _, entry in index.scan(principals())]
    found: list[Standing] = []
    for entity in entities:
        standing = yield from standing_of(index, Identity(entity))
        if standing is not None and standing.roles and not standing.must_rotate:
            found.append(standing)
    return found


def reaches(index: Index, standings: Collection[Standing]) -> Steps[Mapping[str, frozenset[Reach]]]:
    """Returns what each of these principals may load of a catalog, by the principals' names; those that may load
    nothing are left out. The index is that of the catalog. Grants on dropped entities give nothing. If a principal may
    load all tables of the catalog, or all views, its narrower grants on these are left out."""
    of_roles: dict[str, frozenset[Reach]] = {}
    found: dict[str, frozenset[Reach]] = {}
    for standing in standings:
        roles = yield from catalog_roles_of(index, standing.roles)
        for role in roles:
            if role not in of_roles:
                of_roles[role] = yield from _reach_of(index, role)
        own = {Reach(kind) for kind, privilege in LOADS.items() if privilege in standing.service}
        held = _without_inner(own.union(*(of_roles[role] for role in roles)))
        if held:
            found[standing.name] = held
    return found


def _reach_of(index: Index, role: str) -> Steps[frozenset[Reach]]:
    """Returns the tables and views that the grants of a catalog role allow to load."""
    yield Needs(scans=[Scan(granted_to(role))])
    grants = [GrantEntry(entry) for _, entry in index.scan(granted_to(role))]
    yield Needs(keys=[relation_key(each.namespace, each.name) for each in grants if each.name is not None])
    found: set[Reach] = set()
    for grant in grants:
        held = allowed_by(grant.privileges)
        for kind, privilege in LOADS.items():
            if privilege not in held:
                continue
            if grant.kind == "catalog":
                found.add(Reach(kind))
            elif grant.kind == "namespace":
                found.add(Reach(kind, grant.namespace))
            elif grant.kind == kind and grant.name is not None:
                relation = find_relation(index, grant.namespace, grant.name)
                if relation is not None and relation.entity == grant.securable:
                    found.add(Reach(kind, grant.namespace, grant.securable))
    return frozenset(found)


def _without_inner(held: Collection[Reach]) -> frozenset[Reach]:
    """Returns what a principal may load, without the narrower reaches of a kind if one of them is of the whole
    catalog."""
    everything = {each.kind for each in held if each.namespace is None}
    return frozenset(each for each in held if each.namespace is None or each.kind not in everything)
