"""Creating tables: outright, staged, and by the commit that finishes a staged one (design.md 6.6).

Metadata, pointer, receipt and registry commit are written first, beside each other; the manifest's compare-and-swap is
the commit point. A create that loses it keeps entity, files and pointer; a refused name leaves an orphan pointer.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import AlreadyExists, CommitFailed, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import STRING, Fields
from arco_catalog.iceberg.updates import SetLocation
from arco_catalog.operations.answers import Answer, Document, TableState
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.driver import run
from arco_catalog.operations.metadata_file import NewMetadata, Receipts, receipts
from arco_catalog.operations.mutation import Attempt, Settled, Write
from arco_catalog.operations.names import dotted, existing_namespace
from arco_catalog.operations.registry_change import Change, RegistryMutation, RegistryView
from arco_catalog.operations.reserve import refuse_overlap
from arco_catalog.state.entries import RelationEntry, find_relation, holds
from arco_catalog.state.index import Index, Namespace, relation_key
from arco_catalog.state.locations import Location, slug
from arco_catalog.state.marker import Binding
from arco_catalog.state.pointer import Pointer


async def create_table(session: Session, namespace: Namespace, request: JsonObject) -> Answer:
    """Carries out a CreateTableRequest; with `stage-create` nothing is made, and the answer has no location of a
    metadata file."""
    name = Fields(request, "request").required("name", STRING)
    wanted = table.parse_create_table(request)
    mutation = _StageCreate if wanted.stage else _CreateTable
    return await run(session, mutation(session, namespace, name, wanted))


async def create_from_commit(session: Session, namespace: Namespace, name: str, commit: table.Commit) -> Answer:
    """Creates the table that a commit with `assert-create` builds from nothing."""
    return await run(session, _CreateFromCommit(session, namespace, name, commit))


@dataclass(frozen=True, slots=True)
class _Draft:
    """What one attempt would create. It stays the same however often the attempt's registry commit is rebuilt."""

    new: NewMetadata
    pointer: Pointer
    said: Receipts
    locations: Sequence[Location]


class _Creation(RegistryMutation):
    """What all ways to create a table share."""

    kind = "create-table"

    def __init__(self, session: Session, namespace: Namespace, name: str) -> None:
        super().__init__(session)
        self.namespace = namespace
        self.name = name
        self._drafts: dict[str, _Draft] = {}

    def already_there(self) -> Refusal:
        """What a table of this name means for this request."""
        return AlreadyExists(f"Table already exists: {dotted(self.namespace, self.name)}")

    def taken_location(self, message: str) -> Refusal:
        """What an overlapping location means for this request."""
        return AlreadyExists(message)

    def check_name(self, index: Index) -> None:
        """Raises unless the namespace exists and the name is free, for tables and views alike."""
        existing_namespace(index, self.namespace)
        existing = find_relation(index, self.namespace, self.name)
        if existing is not None and existing.kind == "view":
            raise AlreadyExists(f"View with same name already exists: {dotted(self.namespace, self.name)}")
        if existing is not None:
            raise self.already_there()

    def default_location(self, index: Index, entity: str) -> str:
        """Never shared, and never used again."""
        namespace = existing_namespace(index, self.namespace)
        return Location.parse(namespace.location).below(f"{slug(self.name)}-{entity}").uri

    def checked_locations(self, document: JsonObject, named: Iterable[str]) -> list[Location]:
        """The locations that the new table holds. Raises `BadRequest` for one that is not allowed."""
        allowed = self.session.catalog.locations
        wanted = [allowed.check(location) for location in (table.location(document), *named)]
        outermost: list[Location] = []
        for location in wanted:
            if not any(location.inside(other) for other in outermost):
                outermost = [other for other in outermost if not other.inside(location)] + [location]
        return outermost

    def draft(
        self, document: JsonObject, locations: Sequence[Location], attempt: Attempt, **kinds: Sequence[str]
    ) -> _Draft:
        """Names and encodes what is to be written, once for each attempt."""
        new = NewMetadata.of(document, base=None, attempt=attempt.id, tries=1)
        snapshots = [s for s in [table.current_snapshot_id(document)] if s is not None]
        said = receipts(
            self.session,
            entity=attempt.entity,
            attempt=attempt.id,
            namespace=self.namespace,
            name=self.name,
            new=new,
            base=None,
            requirements=kinds.get("requirements", ()),
            updates=kinds.get("updates", ()),
            snapshots=snapshots,
        )
        pointer = Pointer.first(
            entity=attempt.entity,
            kind="table",
            move=attempt.id,
            metadata=new.file,
            facts=new.facts(self.session, None),
        )
        return _Draft(new, pointer, said, locations)

    def build(self, index: Index, attempt: Attempt) -> _Draft:
        """The draft of an attempt. Raises `Refusal`."""
        raise NotImplementedError

    def drafted(self, index: Index, attempt: Attempt) -> _Draft:
        """The attempt's draft, made when it is first asked for. Raises `Refusal`."""
        self.check_name(index)
        draft = self._drafts.get(attempt.id)
        if draft is None:
            draft = self._drafts[attempt.id] = self.build(index, attempt)
        return draft

    def binding(self, view: RegistryView, attempt: Attempt) -> Binding:
        creates: tuple[str, str] | None = None
        with suppress(Refusal):  # what can't be planned creates nothing, and names nothing
            creates = attempt.entity, self.drafted(view.head.index, attempt).new.file.location
        return Binding(registry=view.head.sequence, creates=creates)

    def change(self, view: RegistryView, attempt: Attempt) -> Change | Settled:
        index = view.head.index
        draft = self.drafted(index, attempt)
        taken = refuse_overlap(self.session, index, draft.locations)
        if taken is not None:
            raise self.taken_location(taken)
        return self.creation(draft, attempt)

    def creation(self, draft: _Draft, attempt: Attempt) -> Change:
        """The registry commit that gives the drafted table its name."""
        normal = [location.normal for location in draft.locations]
        entry = RelationEntry.new(
            kind="table", entity=attempt.entity, uuid=table.table_uuid(draft.new.document), locations=normal
        )
        return Change(
            edits={relation_key(self.namespace, self.name): entry.json, **holds(attempt.entity, normal, "live")},
            answer=self.answer(draft, attempt),
            detail={"namespace": [*self.namespace], "name": self.name, "entity": attempt.entity},
            first=[draft.new.write(self.session), self._first_pointer(draft.pointer), draft.said.pending],
            after=[draft.said.committed],
        )

    def answer(self, draft: _Draft, attempt: Attempt) -> Answer:
        """The created table."""
        return TableState(attempt.entity, draft.new.file.location, draft.new.body, created=True)

    def _first_pointer(self, pointer: Pointer) -> Write:
        key, body = self.state.paths.pointer(pointer.entity), pointer.body

        async def put() -> None:
            version = await self.state.create(key, body)
            if version is not None:
                self.state.remember_pointer(Pointer(pointer.document, version), len(body))

        return Write(key, put)


