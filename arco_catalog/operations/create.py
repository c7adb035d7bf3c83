"""Creates tables and views: at once, staged, or by the commit that finishes a staged table
(docs/design/registry.md#rule-1)."""

from collections.abc import Sequence
from dataclasses import replace

from arco_catalog.iceberg import table, view
from arco_catalog.iceberg.errors import Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import STRING, Fields
from arco_catalog.planning.answers import Answer, Document, TableState
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.creation import Creator, RelationDraft
from arco_catalog.planning.creators import NewTable, NewView, TableFromCommit
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.protocol.mutation import NoOp, Prerequisite
from arco_catalog.protocol.registry_mutation import RegistryMutation, RegistryReadSet
from arco_catalog.state.entries import PendingTransaction
from arco_catalog.state.index import Edits, Namespace
from arco_catalog.state.locations import Location
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.needs import Steps
from storage_backends.lazy_dataclass import dataclass


async def create_table(session: Session, namespace: Namespace, request: JsonObject) -> Answer:
    """Applies a CreateTableRequest, and returns the new table's state. With `stage-create` it returns a `Document` with
    the metadata and an empty `config`, and creates nothing, but may commit that locations are shared. Raises
    `NoSuchNamespace`, `AlreadyExists`, `BadRequest` for an invalid request and for a location that is taken or not
    allowed, and `Forbidden` for a location that the caller may not choose."""
    name = Fields(request, "request").required("name", STRING)
    wanted = await session.parsed(lambda body, _: table.parse_create_table(body), request)
    creator = NewTable(session.context, namespace, name, wanted)
    return await run(session, _Staging(session, creator) if wanted.stage else Creation(session, creator))


async def create_from_commit(session: Session, namespace: Namespace, name: str, commit: table.Commit) -> Answer:
    """Creates the table that the updates of a commit with `assert-create` build, and returns the table's state. Raises
    the errors of `create_table`, but `CommitFailed` if a table has the name."""
    creator = TableFromCommit(session.context, namespace, name, commit)
    return await run(session, Creation(session, creator, created=False))


async def create_view(session: Session, namespace: Namespace, request: JsonObject) -> Answer:
    """Applies a CreateViewRequest, and returns the new view's state. Raises the errors of `create_table`."""
    wanted = await session.parsed(lambda body, _: view.parse_create_view(body), request)
    return await run(session, Creation(session, NewView(session.context, namespace, wanted)))


class Creation(RegistryMutation):
    """The creation of one table or view, by one commit of the registry that adds its name."""

    def __init__(self, session: Session, creator: Creator, *, created: bool = True) -> None:
        super().__init__(session)
        self.creator = creator
        self.created = created
        self.kind = f"create-{creator.semantics.kind}"

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Drafts the table or view, and plans the change that adds the name, the locations and the marks of shared
        locations. Raises `Refusal` if the namespace does not exist, a name or location can't be had,
        or the metadata is not valid, `PendingTransaction`, and `StoreUnavailable` past the deadline."""
        index = read_set.head.index
        draft = yield from self.creator.draft(index, attempt, self.session.check_deadline)
        marks = yield from self.creator.shared_marks(index, draft.locations, draft.entity)
        return self._change(draft, {**self.creator.edits(index, draft), **marks})

    async def write_set(self, read_set: RegistryReadSet, attempt: Attempt) -> WriteSet:
        """Plans the creation to find out the ids, and returns the registry's sequence number, with the entity and the
        metadata file that the attempt creates; without them if the request can't be planned. Writes nothing."""
        registry, drafting = read_set.head.sequence, self.change(read_set, attempt.at(self.session.now_ms()))
        size = self.session.request.body_bytes
        try:
            change = await carry_out(self.state, read_set.head.index, drafting, size)
        except (Refusal, PendingTransaction):  # a request that can't be planned creates nothing
            return WriteSet(registry=registry)
        return WriteSet(registry=registry, creates=change.creates)

    def change_again(self, planned: Change, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Checks the table or view that was drafted before against the present registry, and returns the planned change
        with edits for that registry. Raises the refusals of that check, and `PendingTransaction`; drafts nothing
        anew."""
        assert isinstance(planned, _CreateChange)
        index, draft = read_set.head.index, planned.draft
        yield from self.creator.check(index, draft)
        marks = yield from self.creator.shared_marks(index, draft.locations, draft.entity)
        return replace(planned, edits={**self.creator.edits(index, draft), **marks})

    def _change(self, draft: RelationDraft, entries: Edits) -> Change:
        """Returns the change of the registry that creates the drafted table or view: by these entries of the index,
        with the writes of files before the commit, the receipt after it, and the response."""
        creator, file = self.creator, draft.new.file
        return _CreateChange(
            edits=entries,
            answer=TableState(draft.entity, file.location, draft.new.body, created=self.created),
            detail={"namespace": [*creator.namespace], "name": creator.name, "entity": draft.entity},
            first=draft.first_writes,
            after=[draft.receipts.committed],
            about=(draft.entity, creator.semantics.uuid(draft.new.document)),
            creates=(draft.entity, file.location),
            draft=draft,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _CreateChange(Change):
    draft: RelationDraft


class _Staging(RegistryMutation):
    """The staging of a table (`stage-create`), which makes no table: it checks the name and locations, and answers with
    metadata. It uses an entity id for the default location alone: the commit that creates the table has an id of its
    own, and names the staged location explicitly. If the client chooses a location inside one that was made for another
    table, the location is marked as shared before the client may write there (docs/design/purge.md#rule-17)."""

    kind = "stage-table"

    def __init__(self, session: Session, creator: Creator) -> None:
        super().__init__(session)
        self.creator = creator

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[NoOp | Prerequisite]:
        """Checks the name and the locations. Returns a `NoOp` with the metadata for the response, or a `Prerequisite`
        that marks locations as shared, after which the plan is made again. Raises `Refusal`, `PendingTransaction`, and
        `StoreUnavailable` past the deadline."""
        creator, index = self.creator, read_set.head.index
        yield from creator.check_name(index)
        document = creator.document(index, attempt, self.session.check_deadline)
        locations = creator.locations(document)
        yield from creator.check_locations(index, locations, attempt.entity)
        if (yield from creator.shared_marks(index, locations, attempt.entity)):
            return Prerequisite(lambda: self._mark_shared(locations, attempt.entity))
        return NoOp(Document(200, {"metadata": document, "config": {}}))

    async def _mark_shared(self, locations: Sequence[Location], entity: str) -> None:
        """Makes a registry commit that records which of the locations of a staged table are shared with other
        tables."""
        creator = self.creator
        detail: JsonObject = {"namespace": [*creator.namespace], "name": creator.name}
        await change_registry(
            self.session,
            "share-locations",
            detail,
            lambda head: creator.shared_marks(head.index, locations, entity),
        )
