"""Commits to a table or view: one compare-and-swap of its pointer (docs/design/commit.md)."""

from arco_catalog.iceberg import table, view
from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.create import create_from_commit
from arco_catalog.operations.kinds import TABLES, VIEWS, AnyCommit, Semantics
from arco_catalog.operations.relation_change import RelationChange, UnchangedRelation
from arco_catalog.operations.relation_read_set import RelationLookup, RelationReadSet, read_relation, relation
from arco_catalog.protocol.answers import Answer, TableState
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.current_file import current_file
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.lookup import look_up
from arco_catalog.protocol.mutation import Attempt, Freshness, Mutation, NoOp, PlannedCommit, Prerequisite, Revalidate
from arco_catalog.state.index import Namespace
from arco_catalog.state.marker import WriteSet
from storage_backends import Applied, PreconditionFailed


async def commit_table(session: Session, namespace: Namespace, name: str, request: JsonObject) -> Answer:
    """Applies a CommitTableRequest; one with `assert-create` creates the table."""
    commit = await session.parsed(table.parse_commit, request)
    if commit.creates:
        return await create_from_commit(session, namespace, name, commit)
    async with session.lock_table(namespace, name):
        return await run(session, CommitRelation(session, TABLES, namespace, name, commit))


async def commit_view(session: Session, namespace: Namespace, name: str, request: JsonObject) -> Answer:
    """Applies a CommitViewRequest."""
    commit = await session.parsed(view.parse_view_commit, request)
    async with session.lock_table(namespace, name):
        return await run(session, CommitRelation(session, VIEWS, namespace, name, commit))


class CommitRelation(Mutation[RelationReadSet]):
    """One request's changes to one table or view."""

    def __init__(
        self, session: Session, semantics: Semantics, namespace: Namespace, name: str, commit: AnyCommit
    ) -> None:
        self.session = session
        self.change = RelationChange(session, semantics, namespace, name, commit)
        self.lookup = RelationLookup(namespace, name, semantics.kind, writing=True)

    async def read(self, freshness: Freshness) -> RelationReadSet:
        return await read_relation(self.session, self.lookup, freshness)

    def needs_base(self, read_set: RelationReadSet) -> bool:
        return self.change.needs_base(read_set)

    async def load_base(self, read_set: RelationReadSet) -> None:
        await self.change.load_base(read_set)

    async def work(self, read_set: RelationReadSet) -> None:
        await self.change.work(read_set)

    def write_set(self, read_set: RelationReadSet, attempt: Attempt) -> WriteSet:
        if read_set.entry is None or read_set.pointer is None:
            return WriteSet()
        return WriteSet(pointers={read_set.entry.entity: read_set.pointer.sequence})

    def plan(self, read_set: RelationReadSet, attempt: Attempt) -> PlannedCommit[RelationReadSet] | NoOp | Prerequisite:
        change = self.change.compute(read_set, attempt)
        if isinstance(change, Prerequisite):
            return change
        if isinstance(change, UnchangedRelation):
            pointer = change.pointer
            return NoOp(TableState(pointer.entity, pointer.metadata.location, change.body, created=False))

        async def check() -> RelationReadSet | None:
            return await self.still_named(read_set)

        async def swap(_: Revalidate[RelationReadSet]) -> Applied | PreconditionFailed:
            outcome = await self.session.state.move_pointer(change.successor, change.pointer.version)
            if isinstance(outcome, Applied):
                self.session.files.forget(change.pointer.metadata.location)
            return outcome

        return PlannedCommit(
            first=[change.new.write(self.session), change.receipts.pending],
            check=check,
            swap=swap,
            after=[change.receipts.committed, *change.cleaning],
            answer=TableState(change.pointer.entity, change.new.file.location, change.new.body, created=False),
        )

    async def still_named(self, read_set: RelationReadSet) -> RelationReadSet | None:
        """Validates the name by a manifest read that begins after the pointer's version was read
        (docs/design/commit.md#rule-4)."""
        head = await self.session.state.head()
        lookup = self.lookup
        entry = await look_up(self.session.state, lambda: relation(head, lookup.namespace, lookup.name, lookup.kind))
        if entry is None:
            return RelationReadSet(head, None, None, head_fresh=True, pointer_fresh=False)
        if read_set.entry is not None and entry.entity == read_set.entry.entity and not self.change.lacks(entry):
            return None
        fresher = await self.read(Freshness.FRESH)
        if self.needs_base(fresher):
            await self.load_base(fresher)
        return fresher

    async def answer_on_evidence(self, attempt: str, write_set: WriteSet) -> Answer:
        """The entity's current state: what this attempt committed, or what was built on it."""
        for entity in write_set.pointers:
            current = await current_file(self.session, entity)
            if current is not None:
                return TableState(entity, current[0].location, current[1], created=False)
        raise InternalError(f"attempt {attempt} committed, but no entity has its commit")
