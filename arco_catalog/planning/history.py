"""Which operations of a registry's history a caller may see, and whether a drop can be undone: pure functions of the
present index and of a stored operation (docs/design/access.md#history)."""

from collections.abc import Mapping

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.access import Requirement, Securable
from arco_catalog.planning.dropped import is_dropped_from
from arco_catalog.planning.privileges import Privilege
from arco_catalog.state.entries import find_namespace, find_relation, newest_tombstone
from arco_catalog.state.fields import mapping, optional_text, texts
from arco_catalog.state.index import Index, Namespace, namespace_key, relation_key, tombstone_key, tombstones_of
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.policies import find_policy, policy_key
from arco_catalog.state.tombstone import DROPPED, Tombstone

DROPS = frozenset({"drop-table", "drop-view", "drop-generic-table", "drop-semantic-model", "drop-followed"})
"""The kinds of operations that an undrop may undo."""
_READS: Mapping[str, Privilege] = {
    "catalog": Privilege.CATALOG_READ_PROPERTIES,
    "namespace": Privilege.NAMESPACE_READ_PROPERTIES,
    "table": Privilege.TABLE_READ_PROPERTIES,
    "view": Privilege.VIEW_READ_PROPERTIES,
    "policy": Privilege.POLICY_READ,
    "role": Privilege.CATALOG_ROLE_LIST_GRANTS,
}
READS = frozenset(_READS.values())
"""The privileges that together, on the catalog, let a caller see all operations."""


def names_in(operation: JsonObject) -> list[tuple[Namespace, str | None]]:
    """Returns the names that an operation is about, each with its namespace, None as the name of a namespace itself: of
    a rename both names, of an operation without a namespace none."""
    places = [place for place in (operation, mapping(operation, "to")) if "namespace" in place]
    return [(texts(place, "namespace"), optional_text(place, "name")) for place in places]


def kind_of(operation: JsonObject) -> str:
    """Returns the type of the object that an operation is about: `catalog`, `namespace`, `table`, `view`, `policy` or
    `role`. The type `table` includes generic tables and all other objects but views, and the undrop of a view."""
    kind = str(operation.get("kind"))
    if "role" in operation or kind.endswith("-catalog-role"):
        return "role"
    if kind.endswith(("-policy", "-namespace", "-view")):
        return kind.rpartition("-")[2]
    return "table" if operation.get("name") is not None and "namespace" in operation else "catalog"


def requirement_of(index: Index, operation: JsonObject) -> Steps[Requirement]:
    """Returns what a caller must hold to see an operation: the privilege to read the object that it is about, where one
    of the operation's names still has that object, or a tombstone of it that was dropped from the present namespace of
    the name; in all other cases, and to see that a policy was attached or detached, the privilege on the catalog. A
    name alone gives no right to see what earlier objects of this name were."""
    kind = kind_of(operation)
    entity = optional_text(operation, "entity")
    if entity is None or kind in ("catalog", "role") or "target" in operation:
        return Requirement(_READS[kind])
    for namespace, name in names_in(operation):
        found = yield from _present(index, kind, namespace, name, entity)
        if found is not None:
            return Requirement(_READS["view" if found.kind == "view" else kind], found)
    return Requirement(_READS[kind])


def _present(index: Index, kind: str, namespace: Namespace, name: str | None, entity: str) -> Steps[Securable | None]:
    """Returns the securable for an entity, if it has this name, or was dropped under it from the present namespace;
    None otherwise."""
    if name is None:
        yield Needs(keys=[namespace_key(namespace)])
        level = find_namespace(index, namespace)
        return Securable(namespace) if level is not None and level.entity == entity else None
    if kind == "policy":
        yield Needs(keys=[policy_key(namespace, name)])
        policy = find_policy(index, namespace, name)
        return Securable(namespace, name, "policy") if policy is not None and policy.entity == entity else None
    yield Needs(keys=[relation_key(namespace, name), tombstone_key(namespace, name, entity)])
    relation = find_relation(index, namespace, name)
    if relation is not None and relation.entity == entity:
        return Securable(namespace, name, "view" if relation.kind == "view" else "table", entity)
    stored = index.get(tombstone_key(namespace, name, entity))
    if stored is None or not (yield from is_dropped_from(index, namespace, Tombstone(stored).namespace_entity)):
        return None
    return Securable(namespace, kind="view" if stored.get("type") == "view" else "table", entity=entity)


def undo_of(index: Index, operation: JsonObject, undrop_ms: int) -> Steps[JsonObject | None]:
    """Returns whether an undrop would undo this drop now, by the registry alone, until when, and what prevents it; None
    for an operation of a kind that is not in `DROPS`, such as the drop of a namespace. `undrop_ms` is how long the
    tombstone of a plain drop is kept, in milliseconds."""
    entity, name = optional_text(operation, "entity"), optional_text(operation, "name")
    if operation.get("kind") not in DROPS or entity is None or name is None:
        return None
    namespace = texts(operation, "namespace")
    key = tombstone_key(namespace, name, entity)
    yield Needs(keys=[relation_key(namespace, name), key, namespace_key(namespace)])
    stored, relation = index.get(key), find_relation(index, namespace, name)
    if stored is None or stored.get("operation") != operation.get("id"):
        restored = stored is not None or (relation is not None and relation.entity == entity)
        return _undo("restored" if restored else "gone")
    tombstone = Tombstone(stored)
    if tombstone.state != DROPPED:
        return _undo(tombstone.state, task=tombstone.task)
    there: JsonObject = {"namespace": [*namespace], "name": name}
    if find_namespace(index, namespace) is None:
        missing: JsonObject = {"type": "namespace", "namespace": [*namespace], "name": None}
        return _undo(DROPPED, task=tombstone.task, blocked={"reason": "namespace-missing", **missing})
    if relation is not None:
        return _undo(DROPPED, task=tombstone.task, blocked={"reason": "name-taken", "type": relation.kind, **there})
    yield Needs(scans=[Scan(tombstones_of(namespace, name))])
    newest = newest_tombstone(tombstone for _, tombstone in index.scan(tombstones_of(namespace, name)))
    if newest is not None and newest.get("entity") != entity:
        later: JsonObject = {"reason": "dropped-later", "type": newest.get("type"), **there}
        return _undo(DROPPED, task=tombstone.task, blocked=later)
    until_ms = tombstone.dropped_ms + undrop_ms if tombstone.task is None else tombstone.purge_after_ms
    return _undo(DROPPED, task=tombstone.task, until_ms=until_ms)


def _undo(
    state: str, *, task: str | None = None, until_ms: int | None = None, blocked: JsonObject | None = None
) -> JsonObject:
    """Returns the JSON about whether a drop can be undone: it can if `until_ms` is given, up to that time; else
    `blocked` has what prevents it, if that is not the `state`. `task` is the purge of the table, if there is one."""
    return {
        "possible": until_ms is not None,
        "state": state,
        "until-ms": until_ms,
        "purge-task": task,
        "blocked-by": blocked,
    }
