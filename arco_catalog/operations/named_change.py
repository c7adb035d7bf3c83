"""Changes of the registry that are about one name in a namespace."""

from collections.abc import Callable

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.names import dotted
from arco_catalog.planning.registry_change import tombstone_edits
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.registry_mutation import RegistryMutation
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.index import Edits, Namespace, relation_key
from arco_catalog.state.needs import Steps
from arco_catalog.state.registry import RegistryState


class NamedChange(RegistryMutation):
    """The base of changes of the registry that are about one name in a namespace. The name's entry in the registry is
    under `key`."""

    def __init__(
        self, session: Session, namespace: Namespace, name: str, key: Callable[[Namespace, str], str] = relation_key
    ) -> None:
        super().__init__(session)
        self.namespace = namespace
        self.name = name
        self.full_name = dotted(namespace, name)
        self.key = key(namespace, name)

    def detail(self, entity: str, **more: JsonValue) -> JsonObject:
        """Returns what the registry's history has about this operation on a name: the name with the namespace, the
        entity id, and `more`."""
        return {"namespace": [*self.namespace], "name": self.name, "entity": entity, **more}

    def tombstone(
        self, head: RegistryState, entry: RelationEntry, attempt: Attempt, *, purge: bool = False
    ) -> Steps[Edits]:
        """Computes the index changes that leave a tombstone of the relation with this `entry`, and release the
        locations that it holds; with `purge` the tombstone shows that a purge was requested. The caller removes the
        name's entry, which must not be an intent."""
        return tombstone_edits(
            head, entry, self.namespace, self.name, operation=attempt.id, at_ms=attempt.now_ms, purge=purge
        )
