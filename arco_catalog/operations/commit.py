"""Commits to a table: one compare-and-swap of its pointer (design.md 6.2)."""

from collections.abc import Sequence

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import Broken, Refusal
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.answers import Answer, TableState
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.create import create_from_commit
from arco_catalog.operations.driver import run
from arco_catalog.operations.metadata_file import NewMetadata, receipts
from arco_catalog.operations.mutation import Attempt, Freshness, Move, Mutation, Prelude, Settled, Write
from arco_catalog.operations.names import dotted, no_such
from arco_catalog.operations.reserve import reserve, unheld
from arco_catalog.operations.table_view import TableView, locate, relation
from arco_catalog.state.index import Namespace
from arco_catalog.state.locations import Location
from arco_catalog.state.marker import Binding
from arco_catalog.state.pointer import Pointer
from storage_backends import Applied, Refused


async def commit_table(session: Session, namespace: Namespace, name: str, request: JsonObject) -> Answer:
    """Applies a CommitTableRequest; one with `assert-create` creates the table."""
    commit = table.parse_commit(request)
    if commit.creates:
        return await create_from_commit(session, namespace, name, commit)
    return await run(session, CommitTable(session, namespace, name, commit))


class CommitTable(Mutation[TableView]):
    """One request's changes to one table."""

    def __init__(self, session: Session, namespace: Namespace, name: str, commit: table.Commit) -> None:
        self.session = session
        self.namespace = namespace
        self.name = name
        self.commit = commit
        self._tries = 0

    async def locate(self, freshness: Freshness) -> TableView:
        return await locate(self.session, self.namespace, self.name, "table", freshness)

    def incomplete(self, view: TableView) -> bool:
        if view.pointer is None or view.refusal is not None:
            return False
        if view.base is None:
            view.base = self.session.files.cached(view.pointer.metadata.location)
        return view.base is None

    async def complete(self, view: TableView) -> None:
        if view.pointer is not None:
            try:
                view.base = await self.session.files.read(view.pointer.metadata.location)
            except Refusal as refusal:
                view.refusal = refusal

    def binding(self, view: TableView, attempt: Attempt) -> Binding:
        if view.entry is None or view.pointer is None:
            return Binding()
        return Binding(pointers={view.entry.entity: view.pointer.sequence})

    def plan(self, view: TableView, attempt: Attempt) -> Move[TableView] | Settled | Prelude:
        if view.entry is None:
            raise no_such("table", self.namespace, self.name)
        if view.refusal is not None:
            raise view.refusal
        pointer, body = view.pointer, view.base
        if pointer is None or body is None:
            raise Broken(f"{dotted(self.namespace, self.name)} was planned without its base")
        base = loads(body)
        if not isinstance(base, dict):
            raise Broken(f"{pointer.metadata.location} is not a JSON object")
        document = table.apply_commit(
            base,
            self.commit,
            now_ms=self.session.runtime.now_ms(),
            base_location=pointer.metadata.location,
            name=dotted(self.namespace, self.name),
        )
        if document is None:
            return Settled(TableState(pointer.entity, pointer.metadata.location, body, created=False))
        missing = unheld(self.session, view.entry, table.explicit_locations(self.commit))
        if missing:
            return Prelude(lambda: reserve(self.session, self.namespace, self.name, pointer.entity, missing))
        self._tries += 1
        new = NewMetadata.of(document, base=pointer.metadata, attempt=attempt.id, tries=self._tries)
        return self._move(view, pointer, base, new, attempt)

    def _move(
        self, view: TableView, pointer: Pointer, base: JsonObject, new: NewMetadata, attempt: Attempt
    ) -> Move[TableView]:
        said = receipts(
            self.session,
            entity=pointer.entity,
            attempt=attempt.id,
            namespace=self.namespace,
            name=self.name,
            new=new,
            base=pointer.metadata,
            requirements=self.commit.requirement_types,
            updates=self.commit.actions,
            snapshots=table.added_snapshot_ids(self.commit),
        )
        successor = pointer.successor(
            attempt=attempt.id, metadata=new.file, facts=new.facts(self.session, pointer.metadata)
        )

        async def check() -> TableView | None:
            return await self.still_named(view)

        async def swap() -> Applied | Refused:
            return await self.session.state.move_pointer(successor, pointer.version)

        return Move(
            first=[new.write(self.session), said.pending],
            check=check,
            swap=swap,
            after=[said.committed, *self._clean_up(base, new.document)],
            answer=TableState(pointer.entity, new.file.location, new.body, created=False),
        )

    async def still_named(self, view: TableView) -> TableView | None:
        """Validates the name by a manifest read that begins after the pointer's version was read (rule 4)."""
        head = await self.session.state.head()
        entry = relation(head, self.namespace, self.name, "table")
        if entry is None:
            return TableView(head, None, None, head_fresh=True, pointer_fresh=False)
        if view.entry is not None and entry.entity == view.entry.entity:
            return None
        fresher = await self.locate(Freshness.FRESH)
        if self.incomplete(fresher):
            await self.complete(fresher)
        return fresher

    def _clean_up(self, base: JsonObject, document: JsonObject) -> Sequence[Write]:
        """Files that left the metadata log, where the table asks for their deletion; only its own."""
        home = Location.parse(table.metadata_directory(document, table.location(document)))

        def to_delete(location: str) -> Write:
            async def delete() -> None:
                await self.session.files.remove(location)

            return Write(location, delete)

        gone = table.files_that_left_the_log(base, document)
        return [to_delete(location) for location in gone if Location.parse(location).inside(home)]

    async def answer_on_evidence(self, attempt: str, binding: Binding) -> Answer:
        """The entity's current state: what this attempt committed, or what was built on it."""
        for entity in binding.pointers:
            pointer = await self.session.state.pointer(entity)
            if pointer is not None:
                current = pointer.metadata
                return TableState(
                    entity, current.location, await self.session.files.read(current.location), created=False
                )
        raise Broken(f"attempt {attempt} committed to no entity")
