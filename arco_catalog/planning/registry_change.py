"""The change of the registry by one request: edits of the index, and objects that are written with them."""

from collections.abc import Sequence

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.answers import Answer
from arco_catalog.planning.writes import PlannedWrite
from arco_catalog.state.entries import RelationEntry, find_namespace
from arco_catalog.state.holds import released_holds
from arco_catalog.state.index import Edits, Namespace, namespace_key, tombstone_key
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.registry import RegistryState
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """The change of the registry by one operation: index changes, objects to write before the commit (`first`), and
    objects to write after it at best effort (`after`).

    `detail` goes into the registry's history. `about` is the operation's entity with the uuid of the metadata, None if
    it has none. The pointers of the entities in `marks` are marked as dropped after the commit. `creates` is the entity
    and metadata file of a create or register.
    """

    edits: Edits
    answer: Answer
    detail: JsonObject
    first: Sequence[PlannedWrite] = ()
    after: Sequence[PlannedWrite] = ()
    about: tuple[str, str | None] | None = None
    marks: tuple[str, ...] = ()
    creates: tuple[str, str] | None = None

    def may_replace(self, planned: "Change") -> bool:
        """Whether this change may replace a previous `planned` one of the same operation: it has the answer, the marks
        and the created entity of that, and needs no other objects written first. Index changes may differ."""
        return (
            self.answer == planned.answer
            and self.marks == planned.marks
            and self.creates == planned.creates
            and all(write in planned.first for write in self.first)
        )


def tombstone_edits(
    head: RegistryState,
    entry: RelationEntry,
    namespace: Namespace,
    name: str,
    *,
    operation: str,
    at_ms: int,
    purge: bool,
) -> Steps[Edits]:
    """Returns the index changes that add the tombstone of a dropped entity and release the entity's holds; with `purge`
    the tombstone shows that a purge was requested. The caller removes the entry of the name."""
    yield Needs(keys=[namespace_key(namespace)])
    found = find_namespace(head.index, namespace)
    namespace_entity = None if found is None else found.entity
    tombstone = entry.tombstone(
        namespace=namespace,
        namespace_entity=namespace_entity,
        name=name,
        operation=operation,
        sequence=head.sequence,
        place=head.place,
        at_ms=at_ms,
        purge=purge,
    )
    released = yield from released_holds(
        head.index, entry.entity, entry.locations, name=(*namespace, name), namespace_entity=namespace_entity
    )
    return {tombstone_key(namespace, name, entry.entity): tombstone, **released}
