"""The change of one table or view by a commit, alone or in a transaction, as a pure function of its base."""

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

from arco_catalog.iceberg.checkpoint import Checkpoint
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.requirements import AssertRefSnapshotId
from arco_catalog.planning.apply_commit import AppliedUpdates, apply
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.borrowing import check_added
from arco_catalog.planning.context import Context
from arco_catalog.planning.kinds import AnyCommit, Semantics
from arco_catalog.planning.metadata_file import NewMetadata, ReceiptWrites, receipt_writes
from arco_catalog.planning.names import dotted
from arco_catalog.planning.old_files import own_files
from arco_catalog.planning.reserved_locations import locations_to_reserve, reserved_for
from arco_catalog.planning.writes import FileRemoval, FileWrite, PlannedWrite
from arco_catalog.state.borrowed import folders_of, outside
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.fields import mapping
from arco_catalog.state.index import Namespace
from arco_catalog.state.locations import Location, refuse_reserved
from arco_catalog.state.pointer import Pointer
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True)
class RelationCommit:
    """A client's commit to the table or view with a name. Its properties are computed once, because a commit may have
    50,000 updates and is planned again after each conflict."""

    semantics: Semantics
    namespace: Namespace
    name: str
    commit: AnyCommit
    manifest_list: FileWrite | None = None
    """The manifest list that the catalog writes for a rebased append (docs/design/appends.md)."""

    @property
    def dotted_name(self) -> str:
        """The full name of the table or view, its levels joined by dots, for messages."""
        return dotted(self.namespace, self.name)

    @cached_property
    def locations(self) -> Sequence[str]:
        """The locations that the commit sets: of the table or view itself, and in properties that direct writers."""
        return self.semantics.explicit_locations(self.commit)

    def is_outdated(self, pointer: Pointer) -> bool:
        """Whether a requirement of the commit on a branch or tag is seen to fail by the refs that the pointer repeats
        of the metadata. False does not show that the commit is possible; it is always False if the pointer has the
        intent of a transaction, which may change the refs."""
        if pointer.intent is not None:
            return False
        refs = mapping(pointer.document, "refs")
        return not all(required.holds(refs) for required in self._required_refs)

    @cached_property
    def _required_refs(self) -> Sequence[AssertRefSnapshotId]:
        """The requirements of the commit on branches and tags that are compared with a pointer: only some of them if
        there are many."""
        return self.semantics.required_refs(self.commit)

    @cached_property
    def requests_rebase(self) -> bool:
        """Whether the commit has two updates, no more, and requests that the append is rebased
        (docs/design/appends.md)."""
        return self.semantics.requests_rebase(self.commit)

    @cached_property
    def added_paths(self) -> Sequence[Location]:
        """The paths of the manifest lists and statistics files that the commit adds, without the files' names. Raises
        `BadRequest`."""
        return folders_of(self.semantics.added_leading_files(self.commit))


@dataclass(frozen=True, slots=True)
class CurrentRelation:
    """The base of a commit's plan, the current state of the table or view: the name's entry, the pointer, and the bytes
    of the current metadata file."""

    entry: RelationEntry
    pointer: Pointer
    body: bytes


@dataclass(frozen=True, slots=True)
class UnchangedRelation:
    """The plan of a commit that changes nothing, because the table or view has all its updates already."""

    pointer: Pointer
    body: bytes


@dataclass(frozen=True, slots=True)
class MissingLocations:
    """The plan of a commit that must reserve locations first: the commit names `locations`, which the entity does not
    hold yet, and adds manifest lists or statistics in the paths `borrowed`, outside of the entity's locations, which
    the registry does not list for it yet."""

    entity: str
    locations: Sequence[Location]
    borrowed: Sequence[Location] = ()


@dataclass(frozen=True, slots=True)
class ChangedRelation:
    """The plan of a commit that changes a table or view: the base's pointer and its successor, the new metadata, the
    receipts, and the files that may be removed after it. A rebased append also has a manifest list."""

    pointer: Pointer
    successor: Pointer
    new: NewMetadata
    receipts: ReceiptWrites
    removals: Sequence[FileRemoval]
    manifest_list: FileWrite | None = None

    @property
    def first_writes(self) -> Sequence[PlannedWrite]:
        """The writes of a commit to a table or view before the compare-and-swap of its pointer."""
        lists = [] if self.manifest_list is None else [self.manifest_list]
        return [self.new.write(), *lists, self.receipts.pending]


