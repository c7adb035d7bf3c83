"""What one request changes of the registry: entries of its index, and objects written beside that."""

from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.answers import Answer
from arco_catalog.planning.writes import PlannedWrite
from arco_catalog.state.entries import RelationEntry, find_namespace
from arco_catalog.state.holds import released_holds
from arco_catalog.state.index import Edits, Namespace, namespace_key, tombstone_key
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.registry import RegistryState


@dataclass(frozen=True, slots=True)
class Change:
    """What one operation changes: index entries, and objects written before and, at best effort, after the commit.

    `detail` is what the registry's history says of it; `about` is the entity that it is about, with the uuid that
    clients know, if it is about one; `marks` are the entities whose pointers are marked dropped behind it, and
    `creates` is the entity and metadata file that a create or register makes.
    """

    edits: Edits
    answer: Answer
    detail: JsonObject
    first: Sequence[PlannedWrite] = ()
    after: Sequence[PlannedWrite] = ()
    about: tuple[str, str | None] | None = None
    marks: tuple[str, ...] = ()
    creates: tuple[str, str] | None = None

    def is_made_by(self, planned: "Change") -> bool:
        """Whether it may be made in place of what was planned: what was written for that, declared as its write set and
        is to be answered is this one's, too."""
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
    """Edits that leave a tombstone in place of what had the name; the name's own entry is the caller's."""
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
