"""A version of a table or view: a metadata file that a commit made current, with the fields of the row in the system
table `commits`."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from arco_catalog.iceberg.json import JsonObject
from reconciler.system.definition import Row


class MissingMetadata(Enum):
    """Why the job `compact` has no metadata of a version: the file does not exist, or it cannot be read: it is corrupt,
    too large, or in no store of the catalog. The values are those of the column `metadata_gone`."""

    GONE = True
    UNREADABLE = None


Metadata = JsonObject | MissingMetadata
"""The document of a metadata file, or why there is none."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a table or view, which is one metadata file. `previous` is whether a metadata file was current
    before it, `restored` whether its receipt was written without knowledge of the commit. `newest` is whether it is the
    newest known version of the entity, and `newest_schema` whether it is the newest known one that set a schema: their
    rows are marked as current. Both are False until `with_newest` has found them."""

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
    def commit_columns(self) -> Row:
        """The columns of the commit that made this version."""
        return {
            "entity": self.entity,
            "commit_key": self.commit_key,
            "committed_at": self.committed_ms,
            "namespace": self.namespace,
            "name": self.name,
        }

    @property
    def columns(self) -> Row:
        """The columns of this version that all tables with a row for each version have."""
        return {**self.commit_columns, "metadata_location": self.metadata_location, "current": self.newest}

    @property
    def sets_schema(self) -> bool:
        """Whether this version may have another schema than the version before it. It may if it is the first one, if
        its receipt was written without knowledge of the commit, or if the commit had an update of schemas or view
        versions."""
        changes = {"add-schema", "set-current-schema", "add-view-version", "set-current-view-version"}
        return self.restored or not self.previous or not changes.isdisjoint(self.updates)
