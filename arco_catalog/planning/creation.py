"""The common part of the creation of tables and views by a request or a commit: the checks of the name and locations,
and one draft for each attempt.

Metadata, pointer, receipt and registry commit are written first, concurrently; the compare-and-swap of HEAD is the
commit point, or in a transaction the decision. A create that loses the compare-and-swap keeps its entity, files and
pointer for the next try. If the name is refused then, an orphan pointer is left (docs/design/registry.md#operations).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property

from arco_catalog.iceberg import table
from arco_catalog.iceberg.checkpoint import Checkpoint
from arco_catalog.iceberg.errors import Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.borrowing import borrow, check_added
from arco_catalog.planning.context import Context
from arco_catalog.planning.kinds import Semantics
from arco_catalog.planning.metadata_file import NewMetadata, ReceiptWrites, receipt_writes
from arco_catalog.planning.names import dotted, existing_namespace, require_free_name
from arco_catalog.planning.overlap import require_free_locations
from arco_catalog.planning.reserved_locations import check_named
from arco_catalog.planning.shared_places import shared_marks
from arco_catalog.planning.writes import PlannedWrite, PointerWrite
from arco_catalog.state.borrowed import borrowed_holds, folders_of, merged, outside
from arco_catalog.state.entries import NO_LOANS, RelationEntry
from arco_catalog.state.holds import location_holds
from arco_catalog.state.index import Edits, Index, Namespace, relation_key
from arco_catalog.state.locations import Location, outermost, slug
from arco_catalog.state.needs import Steps
from arco_catalog.state.pointer import Pointer
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RelationDraft:
    """The table or view that one attempt would create: the id of the entity, the first metadata, the first pointer, the
    receipts, and the locations to hold. It does not change if the registry commit is planned anew."""

    entity: str
    new: NewMetadata
    pointer: Pointer
    receipts: ReceiptWrites
    locations: Sequence[Location]

    @property
    def first_writes(self) -> list[PlannedWrite]:
        """The writes of metadata file, pointer and pending receipt, which must be made before the registry commit that
        adds the name."""
        return [self.new.write(), PointerWrite(self.pointer), self.receipts.pending]


class Creator(ABC):
    """Plans the creation of a table or view under a name. Subclasses make the first metadata."""

    requirements: Sequence[str] = ()
    updates: Sequence[str] = ()
    engine: str | None = None

    def __init__(self, context: Context, semantics: Semantics, namespace: Namespace, name: str) -> None:
        self.context = context
        self.semantics = semantics
        self.namespace = namespace
        self.name = name

    @abstractmethod
    def make(self, location: str, uuid: str, now_ms: int, checkpoint: Checkpoint) -> JsonObject:
        """Returns the first metadata of the table or view, with this location and uuid unless the request gives others.
        Raises `Refusal`, and what `checkpoint` raises."""

    @abstractmethod
    def named_locations(self) -> Iterable[str]:
        """Returns the locations that the request to create a table or view names: of the table or view itself, and in
        properties that direct writers."""

    def leading_files(self) -> Iterable[str]:
        """Returns the manifest lists and statistics files to which the first metadata refers: none here. There are some
        only if a commit creates the table together with a snapshot."""
        return ()

    def already_there(self) -> Refusal:
        """Returns the error for a name that an entity of this kind has already."""
        return self.semantics.name_taken(self.semantics.kind, self.namespace, self.name)

    def check_name(self, index: Index) -> Steps[None]:
        """Returns if the namespace exists and the name is free. Raises `NoSuchNamespace`, `PendingTransaction`, and the
        error of `already_there` or `Semantics.name_taken`."""
        return require_free_name(index, self.namespace, self.name, self._taken)

    def _taken(self, by: str) -> Refusal:
        """Returns the error for a name that a relation of the kind `by` has."""
        same = by == self.semantics.kind
        return self.already_there() if same else self.semantics.name_taken(by, self.namespace, self.name)

    def check_locations(self, index: Index, locations: Sequence[Location], entity: str) -> Steps[None]:
        """Raises `BadRequest` if a location overlaps another entity's, or is or contains the folder of a namespace (if
        the operator allows overlaps, only if it overlaps that of a dropped table that is being purged), and for files
        of the first metadata in other paths that are not allowed; `Forbidden` if the caller may not choose one; and
        `PendingTransaction`. `entity` is the id that the attempt generated for the new table or view."""
        borrowed = self._borrowed(locations)
        check_added(self.context.locations, borrowed)
        yield from borrow(self.context, index, NO_LOANS, borrowed, self.namespace, entity)
        yield from require_free_locations(self.context, index, locations, self.namespace, fresh=entity)

    def document(self, index: Index, attempt: Attempt, checkpoint: Checkpoint) -> JsonObject:
        """Returns the first metadata of the table or view that an attempt creates, at the default location unless the
        request names one. The name must have been validated. Raises `Refusal`, and what `checkpoint` raises."""
        uuid = attempt.uuid("relation", attempt.entity)
        return self.make(self._default_location(index, attempt.entity), uuid, attempt.now_ms, checkpoint)

    def _default_location(self, index: Index, entity: str) -> str:
        """Returns a location in the namespace's folder that contains the entity's id, so that no other entity has
        it."""
        namespace = existing_namespace(index, self.namespace)
        return Location.parse(namespace.location).below(f"{slug(self.name)}-{entity}").uri

    def locations(self, document: JsonObject) -> list[Location]:
        """Returns the locations that the new table or view with this metadata is to hold, of which none is inside
        another. Raises `BadRequest` for one that is not allowed, and for too many."""
        check_named(list(self.named_locations()))
        named = (table.location(document), *self.named_locations())
        return outermost([self.context.locations.check(text) for text in named])

    def draft(self, index: Index, attempt: Attempt, checkpoint: Checkpoint) -> Steps[RelationDraft]:
        """Returns the draft of the table or view that an attempt creates, after checking name and locations. Raises
        `Refusal`, `PendingTransaction`, and what `checkpoint` raises."""
        yield from self.check_name(index)
        draft = self._drafted(self.document(index, attempt, checkpoint), attempt)
        yield from self.check_locations(index, draft.locations, draft.entity)
        return draft

    def check(self, index: Index, draft: RelationDraft) -> Steps[None]:
        """Checks again, on another HEAD, the name and locations of a draft. Raises the errors of `draft`."""
        yield from self.check_name(index)
        yield from self.check_locations(index, draft.locations, draft.entity)

    def _drafted(self, document: JsonObject, attempt: Attempt) -> RelationDraft:
        """Returns the draft of a table or view with this first metadata: locations, metadata file, pointer and
        receipts. Raises `Refusal` for locations that are not allowed, and for metadata over a limit."""
        locations = self.locations(document)
        new = NewMetadata.of(self.semantics, document, None, attempt, entity=attempt.entity)
        self.context.check_metadata(new.body, dotted(self.namespace, self.name))
        receipts = receipt_writes(
            self.context,
            entity=attempt.entity,
            attempt=attempt.id,
            namespace=self.namespace,
            name=self.name,
            new=new,
            requirements=self.requirements,
            updates=self.updates,
            snapshots=[new.snapshot_id] if isinstance(new.snapshot_id, int) else [],
            engine=self.engine,
        )
        pointer = Pointer.first(
            entity=attempt.entity,
            kind=self.semantics.kind,
            move=attempt.id,
            metadata=new.file,
            summary=new.summary(self.context.caller, attempt),
        )
        return RelationDraft(attempt.entity, new, pointer, receipts, locations)

    def edits(self, index: Index, draft: RelationDraft, transaction: str | None = None) -> Edits:
        """Returns the index changes that add name, holds and loans of the new table or view, which must have been
        validated on this index. With the id of a transaction they are intents, which take effect only if that
        commits."""
        normal = [location.normal for location in draft.locations]
        within = Location.parse(existing_namespace(index, self.namespace).location)
        borrowed = merged(NO_LOANS, self._borrowed(draft.locations), within)
        entry = RelationEntry.new(
            kind=self.semantics.kind,
            entity=draft.entity,
            uuid=self.semantics.uuid(draft.new.document),
            locations=normal,
            borrowed=borrowed,
            made=draft.locations[0].named_after(draft.entity),
            transaction=transaction,
        )
        held = location_holds(draft.entity, normal, transaction, name=(*self.namespace, self.name))
        loans = borrowed_holds(draft.entity, borrowed, transaction)
        return {relation_key(self.namespace, self.name): entry.json, **held, **loans}

    def shared_marks(self, index: Index, locations: Sequence[Location], entity: str) -> Steps[Edits]:
        """Returns the index changes that mark generated locations of other entities which overlap one of these
        locations of the new entity: they are shared from now on, so that no purge deletes everything there."""
        return shared_marks(self.context, index, locations, entity=entity, fresh=True)

    def _borrowed(self, locations: Sequence[Location]) -> list[Location]:
        """Returns the paths outside of these locations from which the first metadata takes files."""
        return outside(self._leading_paths, {location.normal for location in locations})

    @cached_property
    def _leading_paths(self) -> Sequence[Location]:
        """The folders of the manifest lists and statistics files to which the first metadata refers."""
        return folders_of(self.leading_files())
