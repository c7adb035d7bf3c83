"""Dropping tables: the registry decides, then the pointer is marked, then the answer
(docs/design/registry.md#rule-4)."""

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError, Refusal
from arco_catalog.operations.kinds import TABLES, VIEWS, Semantics
from arco_catalog.operations.registry_change import Change, RegistryMutation, RegistryReadSet
from arco_catalog.operations.relation_read_set import relation
from arco_catalog.protocol.answers import Answer, Document, TableState
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.current_file import current_file
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.mutation import Attempt
from arco_catalog.state.entries import RelationEntry, released_holds
from arco_catalog.state.fields import text
from arco_catalog.state.index import Edits, Namespace, relation_key, tombstone_key
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.registry import RegistryState
from storage_backends import StoreError


async def drop_table(session: Session, namespace: Namespace, name: str, purge: bool) -> Answer:
    """Takes the name away and leaves a tombstone, which keeps entity, pointer and locations; with `purge` the tombstone
    remembers that a purge was asked for. No file is deleted, and the drop can be undone."""
    return await run(session, Drop(session, TABLES, namespace, name, purge))


async def drop_view(session: Session, namespace: Namespace, name: str) -> Answer:
    """Takes a view's name away and leaves a tombstone."""
    return await run(session, Drop(session, VIEWS, namespace, name, purge=False))


async def unregister_table(session: Session, namespace: Namespace, name: str) -> TableState:
    """Drops a table without purge and answers with its last state. The mark of the drop lets nothing in behind it, so
    what is read after it includes every commit."""
    answer = await run(session, _Unregister(session, TABLES, namespace, name, purge=False))
    if not isinstance(answer, Document) or answer.body is None:
        raise InternalError("the answer to an unregistration has no entity")
    entity = text(answer.body, "entity")
    try:
        last = await current_file(session, entity)
        if last is None:
            raise CommitStateUnknown(f"The pointer of entity {entity} no longer exists")
        return TableState(entity, last[0].location, last[1], created=False)
    except (StoreError, Refusal) as error:  # neither may say now that nothing was done
        raise CommitStateUnknown(f"The table was unregistered, but its last state can't be read: {error}") from error


def tombstone_edits(
    session: Session,
    head: RegistryState,
    entry: RelationEntry,
    namespace: Namespace,
    name: str,
    operation: str,
    *,
    purge: bool,
) -> Edits:
    """Edits that leave a tombstone in place of what had the name; the name's own entry is the caller's."""
    tombstone = entry.tombstone(
        namespace=namespace,
        name=name,
        operation=operation,
        sequence=head.sequence,
        place=head.place,
        at_ms=session.now_ms(),
        purge=purge,
    )
    return {tombstone_key(namespace, name, entry.entity): tombstone, **released_holds(entry.entity, entry.locations)}


class Drop(RegistryMutation):
    """The drop of a table or view."""

    def __init__(self, session: Session, semantics: Semantics, namespace: Namespace, name: str, purge: bool) -> None:
        super().__init__(session)
        self.semantics = semantics
        self.namespace = namespace
        self.name = name
        self.purge = purge
        self.kind = f"drop-{semantics.kind}"

    def entry(self, read_set: RegistryReadSet) -> RelationEntry | None:
        """What would be dropped."""
        return relation(read_set.head, self.namespace, self.name, self.semantics.kind)

    def write_set(self, read_set: RegistryReadSet, attempt: Attempt) -> WriteSet:
        entry = self.entry(read_set)
        return WriteSet(registry=read_set.head.sequence, marks=() if entry is None else (entry.entity,))

    def answer(self, entry: RelationEntry) -> Answer:
        """What is said when it is done."""
        return Document(204)

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Change:
        entry = self.entry(read_set)
        if entry is None:
            raise self.semantics.no_such(self.namespace, self.name)
        self.session.stats.about(entry.entity, entry.uuid)
        entry.require_committed()
        tombstone = tombstone_edits(
            self.session, read_set.head, entry, self.namespace, self.name, attempt.id, purge=self.purge
        )
        return Change(
            edits={relation_key(self.namespace, self.name): None, **tombstone},
            answer=self.answer(entry),
            detail={
                "namespace": [*self.namespace],
                "name": self.name,
                "entity": entry.entity,
                "purge": self.purge,
            },
        )


class _Unregister(Drop):
    """A drop that remembers which entity it dropped."""

    def answer(self, entry: RelationEntry) -> Answer:
        return Document(200, {"entity": entry.entity})