RelationPlan: TypeAlias = ChangedRelation | UnchangedRelation | MissingLocations


def plan_commit(
    context: Context, wanted: RelationCommit, base: CurrentRelation, attempt: Attempt, size: int, checkpoint: Checkpoint
) -> RelationPlan:
    """Plans a commit on its base, and returns the new state, or that the commit changes nothing, or the locations that
    it must reserve first. It takes time in proportion to `size`, the bytes of base and commit together, so callers run
    it in a worker thread unless that is small. Raises `Refusal`, `UnreadableMetadata` if the base's metadata file is no
    JSON object, and what `checkpoint` raises."""
    checkpoint()
    applied = apply(
        wanted.semantics,
        base.pointer.metadata.location,
        base.body,
        wanted.commit,
        size=size,
        now_ms=attempt.now_ms,
        name=wanted.dotted_name,
        checkpoint=checkpoint,
    )
    if applied.document is None:
        return UnchangedRelation(base.pointer, base.body)
    missing = missing_locations(context, wanted, base.entry)
    return missing or _changed(context, wanted, base, applied, applied.document, attempt)


def missing_locations(context: Context, wanted: RelationCommit, entry: RelationEntry) -> MissingLocations | None:
    """Returns the locations that a commit must reserve, and the paths that it must record as borrowed; None if there
    are none. Raises `BadRequest` for a location or path that is not allowed, and for too many."""
    missing = locations_to_reserve(context, entry, wanted.locations)
    held, loans = {*entry.locations, *(location.normal for location in missing)}, entry.loans
    outer = outside(wanted.added_paths, held)
    borrowed = [each for each in outer if not loans.cover(each)]
    check_added(context.locations, borrowed)
    return MissingLocations(entry.entity, missing, borrowed) if missing or borrowed else None


def added_locations_elsewhere(wanted: RelationCommit, entry: RelationEntry) -> list[Location]:
    """Returns the paths outside of the table's locations in which the commit adds manifest lists or statistics, also
    those that the registry has recorded as borrowed."""
    return outside(wanted.added_paths, {*entry.locations})


def _changed(
    context: Context,
    wanted: RelationCommit,
    base: CurrentRelation,
    applied: AppliedUpdates,
    document: JsonObject,
    attempt: Attempt,
) -> ChangedRelation:
    """Returns the planned change: the new pointer, metadata file and receipts, and the removal of old files. Raises
    `Refusal` for a metadata folder inside the catalog's state, and for metadata over a limit."""
    semantics, pointer = wanted.semantics, base.pointer
    new = NewMetadata.of(semantics, document, pointer.metadata, attempt, entity=pointer.entity, body=applied.body)
    refuse_reserved(Location.parse(new.folder))
    context.check_metadata(new.body, wanted.dotted_name)
    receipts = receipt_writes(
        context,
        entity=pointer.entity,
        attempt=attempt.id,
        namespace=wanted.namespace,
        name=wanted.name,
        new=new,
        requirements=wanted.commit.requirement_types,
        updates=wanted.commit.actions,
        snapshots=semantics.added_snapshots(wanted.commit),
        engine=semantics.engine(wanted.commit),
        manifest_list=None if wanted.manifest_list is None else wanted.manifest_list.location,
    )
    summary = new.summary(context.caller, attempt)
    reserved = reserved_for(context, base.entry, wanted.locations)
    if reserved:
        summary["named_locations"] = [*dict.fromkeys([*pointer.named_locations, *reserved])]
    gone = semantics.files_that_left_the_log(
        applied.base, document, base_file=pointer.metadata.location, registered_from=pointer.registered_from
    )
    old = list(own_files(new.folder, gone)) if gone else []
    successor = pointer.successor(attempt=attempt.id, metadata=new.file, summary=summary)
    removals = [FileRemoval(pointer.entity, old)] if old else []
    return ChangedRelation(pointer, successor, new, receipts, removals, wanted.manifest_list)
