"""Rights on dropped tables and views. Grants on a namespace apply to tables that were dropped from it, but not to those
of an earlier namespace with the name (docs/decisions/0070)."""

from arco_catalog.planning.access import Securable
from arco_catalog.state.entries import FormerHolder, find_namespace
from arco_catalog.state.index import Index, Namespace, namespace_key
from arco_catalog.state.needs import Needs, Steps


def is_dropped_from(index: Index, namespace: Namespace, namespace_entity: str | None) -> Steps[bool]:
    """Whether the namespace with this name is the one with the recorded id. If it is, those above it are the recorded
    ones, too, because a namespace with children can't be dropped. False without an id, in a tombstone older than that
    field."""
    yield Needs(keys=[namespace_key(namespace)] if namespace else [])
    found = find_namespace(index, namespace)
    return found is not None and found.entity == namespace_entity


def securable_of(index: Index, holder: FormerHolder) -> Steps[Securable]:
    """Returns the securable for privileges on a dropped table: in the namespace from which it was dropped, or directly
    in the catalog if that namespace no longer exists, or the holder does not have the id of it."""
    same = yield from is_dropped_from(index, holder.namespace, holder.namespace_entity)
    return Securable(holder.namespace if same else (), entity=holder.entity)
