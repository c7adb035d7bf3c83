"""Tables of catalogs that follow others: the registry keeps where each stands, beside its name, by one and the same
commit (docs/design/polaris.md#notifications). They have no pointer."""

from dataclasses import dataclass

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import integer, mapping, text
from arco_catalog.state.pointer import MetadataFile, Pointer

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
        said = mapping(relation, FIELD)
        if not said:
            return None
        file = MetadataFile(text(said, "metadata_location"), integer(said, "metadata_ms"))
        return cls(file, integer(said, "notified"))

    def written(self, relation: JsonObject) -> JsonObject:
        """The entry with this in it."""
        said: JsonObject = {
            "metadata_location": self.metadata.location,
            "metadata_ms": self.metadata.ms,
            "notified": self.notified,
        }
        return {**relation, FIELD: said}

    def pointer(self, entity: str, kind: str) -> Pointer:
        """A pointer for those who read one; none is stored."""
        return Pointer.first(entity=entity, kind=kind, move="", metadata=self.metadata, summary={})
