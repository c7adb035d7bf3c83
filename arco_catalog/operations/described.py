"""Loads and drops generic tables and semantic models: relations of which the catalog stores a description alone, no
pointer, no metadata file, no commits (docs/design/polaris.md)."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.named_change import NamedChange
from arco_catalog.planning.answers import Answer, Document
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.names import no_such
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.protocol.relation_read_set import RelationLookup, resolve_name
from arco_catalog.state.entries import DescribedKind, RelationEntry, find_kind
from arco_catalog.state.index import Namespace
from arco_catalog.state.needs import Needs, Steps
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DescribedRelation:
    """A generic table or a semantic model: the registry's entry of it, and the document that describes it."""

    entry: RelationEntry
    value: JsonObject


async def load_described(session: Session, kind: DescribedKind, namespace: Namespace, name: str) -> DescribedRelation:
    """Returns the relation of this kind that has the name. Raises the kind's "does not exist" (`NoSuchTable`,
    `NoSuchSemanticModel`)."""
    head = await session.head()
    entry = await resolve_name(session, head, RelationLookup(namespace, name, kind, writing=False))
    if entry is None:
        raise no_such(kind, namespace, name)
    return DescribedRelation(entry, await session.state.description(kind, entry.value))


async def drop_described(session: Session, kind: DescribedKind, namespace: Namespace, name: str) -> Answer:
    """Removes the name of the relation of this kind, and leaves a tombstone; deletes no files. Raises the same errors
    as `load_described`."""
    return await run(session, _Drop(session, kind, namespace, name))


class _Drop(NamedChange):
    def __init__(self, session: Session, kind: DescribedKind, namespace: Namespace, name: str) -> None:
        super().__init__(session, namespace, name)
        self.kind = f"drop-{kind}"
        self.what = kind

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the drop of a generic table or semantic model, which leaves a tombstone and releases the locations.
        Raises `NoSuchTable` or `NoSuchSemanticModel` if none of the kind has the name."""
        head = read_set.head
        yield Needs(keys=[self.key])
        entry = find_kind(head.index, self.namespace, self.name, self.what)
        if entry is None:
            raise no_such(self.what, self.namespace, self.name)
        tombstone = yield from self.tombstone(head, entry, attempt)
        return Change(
            edits={self.key: None, **tombstone},
            answer=Document(204),
            detail=self.detail(entry.entity),
            about=(entry.entity, None),
        )
