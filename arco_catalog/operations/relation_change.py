"""What one request changes of one table or view: computed from its base, alone or as part of a transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import InternalError, NotFound, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.applied import apply
from arco_catalog.operations.cleaning import cleaning
from arco_catalog.operations.kinds import AnyCommit, Semantics
from arco_catalog.operations.metadata_file import NewMetadata, ReceiptWrites, receipt_writes
from arco_catalog.operations.names import dotted
from arco_catalog.operations.relation_read_set import RelationReadSet
from arco_catalog.operations.reservations import locations_to_reserve, reserve_locations, reserved_for
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.mutation import Attempt, Prerequisite, Write
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
    receipts: ReceiptWrites
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

    def needs_base(self, read_set: RelationReadSet) -> bool:
        """Whether the base is still to be read, or memory to be taken for changing a large one. A base that this
        process has cached will do."""
        if read_set.pointer is None or read_set.refusal is not None:
            return False
        if read_set.base is None:
            read_set.base = self.session.files.cached(read_set.pointer.metadata.location)
        return read_set.base is None or PARSED_WEIGHT * len(read_set.base) > max(SMALL_BYTES, self._taken)

    async def load_base(self, read_set: RelationReadSet) -> None:
        """Reads the base into the read set, and takes memory for changing it; a refusal that this meets is kept there
        for `compute`. Raises `OutOfMemory`."""
        if read_set.base is None and read_set.pointer is not None:
            try:
                read_set.base = await self.session.files.read(read_set.pointer.metadata.location)
            except NotFound as gone:
                read_set.refusal = gone
                again = await self.session.state.pointer(read_set.pointer.entity)
                if again is None or again.version != read_set.pointer.version:
                    read_set.pointer_fresh = (
                        False  # it has moved on, and its old file may have been removed: no verdict
                    )
            except Refusal as refusal:
                read_set.refusal = refusal
        if read_set.base is not None:
            needed = PARSED_WEIGHT * len(read_set.base)
            if needed > self._taken:
                await self.session.hold.take(needed - self._taken)
                self._taken = needed

    async def work(self, read_set: RelationReadSet) -> None:
        """Checks the requirements and applies the updates, for `compute`. Raises `Refusal`, and `StoreUnavailable` past
        the deadline."""
        pointer, body = read_set.pointer, read_set.base
        if read_set.refusal is None and read_set.applied is None and pointer is not None and body is not None:
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
            read_set.applied = await off_loop(len(body) + self.session.request.body_bytes, made)

    def compute(
        self, read_set: RelationReadSet, attempt: Attempt
    ) -> ChangedRelation | UnchangedRelation | Prerequisite:
        """What the request changes of what was read; `work` has been done. Raises `Refusal`."""
        if read_set.refusal is not None:
            raise read_set.refusal
        if read_set.entry is None:
            raise self.semantics.no_such(self.namespace, self.name)
        pointer, body, applied = read_set.pointer, read_set.base, read_set.applied
        if pointer is None or body is None or applied is None:
            raise InternalError(f"{dotted(self.namespace, self.name)} was planned before its base was loaded")
        if applied.document is None:
            return UnchangedRelation(pointer, body)
        missing = locations_to_reserve(self.session, read_set.entry, self.semantics.explicit_locations(self.commit))
        if missing:
            return Prerequisite(
                lambda: reserve_locations(self.session, self.namespace, self.name, pointer.entity, missing)
            )
        return self._changed(read_set.entry, pointer, applied.base, applied.document, applied.body, attempt)

    def lacks(self, entry: RelationEntry) -> bool:
        """Whether the registry's entry, read again, no longer holds a location that the commit names."""
        return bool(locations_to_reserve(self.session, entry, self.semantics.explicit_locations(self.commit)))

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
        receipts = receipt_writes(
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
        summary = new.summary(self.session)
        reserved = reserved_for(self.session, entry, self.semantics.explicit_locations(self.commit))
        if reserved:
            summary["named_locations"] = [*dict.fromkeys([*pointer.named_locations, *reserved])]
        successor = pointer.successor(attempt=attempt.id, metadata=new.file, summary=summary)
        return ChangedRelation(pointer, successor, new, receipts, self._cleaning(pointer, base, document, folder))

    def _cleaning(self, pointer: Pointer, base: JsonObject, document: JsonObject, folder: str) -> Sequence[Write]:
        """Removes what left the metadata log, where the table asks for it."""
        gone = self.semantics.files_that_left_the_log(
            base, document, base_file=pointer.metadata.location, registered_from=pointer.registered_from
        )
        return cleaning(self.session, pointer.entity, folder, gone)
