"""What every way to create a table or view shares: a free name, a location of its own, and one draft an attempt.

Metadata, pointer, receipt and registry commit are written first, beside each other; the manifest's compare-and-swap is
the commit point. A create that loses it keeps entity, files and pointer; a refused name leaves an orphan pointer
(docs/design/registry.md#rule-1).
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from arco_catalog.iceberg import table
from arco_catalog.iceberg.checkpoint import Checkpoint, no_deadline
from arco_catalog.iceberg.errors import Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.properties import strip_trailing_slash
from arco_catalog.operations.kinds import Semantics
from arco_catalog.operations.metadata_file import NewMetadata, ReceiptWrites, receipt_writes
from arco_catalog.operations.names import dotted, existing_namespace
from arco_catalog.operations.overlap import refuse_folders, refuse_overlap
from arco_catalog.operations.registry_change import Change, RegistryMutation, RegistryReadSet
from arco_catalog.operations.reservations import check_named
from arco_catalog.protocol.answers import Answer, TableState
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.mutation import Attempt, NoOp, Write
from arco_catalog.state.entries import PendingTransaction, RelationEntry, find_relation, location_holds
from arco_catalog.state.index import Edits, Index, Namespace, namespace_key, relation_key
from arco_catalog.state.locations import Location, outermost, slug
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.store_clock import MAX_CORRECTION_MS
from arco_catalog.state.worker_threads import SMALL_BYTES, off_loop
from storage_backends import Version

ANY_LOCATION, ANY_UUID = "a location of the catalog's choice", "a uuid of the catalog's choice"
"""Placeholders in metadata that is made before its location and uuid are known. No client can send either."""
PLACEHOLDER_FIELDS = ("location", "table-uuid", "view-uuid")
"""The fields that may hold a placeholder."""


@dataclass(frozen=True, slots=True)
class RelationDraft:
    """What one attempt would create. It stays the same however often the attempt's registry commit is rebuilt."""

    entity: str
    new: NewMetadata
    pointer: Pointer
    receipts: ReceiptWrites
    locations: Sequence[Location]


