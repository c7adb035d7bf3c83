"""Creating tables and views: outright, staged, and by the commit that finishes a staged table
(docs/design/registry.md#rule-1)."""

from collections.abc import Iterable
from dataclasses import replace

from arco_catalog.iceberg import table, view
from arco_catalog.iceberg.checkpoint import Checkpoint
from arco_catalog.iceberg.errors import CommitFailed, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import STRING, Fields
from arco_catalog.iceberg.updates import SetLocation
from arco_catalog.operations.creator import Creation, Creator
from arco_catalog.operations.kinds import TABLES, VIEWS
from arco_catalog.operations.names import dotted
from arco_catalog.operations.registry_change import RegistryMutation, RegistryReadSet
from arco_catalog.protocol.answers import Answer, Document
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.mutation import Attempt, NoOp
from arco_catalog.state.index import Namespace


async def create_table(session: Session, namespace: Namespace, request: JsonObject) -> Answer:
    """Carries out a CreateTableRequest; with `stage-create` nothing is made, and the answer has no location of a
    metadata file."""
    name = Fields(request, "request").required("name", STRING)
    wanted = await session.parsed(lambda body, _: table.parse_create_table(body), request)
    creator = _NewTable(session, namespace, name, wanted)
    return await run(session, _Staging(creator) if wanted.stage else Creation(creator))


async def create_from_commit(session: Session, namespace: Namespace, name: str, commit: table.Commit) -> Answer:
    """Creates the table that a commit with `assert-create` builds from nothing."""
    return await run(session, Creation(TableFromCommit(session, namespace, name, commit), created=False))


async def create_view(session: Session, namespace: Namespace, request: JsonObject) -> Answer:
    """Carries out a CreateViewRequest."""
    wanted = await session.parsed(lambda body, _: view.parse_create_view(body), request)
    return await run(session, Creation(_NewView(session, namespace, wanted)))


class _NewTable(Creator):
    def __init__(self, session: Session, namespace: Namespace, name: str, wanted: table.CreateTable) -> None:
        super().__init__(session, TABLES, namespace, name)
        self.wanted = wanted

    def make(self, location: str, uuid: str, checkpoint: Checkpoint) -> JsonObject:
        return table.new_table_metadata(
            self.wanted,
            location=self.wanted.location or location,
            table_uuid=uuid,
            now_ms=self.session.now_ms(),
            checkpoint=checkpoint,
        )

    def named_locations(self) -> Iterable[str]:
        return table.explicit_locations(self.wanted)


class TableFromCommit(Creator):
    """A table built from nothing by updates, as a staged one is."""

    def __init__(self, session: Session, namespace: Namespace, name: str, commit: table.Commit) -> None:
        super().__init__(session, TABLES, namespace, name)
        self.commit = commit
        self.requirements = commit.requirement_types
        self.updates = commit.actions
        self.engine = table.engine_of(commit)

    def already_there(self) -> Refusal:
        return CommitFailed("Requirement failed: table already exists")

    def make(self, location: str, uuid: str, checkpoint: Checkpoint) -> JsonObject:
        commit = self.commit
        if not any(isinstance(update, SetLocation) for update in commit.updates):
            commit = replace(commit, updates=(SetLocation(location), *commit.updates))
        document = table.apply_commit(
            None,
            commit,
            now_ms=self.session.now_ms(),
            base_location=None,
            name=dotted(self.namespace, self.name),
            new_uuid=uuid,
            checkpoint=checkpoint,
        )
        if document is None:
            raise CommitFailed("A commit that creates a table must have updates")
        return document

    def named_locations(self) -> Iterable[str]:
        return table.explicit_locations(self.commit)


class _NewView(Creator):
    def __init__(self, session: Session, namespace: Namespace, wanted: view.CreateView) -> None:
        super().__init__(session, VIEWS, namespace, wanted.name)
        self.wanted = wanted

    def make(self, location: str, uuid: str, checkpoint: Checkpoint) -> JsonObject:
        return view.new_view_metadata(
            self.wanted,
            location=self.wanted.location or location,
            view_uuid=uuid,
            now_ms=self.session.now_ms(),
            checkpoint=checkpoint,
        )

    def named_locations(self) -> Iterable[str]:
        return view.explicit_locations(self.wanted)


class _Staging(RegistryMutation):
    """Staging makes nothing. Its entity id serves the default location alone; the create that follows mints its own and
    takes the staged location as an explicit one."""

    kind = "stage-table"

    def __init__(self, creator: Creator) -> None:
        super().__init__(creator.session)
        self.creator = creator

    async def work(self, read_set: RegistryReadSet) -> None:
        await self.creator.work()

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> NoOp:
        index = read_set.head.index
        self.creator.check_name(index)
        document = self.creator.document(index, attempt.entity)
        self.creator.check_locations(index, self.creator.locations(document), attempt.entity)
        return NoOp(Document(200, {"metadata": document, "config": {}}))
