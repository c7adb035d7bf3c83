"""Rights on dropped tables and views: grants on a namespace are for what was dropped from it, and not from another
namespace that had its name before (docs/decisions/0070)."""

from arco_catalog.planning.access import Securable
from arco_catalog.state.entries import FormerHolder, find_namespace
from arco_catalog.state.index import Index, Namespace, namespace_key
from arco_catalog.state.needs import Needs, Steps


def is_dropped_from(index: Index, namespace: Namespace, namespace_entity: str | None) -> Steps[bool]:
    """Whether the namespace that has this name now is the one with the recorded id. A namespace is dropped after all
    namespaces in it, so those above it are the recorded ones, too. Without an id it is not: the tombstone is older than
    the field."""
    yield Needs(keys=[namespace_key(namespace)] if namespace else [])
    found = find_namespace(index, namespace)
    return found is not None and found.entity == namespace_entity


def securable_of(index: Index, holder: FormerHolder) -> Steps[Securable]:
    """What privileges on a dropped table are needed on: in the namespace that it was dropped from, or, without that,
    in the catalog alone."""
    same = yield from is_dropped_from(index, holder.namespace, holder.namespace_entity)
    return Securable(holder.namespace if same else (), entity=holder.entity)
