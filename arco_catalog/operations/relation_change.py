"""What one request changes of one table or view: computed from its base, alone or as part of a transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import InternalError, NotFound, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.applied import apply
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.cleaning import cleaning
from arco_catalog.operations.kinds import AnyCommit, Semantics
from arco_catalog.operations.metadata_file import NewMetadata, Receipts, receipts
from arco_catalog.operations.mutation import Attempt, Prerequisite, Write
from arco_catalog.operations.names import dotted
from arco_catalog.operations.reserve import reserve, reserved_for, unheld
from arco_catalog.operations.table_view import TableView
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.index import Namespace
from arco_catalog.state.locations import Location, refuse_reserved
from arco_catalog.state.memory import PARSED_WEIGHT, SMALL_BYTES
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.worker_threads import off_loop


@dataclass(frozen=True, slots=True)
class UnchangedRelation:
    """The request changes nothing: its table or view is already as it asks."""

    pointer: Pointer
    body: bytes


@dataclass(frozen=True, slots=True)
class ChangedRelation:
    """New metadata, the pointer that names it, its receipts, and files that nothing needs any more then."""

    pointer: Pointer
    successor: Pointer
    new: NewMetadata
    said: Receipts
    cleaning: Sequence[Write]


class RelationChange:
    """One request's commit to one name."""

    def __init__(
        self, session: Session, semantics: Semantics, namespace: Namespace, name: str, commit: AnyCommit
    ) -> None:
        self.session = session
        self.semantics = semantics
        self.namespace = namespace
        self.name = name
        self.commit = commit
        self._taken = 0
        """Of the process's memory, to change the base."""

    def incomplete(self, view: TableView) -> bool:
        """Whether the base is still to be read, or memory to be taken for changing a large one. What was read once by
        anybody in this process will do."""
        if view.pointer is None or view.refusal is not None:
            return False
        if view.base is None:
            view.base = self.session.files.cached(view.pointer.metadata.location)
        return view.base is None or PARSED_WEIGHT * len(view.base) > max(SMALL_BYTES, self._taken)

    async def complete(self, view: TableView) -> None:
        """Reads the base into the view, and takes memory for changing it; a refusal that this meets is kept there for
        `compute`. Raises `OutOfMemory`."""
        if view.base is None and view.pointer is not None:
            try:
                view.base = await self.session.files.read(view.pointer.metadata.location)
            except NotFound as gone:
                view.refusal = gone
                again = await self.session.state.pointer(view.pointer.entity)
                if again is None or again.version != view.pointer.version:
                    view.pointer_fresh = False  # it has moved on, and its old file may have been removed: no verdict
            except Refusal as refusal:
                view.refusal = refusal
        if view.base is not None:
            needed = PARSED_WEIGHT * len(view.base)
            if needed > self._taken:
                await self.session.hold.take(needed - self._taken)
                self._taken = needed

    async def work(self, view: TableView) -> None:
        """Checks the requirements and applies the updates, for `compute`. Raises `Refusal`, and `StoreUnavailable` past
        the deadline."""
        pointer, body = view.pointer, view.base
        if view.refusal is None and view.applied is None and pointer is not None and body is not None:
            self.session.check_deadline()
            made = partial(
                apply,
                self.semantics,
                pointer.metadata.location,
                body,
                self.commit,
                now_ms=self.session.now_ms(),
                name=dotted(self.namespace, self.name),
                checkpoint=self.session.check_deadline,
            )
            view.applied = await off_loop(len(body) + self.session.request.body_bytes, made)

    def compute(self, view: TableView, attempt: Attempt) -> ChangedRelation | UnchangedRelation | Prerequisite:
        """What the request does to what the view shows; `work` has been done. Raises `Refusal`."""
        if view.refusal is not None:
            raise view.refusal
        if view.entry is None:
            raise self.semantics.no_such(self.namespace, self.name)
        pointer, body, applied = view.pointer, view.base, view.applied
        if pointer is None or body is None or applied is None:
            raise InternalError(f"{dotted(self.namespace, self.name)} was planned before its base was loaded")
        if applied.document is None:
            return UnchangedRelation(pointer, body)
        missing = unheld(self.session, view.entry, self.semantics.explicit_locations(self.commit))
        if missing:
            return Prerequisite(lambda: reserve(self.session, self.namespace, self.name, pointer.entity, missing))
        return self._changed(view.entry, pointer, applied.base, applied.document, applied.body, attempt)

    def lacks(self, entry: RelationEntry) -> bool:
        """Whether the registry's entry, read again, no longer holds a location that the commit names."""
        return bool(unheld(self.session, entry, self.semantics.explicit_locations(self.commit)))

    def _changed(
        self,
        entry: RelationEntry,
        pointer: Pointer,
        base: JsonObject,
        document: JsonObject,
        body: bytes,
        attempt: Attempt,
    ) -> ChangedRelation:
        folder = table.metadata_directory(document, table.location(document))
        refuse_reserved(Location.parse(folder))
        new = NewMetadata.of(self.session, self.semantics, document, pointer.metadata, body=body)
        self.session.check_metadata(new.body, dotted(self.namespace, self.name))
        said = receipts(
            self.session,
            entity=pointer.entity,
            attempt=attempt.id,
            namespace=self.namespace,
            name=self.name,
            new=new,
            requirements=self.commit.requirement_types,
            updates=self.commit.actions,
            snapshots=self.semantics.added_snapshots(self.commit),
            engine=self.semantics.engine(self.commit),
        )
        facts = new.facts(self.session)
        reserved = reserved_for(self.session, entry, self.semantics.explicit_locations(self.commit))
        if reserved:
            facts["named_locations"] = [*dict.fromkeys([*pointer.named_locations, *reserved])]
        successor = pointer.successor(attempt=attempt.id, metadata=new.file, facts=facts)
        return ChangedRelation(pointer, successor, new, said, self._cleaning(pointer, base, document, folder))

    def _cleaning(self, pointer: Pointer, base: JsonObject, document: JsonObject, folder: str) -> Sequence[Write]:
        """Removes what left the metadata log, where the table asks for it."""
        gone = self.semantics.files_that_left_the_log(
            base, document, base_file=pointer.metadata.location, registered_from=pointer.registered_from
        )
        return cleaning(self.session, pointer.entity, folder, gone)
