"""Registers a table or view from a metadata file that exists already.

A register writes the claim on that file, the pointer and the registry's commit, and never metadata.
"""

from collections.abc import Sequence

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, NotFound, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.existing_file import ExistingFile, read_existing
from arco_catalog.operations.named_change import NamedChange
from arco_catalog.planning.answers import Answer, TableState
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.borrowing import borrow, check_allowed
from arco_catalog.planning.kinds import TABLES, VIEWS, Semantics
from arco_catalog.planning.metadata_file import pointer_summary
from arco_catalog.planning.names import existing_namespace
from arco_catalog.planning.overlap import check_choice, refuse_folders, refuse_overlap
from arco_catalog.planning.protection import refuse_protected_relation
from arco_catalog.planning.registry_change import Change
from arco_catalog.planning.shared_places import shared_marks
from arco_catalog.planning.writes import PointerWrite
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.lookup import load
from arco_catalog.protocol.mutation import AttemptAborted
from arco_catalog.protocol.planned_commit import Write
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.state.borrowed import borrowed_holds, outside
from arco_catalog.state.entries import NO_LOANS, RelationEntry, find_kind, find_relation
from arco_catalog.state.holds import location_holds
from arco_catalog.state.index import Edits, Index, Namespace, namespace_key
from arco_catalog.state.locations import Location, refuse_reserved_path
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.metadata_claim import Claim, claim
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.pointer import MetadataFile, Pointer

_SAME = "rename that one if it is the same under its old name (`arco rename`), else drop it first"
"""The advice if another relation has the location of the one to register, which can't be chosen."""


async def register_table(
    session: Session, namespace: Namespace, name: str, metadata_location: str, overwrite: bool
) -> Answer:
    """Registers a table, as a new entity, with an existing metadata file, and returns the table's state. With
    `overwrite` the same commit drops a table that has the name, without a purge, and the new one may have its
    locations. Raises `CommitFailed` if that table is protected, `NoSuchNamespace`, `AlreadyExists` if another kind of
    relation has the name, or without `overwrite` a table has it, `NotFound` if the file does not exist, `BadRequest`
    for a file or location that is not allowed or taken, for a file that left the metadata log of a table and is
    removed, and for a file that is no metadata of a table, and `Forbidden` for a file or location that the caller may
    not choose."""
    return await run(session, _Register(session, TABLES, namespace, name, metadata_location, overwrite))


def table_registration(
    session: Session, namespace: Namespace, name: str, metadata_location: str, *, overwrite: bool = False
) -> NamedChange:
    """Returns `register_table` as a mutation that can be planned without a write, for a rehearsal of an import."""
    return _Register(session, TABLES, namespace, name, metadata_location, overwrite)


async def register_view(
    session: Session, namespace: Namespace, name: str, metadata_location: str, overwrite: bool = False
) -> Answer:
    """Registers a view, as a new entity, with an existing metadata file, and returns the view's state. With `overwrite`
    the same commit drops a view that has the name. Raises the errors of `register_table`."""
    return await run(session, _Register(session, VIEWS, namespace, name, metadata_location, overwrite))


def view_registration(
    session: Session, namespace: Namespace, name: str, metadata_location: str, *, overwrite: bool = False
) -> NamedChange:
    """Returns `register_view` as a mutation that can be planned without a write, as `table_registration`."""
    return _Register(session, VIEWS, namespace, name, metadata_location, overwrite)


