"""Tables and views: the same protocols over two kinds of metadata (docs/design/state.md#entities)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.iceberg import table, view
from arco_catalog.iceberg.checkpoint import Checkpoint, no_deadline
from arco_catalog.iceberg.errors import Refusal
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.requirements import AssertRefSnapshotId
from arco_catalog.planning.names import name_taken, not_of_kind
from arco_catalog.state.entries import Kind
from arco_catalog.state.index import Index, Namespace

AnyCommit = table.Commit | view.ViewCommit


@dataclass(frozen=True, slots=True)
class Base:
    """What a commit is applied to: a document, the file that holds it, and the name that clients have for it."""

    document: JsonObject
    file: str
    name: str


class Semantics(ABC):
    """What differs between the metadata of tables and that of views."""

    kind: Kind

    @abstractmethod
    def apply(self, base: Base, commit: AnyCommit, now_ms: int, checkpoint: Checkpoint) -> JsonObject | None:
        """The next metadata, None if nothing changes. Raises `Refusal`, and what `checkpoint` does."""

    @abstractmethod
    def check_registered(self, document: JsonValue, checkpoint: Checkpoint = no_deadline) -> JsonObject:
        """The metadata in a file that somebody registers. Raises `BadRequest`, and what `checkpoint` does."""

    @abstractmethod
    def uuid(self, document: JsonObject) -> str | None:
        """The uuid that clients know."""

    @abstractmethod
    def ms(self, document: JsonObject, base_ms: int | None, now_ms: int) -> int:
        """The file's own time, always later than its base's."""

    @abstractmethod
    def summary(self, document: JsonObject) -> JsonObject:
        """What a pointer repeats of its metadata (docs/design/state.md#pointers)."""

    @abstractmethod
    def explicit_locations(self, commit: AnyCommit) -> Sequence[str]:
        """Locations that a commit names."""

    def required_refs(self, commit: AnyCommit) -> Sequence[AssertRefSnapshotId]:
        """What a commit requires of branches and tags; a few, if there are many."""
        return ()

    def added_snapshots(self, commit: AnyCommit) -> Sequence[int]:
        """Ids of the snapshots that a commit adds."""
        return ()

    def engine(self, commit: AnyCommit) -> str | None:
        """Which engine made the snapshots that a commit adds, where they say so."""
        return None

    def files_that_left_the_log(
        self, base: JsonObject, document: JsonObject, *, base_file: str, registered_from: str | None
    ) -> Sequence[str]:
        """Metadata files that the table made, and that may be deleted once `document` is committed."""
        return ()

    def logged_files(self, document: JsonObject) -> Sequence[str]:
        """The earlier metadata files that a document lists."""
        return ()

    def leading_files(self, document: JsonObject) -> Sequence[str]:
        """The files that a document leads to at once."""
        return ()

    def added_leading_files(self, commit: AnyCommit) -> Sequence[str]:
        """Those of these that a commit adds."""
        return ()

    def no_such(self, index: Index, namespace: Namespace, name: str) -> Refusal:
        """The refusal for a name that means nothing of this kind; its entry is loaded."""
        return not_of_kind(index, self.kind, namespace, name)

    def name_taken(self, by: str, namespace: Namespace, name: str) -> Refusal:
        """The refusal for a name that is taken."""
        return name_taken(self.kind, by, namespace, name)


class TableSemantics(Semantics):
    """Tables."""

    kind: Kind = "table"

    def apply(self, base: Base, commit: AnyCommit, now_ms: int, checkpoint: Checkpoint) -> JsonObject | None:
        assert isinstance(commit, table.Commit)
        return table.apply_commit(
            base.document, commit, now_ms=now_ms, base_location=base.file, name=base.name, checkpoint=checkpoint
        )

    def check_registered(self, document: JsonValue, checkpoint: Checkpoint = no_deadline) -> JsonObject:
        return table.check_registered(document, checkpoint)

    def uuid(self, document: JsonObject) -> str | None:
        return table.table_uuid(document)

    def ms(self, document: JsonObject, base_ms: int | None, now_ms: int) -> int:
        return table.last_updated_ms(document)

    def summary(self, document: JsonObject) -> JsonObject:
        return {
            "table_uuid": table.table_uuid(document),
            "current_snapshot_id": table.current_snapshot_id(document),
            "refs": table.refs(document),
            "last_sequence_number": table.last_sequence_number(document),
        }

    def required_refs(self, commit: AnyCommit) -> Sequence[AssertRefSnapshotId]:
        assert isinstance(commit, table.Commit)
        return table.required_refs(commit)

    def explicit_locations(self, commit: AnyCommit) -> Sequence[str]:
        assert isinstance(commit, table.Commit)
        return table.explicit_locations(commit)

    def added_snapshots(self, commit: AnyCommit) -> Sequence[int]:
        assert isinstance(commit, table.Commit)
        return table.added_snapshot_ids(commit)

    def engine(self, commit: AnyCommit) -> str | None:
        assert isinstance(commit, table.Commit)
        return table.engine_of(commit)

    def files_that_left_the_log(
        self, base: JsonObject, document: JsonObject, *, base_file: str, registered_from: str | None
    ) -> Sequence[str]:
        return table.files_that_left_the_log(base, document, old_file=base_file, registered_from=registered_from)

    def logged_files(self, document: JsonObject) -> Sequence[str]:
        return table.logged_files(document)

    def leading_files(self, document: JsonObject) -> Sequence[str]:
        return table.leading_files(document)

    def added_leading_files(self, commit: AnyCommit) -> Sequence[str]:
        assert isinstance(commit, table.Commit)
        return table.added_leading_files(commit)


class ViewSemantics(Semantics):
    """Views. Their metadata has no time of its own: it is kept in the pointer."""

    kind: Kind = "view"

    def apply(self, base: Base, commit: AnyCommit, now_ms: int, checkpoint: Checkpoint) -> JsonObject | None:
        assert isinstance(commit, view.ViewCommit)
        return view.apply_view_commit(base.document, commit, now_ms=now_ms, name=base.name, checkpoint=checkpoint)

    def check_registered(self, document: JsonValue, checkpoint: Checkpoint = no_deadline) -> JsonObject:
        return view.check_registered_view(document, checkpoint)

    def uuid(self, document: JsonObject) -> str | None:
        return view.view_uuid(document)

    def ms(self, document: JsonObject, base_ms: int | None, now_ms: int) -> int:
        return now_ms if base_ms is None else max(now_ms, base_ms + 1)

    def summary(self, document: JsonObject) -> JsonObject:
        return {"view_uuid": view.view_uuid(document), "current_version_id": view.current_version_id(document)}

    def explicit_locations(self, commit: AnyCommit) -> Sequence[str]:
        assert isinstance(commit, view.ViewCommit)
        return view.explicit_locations(commit)


TABLES = TableSemantics()
VIEWS = ViewSemantics()
