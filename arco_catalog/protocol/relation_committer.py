"""Reads the state of a table or view on which one commit is planned, and plans the commit: alone or as part of a
transaction."""

from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from arco_catalog.iceberg.commit import Commit
from arco_catalog.iceberg.errors import BadRequest, CommitFailed, InternalError, NotFound, Refusal
from arco_catalog.iceberg.properties import COMMIT_APPENDS
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.overlap import refuse_purged
from arco_catalog.planning.relation_change import (
    CurrentRelation,
    RelationCommit,
    RelationPlan,
    added_locations_elsewhere,
    missing_locations,
    plan_commit,
)
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.protocol.relation_read_set import RelationLookup, RelationReadSet
from arco_catalog.state.entries import RelationEntry, has_pointer
from arco_catalog.state.index import Index
from arco_catalog.state.memory import VALUES_COUNTED_FROM_BYTES
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.worker_threads import off_loop

if TYPE_CHECKING:
    from arco_catalog.protocol.append_rebaser import AppendRebaser

_COMMIT_APPENDS = COMMIT_APPENDS.encode()


class RelationCommitter:
    """Reads and plans a client's commit to one table or view. `rebases` is whether it may rebase an append that lost
    its branch: the caller then writes the manifest list of the plan, too."""

    def __init__(self, session: Session, wanted: RelationCommit, *, rebases: bool = False) -> None:
        self.session = session
        self.wanted = wanted
        self._rebases = rebases and wanted.requests_rebase
        self._taken = 0
        """The bytes of the request's memory for changing the base."""
        self._accounted: bytes | None = None
        """The base for which they were taken."""
        self._rebaser: AppendRebaser | None = None
        self._refused: str | None = None
        """Why the last rebase was refused; None if it was not, or none was due."""

    def lookup(self, rank: str | None = None) -> RelationLookup:
        """Returns the lookup of the table's or view's name for a commit. Reads nothing. `rank` is that of a
        transaction, None outside of one."""
        return RelationLookup(
            self.wanted.namespace, self.wanted.name, self.wanted.semantics.kind, writing=True, rank=rank
        )

    def needs_base(self, read_set: RelationReadSet) -> bool:
        """Whether `load_base` must be called, because the base is neither read yet nor cached. A cached base is put
        into the read set. False if there is no pointer, or an error was met."""
        if read_set.pointer is None or read_set.refusal is not None:
            return False
        if read_set.base is None:
            read_set.base = self.session.files.cached(read_set.pointer.metadata.location)
        return read_set.base is None

    async def load_base(self, read_set: RelationReadSet) -> None:
        """Reads the base into the read set, unless that has one, or no pointer. A `Refusal` is put there, and `plan`
        raises it; if the file is gone because the pointer has moved, the pointer also counts as not fresh. Raises
        `StoreError`."""
        if read_set.base is None and read_set.pointer is not None:
            try:
                read_set.base = await self.session.files.read_current(read_set.pointer.metadata.location)
            except NotFound as gone:
                read_set.refusal = gone
                again = await self.session.state.pointer(read_set.pointer.entity)
                if again is None or again.version != read_set.pointer.version:
                    # The pointer has moved on, and its old file may have been removed: read again before any answer.
                    read_set.pointer_fresh = False
            except Refusal as refusal:
                read_set.refusal = refusal

    async def _take_memory(self, base: CurrentRelation) -> None:
        """Takes from the request's share the memory that it takes to parse and change the base (a table's or view's
        metadata), unless it was taken before. Raises `OutOfMemory`."""
        if base.body is self._accounted:
            return
        needed = await self.session.files.parsed_bytes(base.pointer.metadata.location, base.body)
        if needed > self._taken:
            await self.session.hold.take(needed - self._taken)
            self._taken = needed
        self._accounted = base.body

    async def plan(self, read_set: RelationReadSet, attempt: Attempt) -> RelationPlan:
        """Plans the commit on what was read, and returns the changed table or view, that the commit changes nothing, or
        the locations that must be reserved first. Raises `Refusal`: the one of the read set, for a name that does not
        exist, for a table that follows another catalog's, for a commit that its requirements or limits do not allow,
        and last for files that it adds where another table is being purged; `UnreadableMetadata` if the base's metadata
        file is no JSON object; `OutOfMemory`; and `StoreError`, also past the deadline."""
        session, wanted = self.session, self.wanted
        if read_set.refusal is not None:
            raise read_set.refusal
        if read_set.entry is None:
            raise wanted.semantics.no_such(read_set.head.index, wanted.namespace, wanted.name)
        if read_set.pointer is None or read_set.base is None:
            raise InternalError(f"A commit to {wanted.dotted_name} was planned before its current metadata was loaded")
        if not has_pointer(read_set.entry.json):
            raise BadRequest(f"{wanted.dotted_name} follows another catalog's table: only that catalog commits to it")
        current = CurrentRelation(read_set.entry, read_set.pointer, read_set.base)
        if len(current.body) > VALUES_COUNTED_FROM_BYTES:
            await self._take_memory(current)
        size = len(current.body) + session.request.body_bytes
        change: RelationPlan | None = None
        if self.may_be_rebased(current.pointer, current.body):
            change = await self._plan_rebased(current, attempt, size)
        if change is None:
            try:
                change = await self._plan(wanted, current, attempt, size)
            except CommitFailed as failed:
                if self._refused is None:
                    raise
                raise CommitFailed(f"{failed.message} (and the append was not rebased: {self._refused})") from failed
        await self.refuse_purged(read_set.head.index, read_set.entry)
        return change

    async def _plan(self, wanted: RelationCommit, base: CurrentRelation, attempt: Attempt, size: int) -> RelationPlan:
        """Plans a commit to a table or view on this base and returns the plan; in a worker thread if the `size`, the
        bytes of the base and the request's body, is large. Raises as `plan_commit` does, and `StoreUnavailable` after
        the deadline."""
        plan = partial(plan_commit, self.session.context, wanted, base, attempt, size, self.session.check_deadline)
        return await off_loop(size, plan)

    def may_be_rebased(self, pointer: Pointer, body: bytes) -> bool:
        """Whether this committer rebases, the commit requests it (whether it is such an append is seen by the rebase),
        a requirement on a branch or tag is seen to fail, and the table with these bytes of metadata may allow a rebase
        (docs/design/appends.md)."""
        return self._rebases and _COMMIT_APPENDS in body and self.wanted.is_outdated(pointer)

    def is_conflict(self, pointer: Pointer, body: bytes | None) -> bool:
        """Whether a requirement of the commit on a branch or tag is seen to fail at this pointer, and the commit is not
        rebased then: it is no append that may be, or by `body`, the bytes of the table's metadata at this pointer or an
        earlier one, the table does not allow it."""
        if not self.wanted.is_outdated(pointer):
            return False
        return not self._is_rebasable or (body is not None and _COMMIT_APPENDS not in body)

    @cached_property
    def _is_rebasable(self) -> bool:
        """Whether the commit is an append that requests a rebase, in a form in which a table may allow it. False if the
        committer does not rebase, as in a transaction."""
        commit = self.wanted.commit
        if not self._rebases or not isinstance(commit, Commit):
            return False
        from arco_catalog.iceberg.appends import NotRebasable, append_of  # deferred, as in `_plan_rebased`

        try:
            append_of(commit)
        except NotRebasable:
            return False
        return True

    async def prepare_rebase(self, base: CurrentRelation) -> None:
        """Reads the manifest lists of the append and of the snapshot on which the client built, and the manifests that
        the append adds, so that a rebase in `plan` reads only the present list of the branch; stops without an error if
        the append may not be rebased. Raises `StoreError`."""
        from arco_catalog.iceberg.appends import NotRebasable  # deferred, as in `_plan_rebased`

        with suppress(NotRebasable):
            await self._get_rebaser().read(base)

    async def _plan_rebased(self, base: CurrentRelation, attempt: Attempt, size: int) -> RelationPlan | None:
        """Plans the append on the present snapshot of its branch. Returns None, and records the reason in `_refused`,
        if it must be refused: because it may not be rebased, or because the rebased commit can't be made, as one whose
        base is of a writer whose clock is ahead. Raises `StoreError`."""
        from arco_catalog.iceberg.appends import NotRebasable  # deferred: few tables allow it

        self._refused = None
        try:
            rebased = await self._get_rebaser().rebase(base, attempt)
            return await self._plan(rebased, base, attempt, size)
        except (NotRebasable, Refusal) as refused:
            self._refused = str(refused)
            return None

    def _get_rebaser(self) -> "AppendRebaser":
        """Returns the rebaser of this commit, which is made once."""
        if self._rebaser is None:
            # Deferred: a cold start does not pay for what reads manifests.
            from arco_catalog.protocol.append_rebaser import AppendRebaser

            self._rebaser = AppendRebaser(self.session, self.wanted)
        return self._rebaser

    async def refuse_purged(self, index: Index, entry: RelationEntry) -> None:
        """Raises `BadRequest` if the commit adds a file outside of the table's locations, where another table is being
        purged by now, even if this table borrowed from it before (docs/design/purge.md#rule-16)."""
        size = self.session.request.body_bytes
        if outer := await off_loop(size, lambda: added_locations_elsewhere(self.wanted, entry)):
            await carry_out(self.session.state, index, refuse_purged(index, outer, entry.entity), size)

    async def is_refused(self, index: Index, entry: RelationEntry) -> bool:
        """Whether the registry, after it was read once more, no longer lets the commit be made as it was planned: the
        entry does not have all locations and borrowed paths that the commit names, or files that it adds outside of the
        locations are being purged."""
        try:
            await self.refuse_purged(index, entry)
        except BadRequest:
            return True
        return await off_loop(self.session.request.body_bytes, lambda: self._lacks(entry))

    def _lacks(self, entry: RelationEntry) -> bool:
        """Whether the table's or view's entry, read again, is without a location or borrowed path that the commit
        names, which would have to be reserved first."""
        return missing_locations(self.session.context, self.wanted, entry) is not None
