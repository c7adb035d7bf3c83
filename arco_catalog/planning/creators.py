"""The ways to create a table or view: by a create request, and for a table also by a commit whose updates build it."""

from collections.abc import Iterable
from dataclasses import replace

from arco_catalog.iceberg import table, view
from arco_catalog.iceberg.checkpoint import Checkpoint
from arco_catalog.iceberg.errors import CommitFailed, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.updates import SetLocation
from arco_catalog.planning.context import Context
from arco_catalog.planning.creation import Creator
from arco_catalog.planning.kinds import TABLES, VIEWS
from arco_catalog.planning.names import dotted
from arco_catalog.state.index import Namespace


class NewTable(Creator):
    """Plans the creation of a table from a CreateTableRequest."""

    def __init__(self, context: Context, namespace: Namespace, name: str, wanted: table.CreateTable) -> None:
        super().__init__(context, TABLES, namespace, name)
        self.wanted = wanted

    def make(self, location: str, uuid: str, now_ms: int, checkpoint: Checkpoint) -> JsonObject:
        """Returns the first metadata of the table that the request describes, at the location that it names, or else at
        this one."""
        return table.new_table_metadata(
            self.wanted,
            location=self.wanted.location or location,
            table_uuid=uuid,
            now_ms=now_ms,
            checkpoint=checkpoint,
        )

    def named_locations(self) -> Iterable[str]:
        """Returns the locations that the request names: of the table, and in properties that direct writers."""
        return table.explicit_locations(self.wanted)


class TableFromCommit(Creator):
    """Plans the creation of a table from the updates of a commit, as for a staged table."""

    def __init__(self, context: Context, namespace: Namespace, name: str, commit: table.Commit) -> None:
        super().__init__(context, TABLES, namespace, name)
        self.commit = commit
        self.requirements = commit.requirement_types
        self.updates = commit.actions
        self.engine = table.engine_of(commit)

    def already_there(self) -> Refusal:
        """Returns the error for a name that a table has already: the commit's requirement that there is none fails."""
        return CommitFailed("Requirement failed: table already exists")

    def make(self, location: str, uuid: str, now_ms: int, checkpoint: Checkpoint) -> JsonObject:
        """Returns the metadata that the commit's updates build, at this location unless an update sets one, and with
        this uuid unless an update assigns one. Raises the errors of `table.apply_commit`, also for a commit without
        updates, since the table has no schema then."""
        commit = self.commit
        if not any(isinstance(update, SetLocation) for update in commit.updates):
            commit = replace(commit, updates=(SetLocation(location), *commit.updates))
        document = table.apply_commit(
            None,
            commit,
            now_ms=now_ms,
            base_location=None,
            name=dotted(self.namespace, self.name),
            new_uuid=uuid,
            checkpoint=checkpoint,
        )
        assert document is not None  # the commit sets a location, so it changes something
        return document

    def named_locations(self) -> Iterable[str]:
        """Returns the locations that the commit's updates name: of the table, and in properties that direct writers."""
        return table.explicit_locations(self.commit)

    def leading_files(self) -> Iterable[str]:
        """Returns the manifest lists, manifests of old snapshots without a list, and statistics files that the commit
        adds."""
        return table.added_leading_files(self.commit)


class NewView(Creator):
    """Plans the creation of a view from a CreateViewRequest."""

    def __init__(self, context: Context, namespace: Namespace, wanted: view.CreateView) -> None:
        super().__init__(context, VIEWS, namespace, wanted.name)
        self.wanted = wanted

    def make(self, location: str, uuid: str, now_ms: int, checkpoint: Checkpoint) -> JsonObject:
        """Returns the first metadata of the view that the request describes, at the location that it names, or else at
        this one."""
        return view.new_view_metadata(
            self.wanted,
            location=self.wanted.location or location,
            view_uuid=uuid,
            now_ms=now_ms,
            checkpoint=checkpoint,
        )

    def named_locations(self) -> Iterable[str]:
        """Returns the locations that the request for a view names."""
        return view.explicit_locations(self.wanted)