class Creator:
    """Drafts a table or view under a name. Subclasses say what its metadata is."""

    def __init__(self, session: Session, semantics: Semantics, namespace: Namespace, name: str) -> None:
        self.session = session
        self.semantics = semantics
        self.namespace = namespace
        self.name = name
        self.requirements: Sequence[str] = ()
        self.updates: Sequence[str] = ()
        self.engine: str | None = None
        self._drafts: dict[str, RelationDraft] = {}
        self._ready: JsonObject | Refusal | None = None
        self._ready_ms = 0

    async def work(self) -> None:
        """Does what `document` would take long for, beside the event loop and up to the deadline. What it refuses is
        for `document` to tell, once the name is known to be free."""
        self.session.check_deadline()
        size = self.session.request.body_bytes
        now_ms = self.session.now_ms()
        outdated = abs(now_ms - self._ready_ms) > MAX_CORRECTION_MS  # the clock was set right since
        if size >= SMALL_BYTES and (self._ready is None or outdated):
            self._ready, self._ready_ms = await off_loop(size, self._beforehand), now_ms

    def _beforehand(self) -> JsonObject | Refusal:
        try:
            return self.make(ANY_LOCATION, ANY_UUID, self.session.check_deadline)
        except Refusal as refusal:
            return refusal

    @abstractmethod
    def make(self, location: str, uuid: str, checkpoint: Checkpoint) -> JsonObject:
        """The first metadata, at this location and with this uuid unless the request names others. Raises `Refusal`,
        and what `checkpoint` does."""

    def document(self, index: Index, entity: str) -> JsonObject:
        """The first metadata. Raises `Refusal`."""
        location, uuid = self.default_location(index, entity), self.session.runtime.uuid()
        if isinstance(self._ready, Refusal):
            raise self._ready
        if self._ready is None:
            return self.make(location, uuid, no_deadline)
        chosen = {ANY_LOCATION: strip_trailing_slash(location), ANY_UUID: uuid}
        return {
            name: chosen.get(value, value) if name in PLACEHOLDER_FIELDS and isinstance(value, str) else value
            for name, value in self._ready.items()
        }

    @abstractmethod
    def named_locations(self) -> Iterable[str]:
        """Locations that the request names."""

    def already_there(self) -> Refusal:
        """What something of the same kind and name means for this request."""
        return self.semantics.name_taken(self.semantics.kind, self.namespace, self.name)

    def check_name(self, index: Index) -> None:
        """Raises unless the namespace exists and the name is free, for tables and views alike."""
        index.need(namespace_key(self.namespace), relation_key(self.namespace, self.name))
        existing_namespace(index, self.namespace)
        existing = find_relation(index, self.namespace, self.name)
        if existing is None:
            return
        if existing.require_committed().kind == self.semantics.kind:
            raise self.already_there()
        raise self.semantics.name_taken(existing.kind, self.namespace, self.name)

    def check_locations(self, index: Index, locations: Sequence[Location], entity: str) -> None:
        """Raises `BadRequest` if one is taken, or is a namespace's folder."""
        refuse_overlap(self.session, index, locations, fresh=entity)
        refuse_folders(self.session, index, locations, self.namespace, fresh=entity)

    def default_location(self, index: Index, entity: str) -> str:
        """Never shared, and never used again."""
        namespace = existing_namespace(index, self.namespace)
        return Location.parse(namespace.location).below(f"{slug(self.name)}-{entity}").uri

    def locations(self, document: JsonObject) -> list[Location]:
        """The locations that it holds, none inside another. Raises `BadRequest` for one that is not allowed, and for
        more than may be named at once."""
        allowed = self.session.catalog.locations
        check_named(list(self.named_locations()))
        return outermost([allowed.check(text) for text in (table.location(document), *self.named_locations())])

    def draft(self, index: Index, attempt: Attempt) -> RelationDraft:
        """The attempt's draft, made when it is first asked for. Raises `Refusal`, and `PendingTransaction`."""
        self.check_name(index)
        draft = self._drafts.get(attempt.id)
        if draft is None:
            draft = self._drafts[attempt.id] = self._new_draft(index, attempt)
        self.check_locations(index, draft.locations, draft.entity)
        return draft

    def _new_draft(self, index: Index, attempt: Attempt) -> RelationDraft:
        document = self.document(index, attempt.entity)
        locations = self.locations(document)
        new = NewMetadata.of(self.session, self.semantics, document, None)
        self.session.check_metadata(new.body, dotted(self.namespace, self.name))
        snapshot = self.semantics.summary(document).get("current_snapshot_id")
        receipts = receipt_writes(
            self.session,
            entity=attempt.entity,
            attempt=attempt.id,
            namespace=self.namespace,
            name=self.name,
            new=new,
            requirements=self.requirements,
            updates=self.updates,
            snapshots=[snapshot] if isinstance(snapshot, int) else [],
            engine=self.engine,
        )
        pointer = Pointer.first(
            entity=attempt.entity,
            kind=self.semantics.kind,
            move=attempt.id,
            metadata=new.file,
            summary=new.summary(self.session),
        )
        return RelationDraft(attempt.entity, new, pointer, receipts, locations)

    def first_writes(self, draft: RelationDraft) -> list[Write]:
        """What must be there before the name is."""
        return [draft.new.write(self.session), first_pointer(self.session, draft.pointer), draft.receipts.pending]

    def edits(self, draft: RelationDraft, transaction: str | None = None) -> Edits:
        """The index entries that give it its name and its places; with a transaction, if that commits."""
        normal = [location.normal for location in draft.locations]
        entry = RelationEntry.new(
            kind=self.semantics.kind,
            entity=draft.entity,
            uuid=self.semantics.uuid(draft.new.document),
            locations=normal,
            transaction=transaction,
        )
        held = location_holds(draft.entity, normal, transaction, name=(*self.namespace, self.name))
        return {relation_key(self.namespace, self.name): entry.json, **held}


class Creation(RegistryMutation):
    """The creation of one table or view."""

    def __init__(self, creator: Creator, *, created: bool = True) -> None:
        super().__init__(creator.session)
        self.creator = creator
        self.created = created
        self.kind = f"create-{creator.semantics.kind}"

    async def work(self, read_set: RegistryReadSet) -> None:
        await self.creator.work()

    def write_set(self, read_set: RegistryReadSet, attempt: Attempt) -> WriteSet:
        creates: tuple[str, str] | None = None
        with suppress(Refusal, PendingTransaction):  # what can't be planned creates nothing, and names nothing
            creates = attempt.entity, self.creator.draft(read_set.head.index, attempt).new.file.location
        return WriteSet(registry=read_set.head.sequence, creates=creates)

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Change | NoOp:
        creator, draft = self.creator, self.creator.draft(read_set.head.index, attempt)
        self.session.stats.about(draft.entity, creator.semantics.uuid(draft.new.document))
        answer: Answer = TableState(draft.entity, draft.new.file.location, draft.new.body, created=self.created)
        return Change(
            edits=creator.edits(draft),
            answer=answer,
            detail={"namespace": [*creator.namespace], "name": creator.name, "entity": draft.entity},
            first=creator.first_writes(draft),
            after=[draft.receipts.committed],
        )


def first_pointer(session: Session, pointer: Pointer) -> Write:
    """Writes a new entity's pointer, and remembers it. It is the one object of those created that moves later: refused,
    we look for our move in what is there (docs/design/commit.md#evidence)."""
    key, body = session.state.paths.pointer(pointer.entity), pointer.body
    [move] = pointer.recent

    def moved_on(there: bytes) -> bool:
        return move in Pointer.parse(there, Version(""), key).recent

    async def put() -> None:
        version = await session.state.create(key, body, made_from_ours=moved_on)
        if version is not None:
            session.state.cache_pointer(Pointer(pointer.document, version), len(body))

    return Write(key, put)
