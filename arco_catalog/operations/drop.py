"""Drops tables and views: a registry commit takes the name away, then the pointer is marked as dropped, then the
client is answered (docs/design/registry.md#rule-4)."""

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError, Refusal
from arco_catalog.planning.answers import Answer, Document, TableState
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.kinds import TABLES, VIEWS, Semantics
from arco_catalog.planning.registry_change import Change, tombstone_edits
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.current_file import current_file
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.lookup import load
from arco_catalog.protocol.registry_mutation import RegistryMutation, RegistryReadSet
from arco_catalog.state.entries import RelationEntry, find_kind
from arco_catalog.state.fields import text
from arco_catalog.state.index import Namespace, relation_key
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.needs import Needs, Steps
from storage_backends import StoreError


async def drop_table(session: Session, namespace: Namespace, name: str, purge: bool) -> Answer:
    """Takes the name away and leaves a tombstone, which keeps entity, pointer and locations; with `purge` the tombstone
    remembers that a purge was asked for. No file is deleted, and the drop can be undone."""
    return await run(session, Drop(session, TABLES, namespace, name, purge))


async def drop_view(session: Session, namespace: Namespace, name: str) -> Answer:
    """Takes a view's name away and leaves a tombstone."""
    return await run(session, Drop(session, VIEWS, namespace, name, purge=False))


async def unregister_table(session: Session, namespace: Namespace, name: str) -> TableState:
    """Drops a table without purge and answers with its last state. No commit can land after the pointer is marked,
    so the state read then is the last. Raises `CommitStateUnknown` if it was dropped and that state can't be read."""
    answer = await run(session, _Unregister(session, TABLES, namespace, name, purge=False))
    if not isinstance(answer, Document) or answer.body is None:
        raise InternalError("the answer to an unregistration has no entity")
    entity = text(answer.body, "entity")
    try:
        last = await current_file(session, entity)
        if last is None:
            raise CommitStateUnknown(f"The pointer of entity {entity} no longer exists")
        return TableState(entity, last[0].location, last[1], created=False)
    except (StoreError, Refusal) as error:  # as they are, these errors would say that nothing was done
        raise CommitStateUnknown(f"The table was unregistered, but its last metadata can't be read: {error}") from error


class Drop(RegistryMutation):
    """The drop of a table or view."""

    def __init__(self, session: Session, semantics: Semantics, namespace: Namespace, name: str, purge: bool) -> None:
        super().__init__(session)
        self.semantics = semantics
        self.namespace = namespace
        self.name = name
        self.purge = purge
        self.kind = f"drop-{semantics.kind}"

    async def write_set(self, read_set: RegistryReadSet, attempt: Attempt) -> WriteSet:
        index = read_set.head.index
        await load(self.state, index, Needs(keys=[relation_key(self.namespace, self.name)]))
        entry = find_kind(index, self.namespace, self.name, self.semantics.kind)
        return WriteSet(registry=read_set.head.sequence, marks=() if entry is None else (entry.entity,))

    def answer(self, entry: RelationEntry) -> Answer:
        """The answer to the drop of this entry."""
        return Document(204)

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        head, key = read_set.head, relation_key(self.namespace, self.name)
        yield Needs(keys=[key])
        entry = find_kind(head.index, self.namespace, self.name, self.semantics.kind)
        if entry is None:
            raise self.semantics.no_such(self.namespace, self.name)
        entry.require_committed()
        tombstone = tombstone_edits(
            head, entry, self.namespace, self.name, operation=attempt.id, at_ms=attempt.now_ms, purge=self.purge
        )
        return Change(
            edits={key: None, **tombstone},
            answer=self.answer(entry),
            detail={
                "namespace": [*self.namespace],
                "name": self.name,
                "entity": entry.entity,
                "purge": self.purge,
            },
            about=(entry.entity, entry.uuid),
            marks=(entry.entity,),
        )


class _Unregister(Drop):
    """A drop that remembers which entity it dropped."""

    def answer(self, entry: RelationEntry) -> Answer:
        return Document(200, {"entity": entry.entity})
