"""Undoing a drop: the tombstone becomes the name again, as it was, until its purge begins (design.md 6.6)."""

from arco_catalog.iceberg.errors import AlreadyExists, CommitFailed, NoSuchTable, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.answers import Answer, Document
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.driver import run
from arco_catalog.operations.kinds import TABLES, VIEWS
from arco_catalog.operations.mutation import Attempt
from arco_catalog.operations.names import dotted, existing_namespace
from arco_catalog.operations.registry_change import Change, RegistryMutation, RegistryView
from arco_catalog.operations.reserve import refuse_overlap
from arco_catalog.state.entries import BURIAL, RelationEntry, find_relation, held_again, newest_tombstone
from arco_catalog.state.index import Index, Namespace, namespace_key, relation_key, tombstone_key, tombstones_of
from arco_catalog.state.locations import Location


async def undrop(session: Session, namespace: Namespace, name: str) -> Answer:
    """Brings back what was dropped last under this name. Raises `NoSuchTable` if nothing was, `AlreadyExists` if the
    name or one of its locations is taken, `CommitFailed` once its purge has begun."""
    return await run(session, _Undrop(session, namespace, name))


class _Undrop(RegistryMutation):
    kind = "undrop"

    def __init__(self, session: Session, namespace: Namespace, name: str) -> None:
        super().__init__(session)
        self.namespace = namespace
        self.name = name

    def change(self, view: RegistryView, attempt: Attempt) -> Change:
        index = view.head.index
        names = relation_key(self.namespace, self.name), tombstones_of(self.namespace, self.name)
        index.need(namespace_key(self.namespace), *names)
        existing_namespace(index, self.namespace)
        stone = self._newest(index)
        existing = find_relation(index, self.namespace, self.name)
        if existing is not None:
            kind = TABLES if stone.kind == "table" else VIEWS
            raise kind.name_taken(existing.standing().kind, self.namespace, self.name)
        locations = [Location.of_normal(location) for location in stone.locations]
        taken = refuse_overlap(self.session, index, locations)
        if taken is not None:
            raise AlreadyExists(taken)
        entry: JsonObject = {key: value for key, value in stone.json.items() if key not in BURIAL}
        return Change(
            edits={
                tombstone_key(self.namespace, self.name, stone.entity): None,
                relation_key(self.namespace, self.name): entry,
                **held_again(stone.entity, stone.locations, "live"),
            },
            answer=Document(204),
            detail={"namespace": [*self.namespace], "name": self.name, "entity": stone.entity},
        )

    def _newest(self, index: Index) -> RelationEntry:
        newest = newest_tombstone(stone for _, stone in index.scan(tombstones_of(self.namespace, self.name)))
        if newest is None:
            raise NoSuchTable(f"Nothing was dropped under the name {dotted(self.namespace, self.name)}")
        if newest.get("state") != "dropped":
            raise self._too_late()
        return RelationEntry(newest)

    def _too_late(self) -> Refusal:
        return CommitFailed(f"{dotted(self.namespace, self.name)} is being purged: it can't be brought back")
