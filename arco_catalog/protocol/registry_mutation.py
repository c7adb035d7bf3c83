"""Mutations whose commit point is the registry, such as changes of namespaces, creates, registers, drops and renames
(docs/design/registry.md#operations).

The driver of a table's commits runs them too, with HEAD in place of the pointer. The operation id is the attempt's id.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.answers import Answer, decode_answer, encode_answer
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import settle_names
from arco_catalog.protocol.evidence import FORGOTTEN, moved_registry
from arco_catalog.protocol.group_commit import Replan
from arco_catalog.protocol.lookup import carry_out, carry_out_loaded
from arco_catalog.protocol.mutation import Freshness, Mutation, NoOp, Prerequisite, ReadSet
from arco_catalog.protocol.planned_commit import RegistryCommit, Write
from arco_catalog.protocol.rebuilding import rebuilt
from arco_catalog.state.access import CLAIM_AGE_MS, State
from arco_catalog.state.entries import PendingTransaction
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.reads import recorded
from arco_catalog.state.registry import Operation, RegistryState
from storage_backends.lazy_dataclass import dataclass


@dataclass
class RegistryReadSet(ReadSet):
    """What a mutation of the registry has read: HEAD, as it was read for this request (`fresh`), or as this process
    cached it. `refusal` is an error of `load_base`, which `plan` raises."""

    state: State
    head: RegistryState
    fresh: bool
    refusal: Refusal | None = None

    @classmethod
    def at(cls, state: State, head: RegistryState) -> Self:
        """Returns the read set of a HEAD that was read after the plan, often by another request of this process; it
        counts as not fresh. The HEAD gets the segments that this request has loaded."""
        return cls(state, head.with_segments(state.loaded_segment), fresh=False)

    @property
    def is_fresh(self) -> bool:
        """Whether HEAD was read from the store for this request: neither cached, nor read by another one."""
        return self.fresh

    def covers(self, write_set: WriteSet) -> bool:
        """Whether the write set names no pointer, so that the registry's history is all the evidence."""
        return not write_set.pointers

    async def has_committed(self, attempt: str, write_set: WriteSet) -> bool:
        """Whether the registry's history up to this HEAD has the attempt; may read older commits. False if the write
        set does not have the registry. Raises `CommitStateUnknown` if it is not found, and the history no longer
        reaches back to it."""
        return await moved_registry(self.state, self.head, attempt, write_set)