class _Register(NamedChange):
    def __init__(
        self, session: Session, semantics: Semantics, namespace: Namespace, name: str, file: str, overwrite: bool
    ) -> None:
        super().__init__(session, namespace, name)
        self.semantics = semantics
        self.kind = f"register-{semantics.kind}"
        self.file = file
        self.overwrite = overwrite
        self._existing: ExistingFile | None = None
        self._claimed: Claim | None = None

    def needs_base(self, read_set: RegistryReadSet) -> bool:
        """Whether `load_base` must be called: the metadata file is not read, and no error was met by this read set."""
        return self._existing is None and read_set.refusal is None

    async def load_base(self, read_set: RegistryReadSet) -> None:
        """Reads the metadata file to register, once for all attempts, and again after a claim has failed. An error for
        the client is put into the read set, and `change` raises it: for a location that is not allowed, a file that is
        missing or removed by the table that wrote it, and one that is no metadata of the kind."""
        try:
            self.session.catalog.locations.check(self.file)
            if self._claimed is Claim.REMOVED:
                raise BadRequest(
                    f"{self.file} was not registered: it is deleted, because it left the metadata log of a table with "
                    "write.metadata.delete-after-commit.enabled, never became current, or was a dropped view's. "
                    "Register a newer file, or a copy under another name"
                )
            self._existing = await read_existing(self.session, self.semantics, self.file, self._check_logged_files)
        except Refusal as refusal:
            read_set.refusal = refusal

    def _check_name(self, index: Index) -> Steps[None]:
        """Raises an error if the namespace does not exist, or the name is taken; with `overwrite` only if it is taken
        by another kind of relation, a protected one, or an intent."""
        yield Needs(keys=[namespace_key(self.namespace), self.key])
        existing_namespace(index, self.namespace)
        existing = find_relation(index, self.namespace, self.name)
        if existing is not None and not (self.overwrite and existing.require_committed().kind == self.semantics.kind):
            raise self.semantics.name_taken(existing.require_committed().kind, self.namespace, self.name)
        if existing is not None:
            refuse_protected_relation(existing, self.namespace, self.name)

    async def write_set(self, read_set: RegistryReadSet, attempt: Attempt) -> WriteSet:
        """Returns the registry's sequence number, the entity and the file that the attempt creates, and the entity that
        it replaces, if there is one. May load the name's segment."""
        await load(self.state, read_set.head.index, Needs(keys=[self.key]))
        replaced = self._replaced(read_set.head.index)
        return WriteSet(
            registry=read_set.head.sequence,
            marks=() if replaced is None else (replaced.entity,),
            creates=(attempt.entity, self.file),
        )

    def _replaced(self, index: Index) -> RelationEntry | None:
        """Returns the entry of the table or view that this register replaces; None without `overwrite`, or if none of
        the kind has the name."""
        return find_kind(index, self.namespace, self.name, self.semantics.kind) if self.overwrite else None

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the registration of the file as a new entity and, to overwrite, the drop of the relation with the
        name. Raises `NoSuchNamespace`, `CommitFailed` for a protected relation, `AlreadyExists`, the error that
        `load_base` kept, `BadRequest` and `Forbidden` for a file or location, `MetadataTooLarge`, and
        `PendingTransaction`."""
        index = read_set.head.index
        yield from self._check_name(index)
        # First, so that a refusal reveals neither the file's contents nor whether it exists.
        yield from check_choice(self.context, index, [self.context.locations.check(self.file)], self.namespace)
        if read_set.refusal is not None:
            raise read_set.refusal
        assert self._existing is not None  # `load_base` read it
        body, document = self._existing.body, self._existing.document
        self.context.check_metadata(body, self.full_name)
        replaced = self._replaced(index)
        locations = yield from self._free_locations(index, document, replaced)
        normal = [location.normal for location in locations]
        outer = outside(self._existing.folders, {*normal})
        check_allowed(self.context.locations, outer)
        loans = yield from borrow(self.context, index, NO_LOANS, outer, self.namespace, attempt.entity)
        marks = yield from shared_marks(self.context, index, locations, entity=attempt.entity)
        entry = RelationEntry.new(
            kind=self.semantics.kind,
            entity=attempt.entity,
            uuid=self.semantics.uuid(document),
            locations=normal,
            borrowed=loans,
        )
        tombstone: Edits = {}
        if replaced is not None:
            tombstone = yield from self.tombstone(read_set.head, replaced, attempt)
        return Change(
            edits={
                **marks,
                **tombstone,
                **borrowed_holds(attempt.entity, entry.loans),
                self.key: entry.json,
                **location_holds(attempt.entity, normal, name=(*self.namespace, self.name)),
            },
            answer=TableState(attempt.entity, self.file, body, created=True),
            detail=self.detail(
                attempt.entity,
                metadata_location=self.file,
                replaced=None if replaced is None else replaced.entity,
            ),
            first=[PointerWrite(self._pointer(document, attempt))],
            about=(entry.entity, entry.uuid),
            marks=() if replaced is None else (replaced.entity,),
            creates=(attempt.entity, self.file),
        )

    def further_writes(self, attempt: Attempt) -> Sequence[Write]:
        """Returns the write that claims the metadata file for this attempt, and does not make it."""
        return [self._claim(attempt)]

    def _free_locations(
        self, index: Index, document: JsonObject, replaced: RelationEntry | None
    ) -> Steps[list[Location]]:
        """Returns the locations that the metadata names: the relation's own, then the others that it writes to. Raises
        `BadRequest` if one is not allowed, overlaps files that a purge deletes or, unless the operator allows overlaps,
        is taken by another relation than `replaced` or fails `refuse_folders`, which compares it with the folders of
        one or two namespaces; and `Forbidden` if the caller may not use it."""
        allowed = self.context.locations
        named = [table.location(document), *table.written_locations(document)]
        locations = {(place := allowed.check(location)).normal: place for location in named}
        but = [] if replaced is None else [replaced.entity]
        yield from check_choice(self.context, index, [*locations.values()], self.namespace)
        yield from refuse_overlap(self.context, index, locations.values(), but=but, advice=_SAME)
        yield from refuse_folders(self.context, index, locations.values(), self.namespace)
        return [*locations.values()]

    def _check_logged_files(self, document: JsonObject) -> None:
        """Raises `BadRequest` if the metadata log names a file in a folder that only a catalog's own state may have."""
        for logged in self.semantics.logged_files(document):
            refuse_reserved_path(logged)

    def _claim(self, attempt: Attempt) -> Write:
        """Returns the write that claims the file, so that the table that wrote it will not remove it, and then reads
        the file again: a file that is there after the claim is removed by no cleaning or collection, only by a purge
        (docs/decisions/0022). If the file is removed or about to be, the write forgets the file that was loaded, and
        raises `AttemptAborted`: the next attempt tries to load it again, and fails with the reason."""
        location = Location.parse(self.file)

        async def claim_and_read_again() -> None:
            self._claimed = await claim(
                self.state, location, Claim.REGISTERED, entity=attempt.entity, claim_id=self.session.runtime.ulid()
            )
            try:
                if self._claimed is Claim.REGISTERED:
                    await self.session.files.read(self.file)
                    return
            except NotFound:
                pass
            # Removed, or about to be: the next attempt loads the file anew, and refuses with the reason.
            self._existing = None
            raise AttemptAborted

        return Write(self.state.paths.metadata_claim(location.uri), claim_and_read_again)

    def _pointer(self, document: JsonObject, attempt: Attempt) -> Pointer:
        """Returns the first pointer of the entity. Its `origin` is where this catalog's history of the entity begins:
        this catalog has no receipts of the commits before."""
        summary = pointer_summary(self.context.caller, attempt, self.semantics.summary(document), None)
        return Pointer.first(
            entity=attempt.entity,
            kind=self.semantics.kind,
            move=attempt.id,
            metadata=MetadataFile(self.file, self.semantics.ms(document, None, attempt.now_ms)),
            summary={**summary, "origin": {"registered": self.file}},
        )
