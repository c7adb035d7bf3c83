"""The differences between the metadata of tables and of views, which share all protocols
(docs/design/state.md#entities)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from arco_catalog.iceberg import table, view
from arco_catalog.iceberg.checkpoint import Checkpoint, no_deadline
from arco_catalog.iceberg.errors import Refusal
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.requirements import AssertRefSnapshotId
from arco_catalog.planning.names import name_taken, not_of_kind
from arco_catalog.state.entries import Kind
from arco_catalog.state.index import Index, Namespace
from storage_backends.lazy_dataclass import dataclass

AnyCommit = table.Commit | view.ViewCommit


@dataclass(frozen=True, slots=True)
class Base:
    """The base of a commit, the current state of a table or view: the metadata document, the location of its metadata
    file, and the full name of the table or view."""

    document: JsonObject
    file: str
    name: str


class Semantics(ABC):
    """The interface of the operations on metadata that differ between tables and views."""

    kind: Kind

    @abstractmethod
    def apply(self, base: Base, commit: AnyCommit, now_ms: int, checkpoint: Checkpoint) -> JsonObject | None:
        """Returns the metadata of a table or view after a commit on `base`, None if the commit changes nothing. Raises
        `Refusal`, and what `checkpoint` raises."""

    @abstractmethod
    def check_registered(self, document: JsonValue, checkpoint: Checkpoint = no_deadline) -> JsonObject:
        """Checks the JSON of a metadata file from which a table or view is to be registered, and returns it as an
        object. Raises `BadRequest`, and what `checkpoint` raises."""

    @abstractmethod
    def uuid(self, document: JsonObject) -> str | None:
        """Returns the uuid in the metadata of a table or view, None if it has none."""

    @abstractmethod
    def ms(self, document: JsonObject, base_ms: int | None, now_ms: int) -> int:
        """Returns the time of a metadata file with this document, in milliseconds, which is always later than
        `base_ms`, the time of the file that it replaces (None for a new table or view). `now_ms` is the present
        time."""

    @abstractmethod
    def summary(self, document: JsonObject) -> JsonObject:
        """Returns the fields of the metadata that a pointer repeats (docs/design/state.md#pointers)."""

    @abstractmethod
    def explicit_locations(self, commit: AnyCommit) -> Sequence[str]:
        """Returns the locations that a commit names: of the table or view, and in properties that direct writers."""

    def required_refs(self, commit: AnyCommit) -> Sequence[AssertRefSnapshotId]:
        """Returns the requirements of a commit on branches and tags; only some of them if there are many. Empty unless
        the commit is of a table."""
        return ()

    def requests_rebase(self, commit: AnyCommit) -> bool:
        """Whether a commit of two updates requests that its append is rebased; False for any other commit, and unless
        it is of a table."""
        return False

    def added_snapshots(self, commit: AnyCommit) -> Sequence[int]:
        """Returns the ids of the snapshots that a commit adds; empty for views."""
        return ()

    def engine(self, commit: AnyCommit) -> str | None:
        """Returns the engine that one of the first summaries of a commit's new snapshots names; None if none does, and
        for commits of views."""
        return None

    def files_that_left_the_log(
        self, base: JsonObject, document: JsonObject, *, base_file: str, registered_from: str | None
    ) -> Sequence[str]:
        """Returns the metadata files in the log of `base` that the log of `document` does not have, that the table has
        written itself, and that may be deleted once `document` is committed on `base`, the document in the file
        `base_file`. `registered_from` is the file from which the table was registered, None if it was not; it and the
        files before it are not the table's own. Empty for views, and unless the properties request the deletion."""
        return ()

    def logged_files(self, document: JsonObject) -> Sequence[str]:
        """Returns the earlier metadata files that a document lists; empty for views."""
        return ()

    def leading_files(self, document: JsonObject) -> Sequence[str]:
        """Returns the manifest lists, manifests of old snapshots without a list, and statistics files to which a
        document refers; empty for views."""
        return ()

    def added_leading_files(self, commit: AnyCommit) -> Sequence[str]:
        """Returns the manifest lists, manifests of old snapshots without a list, and statistics files that a commit
        adds; empty for views."""
        return ()

    def no_such(self, index: Index, namespace: Namespace, name: str) -> Refusal:
        """Returns the error for a name without an entity of this kind. Its entry must be loaded."""
        return not_of_kind(index, self.kind, namespace, name)

    def name_taken(self, by: str, namespace: Namespace, name: str) -> Refusal:
        """Returns the error for creating an entity of this kind under a name that an entity of the kind `by` has."""
        return name_taken(self.kind, by, namespace, name)


class TableSemantics(Semantics):
    """The operations on the metadata of tables."""

    kind: Kind = "table"

    def apply(self, base: Base, commit: AnyCommit, now_ms: int, checkpoint: Checkpoint) -> JsonObject | None:
        """Returns the metadata of a table after a commit on `base`, None if the commit changes nothing. Raises
        `Refusal`, and what `checkpoint` raises."""
        assert isinstance(commit, table.Commit)
        return table.apply_commit(
            base.document, commit, now_ms=now_ms, base_location=base.file, name=base.name, checkpoint=checkpoint
        )

    def check_registered(self, document: JsonValue, checkpoint: Checkpoint = no_deadline) -> JsonObject:
        """Returns the JSON of a metadata file as that of a table that can be registered. Raises the errors of
        `table.check_registered`."""
        return table.check_registered(document, checkpoint)

    def uuid(self, document: JsonObject) -> str | None:
        """Returns the uuid of the table, None if the metadata, which then have format version 1, have none."""
        return table.table_uuid(document)

    def ms(self, document: JsonObject, base_ms: int | None, now_ms: int) -> int:
        """Returns the time that the metadata state (`last-updated-ms`), in milliseconds; the other arguments do not
        matter."""
        return table.last_updated_ms(document)

    def summary(self, document: JsonObject) -> JsonObject:
        """Returns the fields that a table's pointer repeats: uuid, current snapshot, refs and last sequence number."""
        return {
            "table_uuid": table.table_uuid(document),
            "current_snapshot_id": table.current_snapshot_id(document),
            "refs": table.refs(document),
            "last_sequence_number": table.last_sequence_number(document),
        }

    def required_refs(self, commit: AnyCommit) -> Sequence[AssertRefSnapshotId]:
        """Returns the requirements of a commit to a table on branches and tags; only some of them if there are many."""
        assert isinstance(commit, table.Commit)
        return table.required_refs(commit)

    def requests_rebase(self, commit: AnyCommit) -> bool:
        """Whether the commit to a table has two updates and requests that its append is rebased."""
        assert isinstance(commit, table.Commit)
        return table.requests_rebase(commit)

    def explicit_locations(self, commit: AnyCommit) -> Sequence[str]:
        """Returns the locations that a commit to a table names: of the table, and in properties that direct writers."""
        assert isinstance(commit, table.Commit)
        return table.explicit_locations(commit)

    def added_snapshots(self, commit: AnyCommit) -> Sequence[int]:
        """Returns the ids of the snapshots that a commit to a table adds."""
        assert isinstance(commit, table.Commit)
        return table.added_snapshot_ids(commit)

    def engine(self, commit: AnyCommit) -> str | None:
        """Returns the engine of the new snapshots, such as `spark/3.5.1`, by the first of the first 100 summaries that
        names one, or `trino` by the field of a Trino query; None if none of them has either."""
        assert isinstance(commit, table.Commit)
        return table.engine_of(commit)

    def files_that_left_the_log(
        self, base: JsonObject, document: JsonObject, *, base_file: str, registered_from: str | None
    ) -> Sequence[str]:
        """Returns the metadata files that the table has written itself and that may be deleted once `document` is
        committed; none unless the table's properties request that."""
        return table.files_that_left_the_log(base, document, old_file=base_file, registered_from=registered_from)

    def logged_files(self, document: JsonObject) -> Sequence[str]:
        """Returns the earlier metadata files in the table's metadata log."""
        return table.logged_files(document)

    def leading_files(self, document: JsonObject) -> Sequence[str]:
        """Returns the manifest lists, the manifests of old snapshots without a list, and the statistics files to which
        a table's metadata refer."""
        return table.leading_files(document)

    def added_leading_files(self, commit: AnyCommit) -> Sequence[str]:
        """Returns the manifest lists, the manifests of old snapshots without a list, and the statistics files that a
        commit to a table adds."""
        assert isinstance(commit, table.Commit)
        return table.added_leading_files(commit)


class ViewSemantics(Semantics):
    """The operations on the metadata of views, which has no time; the pointer stores one instead."""

    kind: Kind = "view"

    def apply(self, base: Base, commit: AnyCommit, now_ms: int, checkpoint: Checkpoint) -> JsonObject | None:
        """Returns the metadata of a view after a commit on `base`, None if the commit changes nothing. Raises
        `Refusal`, and what `checkpoint` raises."""
        assert isinstance(commit, view.ViewCommit)
        return view.apply_view_commit(base.document, commit, now_ms=now_ms, name=base.name, checkpoint=checkpoint)

    def check_registered(self, document: JsonValue, checkpoint: Checkpoint = no_deadline) -> JsonObject:
        """Returns the JSON of a metadata file as that of a view that can be registered. Raises the errors of
        `view.check_registered_view`."""
        return view.check_registered_view(document, checkpoint)

    def uuid(self, document: JsonObject) -> str | None:
        """Returns the uuid of the view, never None: the metadata of a view always have one."""
        return view.view_uuid(document)

    def ms(self, document: JsonObject, base_ms: int | None, now_ms: int) -> int:
        """Returns the present time, or one millisecond after the file that this one replaces if that is later."""
        return now_ms if base_ms is None else max(now_ms, base_ms + 1)

    def summary(self, document: JsonObject) -> JsonObject:
        """Returns the fields that a view's pointer repeats: uuid and current version."""
        return {"view_uuid": view.view_uuid(document), "current_version_id": view.current_version_id(document)}

    def explicit_locations(self, commit: AnyCommit) -> Sequence[str]:
        """Returns the locations that a commit to a view names."""
        assert isinstance(commit, view.ViewCommit)
        return view.explicit_locations(commit)


TABLES = TableSemantics()
VIEWS = ViewSemantics()
