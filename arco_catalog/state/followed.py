"""Tables of catalogs that follow others: the registry keeps where each stands, beside its name, by one and the same
commit (docs/design/polaris.md#notifications). They have no pointer."""

from dataclasses import dataclass

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.entries import find_relation
from arco_catalog.state.fields import integer, mapping, text
from arco_catalog.state.index import Edits, Index, Namespace, level, relation_key, tombstones_of
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.stored_fields import keep_stored_fields

FIELD = "follows"


@dataclass(frozen=True, slots=True)
class Followed:
    """The metadata file that is current in the other catalog, and the time of the notification that said so, by the
    clock of its sender."""

    metadata: MetadataFile
    notified: int

    @classmethod
    def of(cls, relation: JsonObject) -> "Followed | None":
        """What an entry, or a tombstone, says; None for a table that this catalog owns."""
        said = relation.get(FIELD)
        if not said or not isinstance(said, dict):
            return None
        file = MetadataFile(text(said, "metadata_location"), integer(said, "metadata_ms"))
        return cls(file, integer(said, "notified"))

    def written(self, relation: JsonObject) -> JsonObject:
        """The entry with this in it."""
        said: JsonObject = {
            **mapping(relation, FIELD),
            "metadata_location": self.metadata.location,
            "metadata_ms": self.metadata.ms,
            "notified": self.notified,
        }
        return {**relation, FIELD: said}

    def pointer(self, entity: str, kind: str) -> Pointer:
        """A pointer for those who read one; none is stored."""
        return Pointer.first(entity=entity, kind=kind, move="", metadata=self.metadata, summary={})


def notified_key(namespace: Namespace, name: str) -> str:
    """Key of the time that is kept of a name when a followed table's tombstone has been collected."""
    return level("notified", namespace) + name


def notified_edits(index: Index, namespace: Namespace, name: str, at: int) -> Steps[Edits]:
    """Edits that keep the time of the last notification for a name that nothing else tells it of."""
    return (yield from keep_stored_fields(index, {notified_key(namespace, name): {"notified": at}}))


def last_notified(index: Index, namespace: Namespace, name: str) -> Steps[int | None]:
    """The time of the last notification that was admitted for a name, be it of a table that was dropped and collected;
    None if there was none."""
    kept, dropped = notified_key(namespace, name), tombstones_of(namespace, name)
    yield Needs(keys=[relation_key(namespace, name), kept], scans=[Scan(dropped)])
    live, floor = find_relation(index, namespace, name), index.get(kept)
    known = [stone for _, stone in index.scan(dropped)] + ([] if live is None else [live.json])
    times = [followed.notified for followed in map(Followed.of, known) if followed is not None]
    return max(times + ([] if floor is None else [integer(floor, "notified")]), default=None)