class RegistryMutation(Mutation[RegistryReadSet]):
    """The base of mutations of the registry. A subclass computes the change from a HEAD."""

    kind: str

    def __init__(self, session: Session) -> None:
        self.session = session
        self.state = session.state
        self.context = session.context

    @abstractmethod
    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change | NoOp | Prerequisite]:
        """Computes the change to make on this HEAD, that there is none to make (`NoOp`), or a step that must run first
        (`Prerequisite`). Pure. Raises `Refusal`, and `PendingTransaction` if it depends on a transaction that may be
        undecided, which is then waited for before another plan."""

    def change_again(
        self, planned: Change, read_set: RegistryReadSet, attempt: Attempt
    ) -> Steps[Change | NoOp | Prerequisite]:
        """Computes the change on another HEAD: by default as `change` does. A subclass may reuse parts of the `planned`
        change that take long to make."""
        return self.change(read_set, attempt)

    def further_writes(self, attempt: Attempt) -> Sequence[Write]:
        """Returns the writes that an attempt must make before the registry commit, besides the writes in the plan: none
        by default."""
        return ()

    async def read(self, freshness: Freshness, rank: str) -> RegistryReadSet:
        """Reads HEAD, unless `freshness` is `CACHED` and the cached one is less than `CLAIM_AGE_MS` old. Ignores
        `rank`."""
        head = self.state.cached_head(CLAIM_AGE_MS) if freshness is Freshness.CACHED else None
        if head is not None:
            return RegistryReadSet(self.state, head, fresh=False)
        return RegistryReadSet(self.state, await self.state.head(), fresh=True)

    def needs_base(self, read_set: RegistryReadSet) -> bool:
        """Returns False here, because most changes of the registry are planned from HEAD alone. Mutations that need
        more override this and `load_base`."""
        return False

    async def load_base(self, read_set: RegistryReadSet) -> None:
        """Does nothing, because `needs_base` is False unless a subclass overrides both."""
        return None

    async def write_set(self, read_set: RegistryReadSet, attempt: Attempt) -> WriteSet:
        """Returns only the registry's sequence number; a subclass that marks or creates entities overrides this."""
        return WriteSet(registry=read_set.head.sequence)

    async def plan(self, read_set: RegistryReadSet, attempt: Attempt) -> RegistryCommit | NoOp | Prerequisite:
        """Plans the change on the HEAD that was read, and returns the commit of it, or the `NoOp` or `Prerequisite`
        of `change`; a `Prerequisite` that settles a transaction if the change depends on one. With a commit, adds the
        entity that the change is about, if any, to the request's statistics. Raises `Refusal` and `StoreError`."""
        steps = self.change(read_set, attempt)
        try:
            change = await carry_out(self.state, read_set.head.index, steps, self.session.request.body_bytes)
        except PendingTransaction as met:
            transaction = met.transaction
            return Prerequisite(lambda: settle_names(self.session, transaction))
        if not isinstance(change, Change):
            return change
        if change.about is not None:
            self.session.stats.about(*change.about)
        return RegistryCommit(
            write_set=WriteSet(registry=read_set.head.sequence, marks=change.marks, creates=change.creates),
            first=change.first,
            after=change.after,
            answer=change.answer,
            head=read_set.head,
            attempt=attempt,
            change=change,
            planner=self,
        )

    async def validate(self, read_set: RegistryReadSet, rank: str) -> RegistryReadSet | None:
        """Returns None if the plan is still valid, else the fresher read set, with the base. HEAD is read if the read
        set has a cached one, and the plan is valid if HEAD has not moved. HEAD is not read if the change will most
        likely share a registry commit, because the leader of the batch chooses HEAD."""
        group = self.session.catalog.group_committer
        if read_set.fresh or (group is not None and group.contended):
            return None
        fresher = RegistryReadSet(self.state, await self.state.head(), fresh=True)
        if fresher.head.version == read_set.head.version:
            return None
        if self.needs_base(fresher):
            await self.load_base(fresher)
        return fresher

    def replan(self, plan: RegistryCommit, head: RegistryState) -> Replan | None:
        """Plans the change on another HEAD without reading or writing anything. Returns None if a base or segment
        must be loaded, if `change` raises, if the loaded rights do not allow it, and if it may not replace the planned
        change."""
        read_set, lookups = RegistryReadSet.at(self.state, head), list[Needs]()
        try:
            if self.needs_base(read_set):
                return None
            steps = recorded(self.change_again(plan.change, read_set, plan.attempt), lookups)
            change = carry_out_loaded(read_set.head.index, steps)
        except (Refusal, PendingTransaction):
            return None
        if not self.session.access.judge_loaded(read_set.head.index, lookups):
            return None
        if not isinstance(change, Change) or not change.may_replace(plan.change):
            return None
        operation = registry_operation(self.session, self.kind, plan.attempt, change)
        return Replan(change.edits, operation, lookups)

    async def answer_on_evidence(self, attempt: str, write_set: WriteSet) -> Answer:
        """Returns the answer that the registry commit of the attempt stores, made whole by `rebuilt`. Raises
        `CommitStateUnknown` if the commit was collected or is not found, `InternalError` if it stores none, and as
        `rebuilt` does."""
        assert write_set.registry is not None
        head = await self.state.head()
        commit_id = await self.state.commit_of(head, attempt, write_set.registry)
        if commit_id is None:
            raise CommitStateUnknown(FORGOTTEN, "evidence-lost")
        commit = head if commit_id == head.id else await self.state.registry_commit(commit_id)
        operation = commit.operation(attempt)
        kept = (
            decode_answer(answer)
            if operation is not None and isinstance(answer := operation.get("answer"), dict)
            else None
        )
        if kept is None or isinstance(kept, Refusal):
            raise InternalError(
                f"the change was made, but the registry commit {commit_id} has no answer for operation {attempt}"
            )
        return await rebuilt(self.session, kept)


def registry_operation(session: Session, kind: str, attempt: Attempt, change: Change) -> Operation:
    """Returns the entry of a change in the registry's history, which is not written here: the attempt's id, the kind,
    the caller with the detail of the change, and the answer."""
    detail: JsonObject = {**session.request.by, **change.detail}
    return Operation(attempt.id, kind, detail, encode_answer(change.answer))
