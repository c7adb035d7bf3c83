"""Dropping tables: the registry decides, then the pointer is marked, then the answer (design.md 6.6)."""

from arco_catalog.operations.answers import Answer, Document
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.driver import run
from arco_catalog.operations.mutation import Attempt
from arco_catalog.operations.names import no_such
from arco_catalog.operations.registry_change import Change, RegistryMutation, RegistryView
from arco_catalog.operations.table_view import relation
from arco_catalog.state.entries import RelationEntry, holds
from arco_catalog.state.index import Edits, Namespace, relation_key, tombstone_key
from arco_catalog.state.marker import Binding


async def drop_table(session: Session, namespace: Namespace, name: str, purge: bool) -> Answer:
    """Takes the name away and leaves a tombstone, which keeps entity, pointer and locations; with `purge` the tombstone
    says that files may be deleted."""
    return await run(session, _DropTable(session, namespace, name, purge))


def burial(entry: RelationEntry, namespace: Namespace, name: str, operation: str, at_ms: int, purging: bool) -> Edits:
    """Edits that leave a tombstone in place of what had the name; the name's own entry is the caller's."""
    stone = entry.buried(namespace=namespace, name=name, operation=operation, at_ms=at_ms, purging=purging)
    held = holds(entry.entity, entry.locations, "purging" if purging else "dropped")
    return {tombstone_key(namespace, name, entry.entity): stone, **held}


class _DropTable(RegistryMutation):
    kind = "drop-table"

    def __init__(self, session: Session, namespace: Namespace, name: str, purge: bool) -> None:
        super().__init__(session)
        self.namespace = namespace
        self.name = name
        self.purge = purge

    def binding(self, view: RegistryView, attempt: Attempt) -> Binding:
        entry = relation(view.head, self.namespace, self.name, "table")
        return Binding(registry=view.head.sequence, marks=() if entry is None else (entry.entity,))

    def change(self, view: RegistryView, attempt: Attempt) -> Change:
        entry = relation(view.head, self.namespace, self.name, "table")
        if entry is None:
            raise no_such("table", self.namespace, self.name)
        stone = burial(entry, self.namespace, self.name, attempt.id, self.session.runtime.now_ms(), purging=self.purge)
        return Change(
            edits={relation_key(self.namespace, self.name): None, **stone},
            answer=Document(204),
            detail={
                "namespace": [*self.namespace],
                "name": self.name,
                "entity": entry.entity,
                "purge": self.purge,
            },
        )
