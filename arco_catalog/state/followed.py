"""Tables of an external catalog, which follow those of another catalog: a notification sets the current metadata file.
They have no pointer. The registry's entry of the name has the metadata file, so that one registry commit changes both
(docs/design/polaris.md#notifications)."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.entries import find_relation
from arco_catalog.state.fields import integer, mapping, text
from arco_catalog.state.index import Edits, Index, Namespace, level, relation_key, tombstones_of
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.stored_fields import keep_stored_fields
from storage_backends.lazy_dataclass import dataclass

FIELD = "follows"


@dataclass(frozen=True, slots=True)
class FollowedTable:
    """The current metadata file of a table that follows one of another catalog, and the time of the notification that
    set it, or in a tombstone that of the drop, in milliseconds since 1970 by the clock of its sender."""

    metadata: MetadataFile
    notified: int

    @classmethod
    def of(cls, relation: JsonObject) -> "FollowedTable | None":
        """Reads the metadata file and notification time from the entry or tombstone of a table that follows another
        catalog's; None for an entity that this catalog owns. Raises `InternalError` if the file or a time is
        missing."""
        stored = relation.get(FIELD)
        if not stored or not isinstance(stored, dict):
            return None
        file = MetadataFile(text(stored, "metadata_location"), integer(stored, "metadata_ms"))
        return cls(file, integer(stored, "notified"))

    def written(self, relation: JsonObject) -> JsonObject:
        """Returns the entry `relation` of a table that follows another catalog's, with this metadata file and the time
        of its notification. Other fields of the entry are kept."""
        stored: JsonObject = {
            **mapping(relation, FIELD),
            "metadata_location": self.metadata.location,
            "metadata_ms": self.metadata.ms,
            "notified": self.notified,
        }
        return {**relation, FIELD: stored}

    def pointer(self, entity: str, kind: str) -> Pointer:
        """Returns a pointer with the metadata file of a table that follows another catalog's, for code that reads
        pointers. It is never stored."""
        return Pointer.first(entity=entity, kind=kind, move="", metadata=self.metadata, summary={})


def notified_key(namespace: Namespace, name: str) -> str:
    """Returns the index key of the entry with the time of a name's last notification, which is written when the
    tombstone of its followed table is collected."""
    return level("notified", namespace) + name


def notified_edits(index: Index, namespace: Namespace, name: str, at: int) -> Steps[Edits]:
    """Returns the index changes that store the time of the last notification of a name, for when no entry or tombstone
    has it."""
    return (yield from keep_stored_fields(index, {notified_key(namespace, name): {"notified": at}}))


def last_notified(index: Index, namespace: Namespace, name: str) -> Steps[int | None]:
    """Returns the time, in milliseconds since 1970, of the last notification that was applied to a name, by the clock
    of its sender, also if the table was dropped and its tombstone collected since; None if there was none."""
    kept, dropped = notified_key(namespace, name), tombstones_of(namespace, name)
    yield Needs(keys=[relation_key(namespace, name), kept], scans=[Scan(dropped)])
    live, floor = find_relation(index, namespace, name), index.get(kept)
    known = [stone for _, stone in index.scan(dropped)] + ([] if live is None else [live.json])
    times = [followed.notified for followed in map(FollowedTable.of, known) if followed is not None]
    return max(times + ([] if floor is None else [integer(floor, "notified")]), default=None)
