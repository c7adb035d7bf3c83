"""A version of a table or view: one metadata file that a commit made current, and what `commits` says of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from arco_catalog.iceberg.json import JsonObject
from reconciler.system.definition import Row


class Lost(Enum):
    """Why there is no metadata: its file is gone, or it is there and can't be read. The values are what rows say of it
    (`metadata_gone`)."""

    GONE = True
    UNREADABLE = None


Metadata = JsonObject | Lost
"""What a metadata file holds."""


@dataclass(frozen=True, slots=True)
class Version:
    """`newest` says that it is the entity's newest version that is known, `newest_schema` that no newer one has set
    another schema: so rows are marked as current."""

    entity: str
    is_view: bool
    commit_key: str
    committed_ms: int
    namespace: str | None
    name: str | None
    uuid: str | None
    metadata_location: str
    previous: bool
    snapshot_id: int | None
    added_snapshot_ids: Sequence[int]
    updates: Sequence[str]
    restored: bool
    newest: bool = False
    newest_schema: bool = False

    @property
    def columns(self) -> Row:
        """The columns that every table of versions has."""
        return {
            "entity": self.entity,
            "commit_key": self.commit_key,
            "committed_at": self.committed_ms,
            "namespace": self.namespace,
            "name": self.name,
            "metadata_location": self.metadata_location,
            "current": self.newest,
        }

    @property
    def sets_schema(self) -> bool:
        """Whether this version may have another schema than the one before. Of a restored receipt nothing is known."""
        changes = {"add-schema", "set-current-schema", "add-view-version", "set-current-view-version"}
        return self.restored or not self.previous or not changes.isdisjoint(self.updates)
