"""Looks securables up in a registry's index: the object with a name, and all that contain it."""

from collections.abc import Mapping, Sequence

from arco_catalog.iceberg.errors import NoSuchNamespace, Refusal
from arco_catalog.planning.access import Securable
from arco_catalog.planning.names import dotted, no_such
from arco_catalog.planning.privileges import Privilege
from arco_catalog.state.entries import find_namespace, find_relation
from arco_catalog.state.index import Index, namespace_key, relation_key
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.policies import find_policy, policy_key
from arco_catalog.state.roles import CATALOG

LISTS: Mapping[str, Privilege] = {
    "catalog": Privilege.CATALOG_LIST,
    "namespace": Privilege.NAMESPACE_LIST,
    "table": Privilege.TABLE_LIST,
    "generic-table": Privilege.TABLE_LIST,
    "semantic-model": Privilege.TABLE_LIST,
    "view": Privilege.VIEW_LIST,
    "policy": Privilege.POLICY_LIST,
}
"""The privilege to know that a securable exists, by its kind."""

_KINDS: Mapping[str, Sequence[str]] = {
    "table": ("table", "generic-table", "semantic-model"),
    "table-like": ("table", "view", "generic-table"),
}


def kind_of(index: Index, securable: Securable) -> str:
    """Returns the kind of a securable, also `catalog` or `namespace`. A `table-like` one has the kind of the entry, or
    `table` if it does not exist; the key of its name must be loaded."""
    if securable.name is None:
        return "namespace" if securable.namespace else "catalog"
    if securable.kind != "table-like":
        return securable.kind
    found = find_relation(index, securable.namespace, securable.name)
    return "table" if found is None else found.kind


def chain_of(index: Index, securable: Securable) -> Steps[Sequence[str] | None]:
    """Returns the ids of a securable and of all that contain it, outermost first; None if one of them does not exist. A
    dropped table or view, given by an id, counts as existing."""
    chain, exists = yield from find_chain(index, securable)
    return chain if exists else None


def find_chain(index: Index, securable: Securable) -> Steps[tuple[Sequence[str], bool]]:
    """Returns two things: the ids of a securable and of all that contain it, outermost first and up to the first that
    does not exist, and whether all exist. A table or view that is given by its id counts as existing."""
    namespaces = [securable.namespace[:depth] for depth in range(1, len(securable.namespace) + 1)]
    keys = [namespace_key(namespace) for namespace in namespaces]
    if securable.name is not None and securable.entity is None:
        key = policy_key if securable.kind == "policy" else relation_key
        keys.append(key(securable.namespace, securable.name))
    yield Needs(keys=keys)
    chain = [CATALOG]
    for namespace in namespaces:
        entry = find_namespace(index, namespace)
        if entry is None:
            return chain, False
        chain.append(entry.entity)
    if securable.entity is not None:
        chain.append(securable.entity)
    elif securable.name is not None:
        entity = find_securable(index, securable)
        if entity is None:
            return chain, False
        chain.append(entity)
    return chain, True


def find_securable(index: Index, securable: Securable) -> str | None:
    """Returns the id of the entity with the securable's name, None if there is none of its kind. An entity that a
    transaction creates counts before the transaction has committed. The kind `table` includes generic tables and
    semantic models, to which privileges on tables apply; `table-like` is a table, a view or a generic table. The key of
    the name must be loaded."""
    assert securable.name is not None
    if securable.kind == "policy":
        policy = find_policy(index, securable.namespace, securable.name)
        return None if policy is None else policy.entity
    relation = find_relation(index, securable.namespace, securable.name)
    kinds = _KINDS.get(securable.kind, (securable.kind,))
    return relation.entity if relation is not None and relation.kind in kinds else None


def absent(securable: Securable) -> Refusal:
    """Returns the error with which a request for a securable is refused that does not exist, or of which the caller may
    not know: both get one message."""
    if securable.name is not None:
        return no_such(securable.kind, securable.namespace, securable.name)
    return NoSuchNamespace(f"Namespace does not exist: {dotted(securable.namespace)}")