class _CreateTable(_Creation):
    def __init__(self, session: Session, namespace: Namespace, name: str, wanted: table.CreateTable) -> None:
        super().__init__(session, namespace, name)
        self.wanted = wanted

    def document(self, index: Index, attempt: Attempt) -> JsonObject:
        """The new table's metadata."""
        location = self.wanted.location or self.default_location(index, attempt.entity)
        return table.new_table_metadata(
            self.wanted, location=location, table_uuid=self.session.runtime.uuid(), now_ms=self.session.runtime.now_ms()
        )

    def build(self, index: Index, attempt: Attempt) -> _Draft:
        document = self.document(index, attempt)
        locations = self.checked_locations(document, table.explicit_locations(self.wanted))
        return self.draft(document, locations, attempt)


class _StageCreate(_CreateTable):
    """Staging makes nothing. Its entity id serves the default location alone; the create that follows mints its own."""

    def binding(self, view: RegistryView, attempt: Attempt) -> Binding:
        return Binding(registry=view.head.sequence)

    def change(self, view: RegistryView, attempt: Attempt) -> Settled:
        index = view.head.index
        self.check_name(index)
        document = self.document(index, attempt)
        locations = self.checked_locations(document, table.explicit_locations(self.wanted))
        taken = refuse_overlap(self.session, index, locations)
        if taken is not None:
            raise self.taken_location(taken)
        return Settled(Document(200, {"metadata": document, "config": {}}))


class _CreateFromCommit(_Creation):
    def __init__(self, session: Session, namespace: Namespace, name: str, commit: table.Commit) -> None:
        super().__init__(session, namespace, name)
        self.commit = commit

    def already_there(self) -> Refusal:
        return CommitFailed("Requirement failed: table already exists")

    def taken_location(self, message: str) -> Refusal:
        return CommitFailed(message)

    def answer(self, draft: _Draft, attempt: Attempt) -> Answer:
        return TableState(attempt.entity, draft.new.file.location, draft.new.body, created=False)

    def build(self, index: Index, attempt: Attempt) -> _Draft:
        commit = self.commit
        if not any(isinstance(update, SetLocation) for update in commit.updates):
            default = SetLocation(self.default_location(index, attempt.entity))
            commit = replace(commit, updates=(default, *commit.updates))
        document = table.apply_commit(
            None,
            commit,
            now_ms=self.session.runtime.now_ms(),
            base_location=None,
            name=dotted(self.namespace, self.name),
            new_uuid=self.session.runtime.uuid(),
        )
        if document is None:
            raise CommitFailed("A table can't be created from a commit without updates")
        locations = self.checked_locations(document, table.explicit_locations(self.commit))
        return self.draft(
            document,
            locations,
            attempt,
            requirements=self.commit.requirement_types,
            updates=self.commit.actions,
        )
