"""Mutations whose commit point is the registry: namespaces, creates, registers, drops, renames
(docs/design/registry.md#operations).

They obey the same driver as a table's commits, with the manifest in place of the pointer; the operation id is the
attempt's id.
"""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.answers import Answer, decode_answer, encode_answer
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import settle_names
from arco_catalog.protocol.evidence import FORGOTTEN, moved_registry
from arco_catalog.protocol.group_commit import PendingCommit, Replan
from arco_catalog.protocol.lookup import carry_out, carry_out_loaded
from arco_catalog.protocol.mutation import (
    Freshness,
    Mutation,
    NoOp,
    PlannedCommit,
    Prerequisite,
    ReadSet,
    Revalidate,
    Write,
)
from arco_catalog.protocol.prepared_commit import PreparedCommit
from arco_catalog.protocol.rebuilding import rebuilt
from arco_catalog.protocol.writing import writes
from arco_catalog.state.access import CLAIM_AGE_MS, State
from arco_catalog.state.entries import PendingTransaction
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.needs import Steps
from arco_catalog.state.registry import Operation, RegistryState
from storage_backends import Applied, PreconditionFailed


@dataclass
class RegistryReadSet(ReadSet):
    """The registry's HEAD as it was read for this request, or as this process cached it; `refusal` is what
    `load_base` met, for `plan` to raise."""

    state: State
    head: RegistryState
    fresh: bool
    refusal: Refusal | None = None

    @property
    def is_fresh(self) -> bool:
        return self.fresh

    def covers(self, write_set: WriteSet) -> bool:
        return not write_set.pointers

    async def has_committed(self, attempt: str, write_set: WriteSet) -> bool:
        return await moved_registry(self.state, self.head, attempt, write_set)


class RegistryMutation(Mutation[RegistryReadSet]):
    """One operation on the registry. Subclasses say what it changes, given a HEAD."""

    kind: str

    def __init__(self, session: Session) -> None:
        self.session = session
        self.state = session.state
        self.context = session.context

    @abstractmethod
    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change | NoOp | Prerequisite]:
        """The change to make on this HEAD. Pure. Raises `Refusal`, and `PendingTransaction` where it depends on a
        transaction."""

    def change_again(
        self, planned: Change, read_set: RegistryReadSet, attempt: Attempt
    ) -> Steps[Change | NoOp | Prerequisite]:
        """The same on another HEAD. What is long to make and stays as it is may be taken from what was `planned`."""
        return self.change(read_set, attempt)

    def further_writes(self, attempt: Attempt) -> Sequence[Write]:
        """What goes before the commit besides the planned writes."""
        return ()

    async def read(self, freshness: Freshness, rank: str) -> RegistryReadSet:
        head = self.state.cached_head(CLAIM_AGE_MS) if freshness is Freshness.CACHED else None
        if head is not None:
            return RegistryReadSet(self.state, head, fresh=False)
        return RegistryReadSet(self.state, await self.state.head(), fresh=True)

    def needs_base(self, read_set: RegistryReadSet) -> bool:
        """False: most changes of the registry are planned from HEAD alone. Others override this and `load_base`."""
        return False

    async def load_base(self, read_set: RegistryReadSet) -> None:
        return None

    async def write_set(self, read_set: RegistryReadSet, attempt: Attempt) -> WriteSet:
        return WriteSet(registry=read_set.head.sequence)

    async def plan(
        self, read_set: RegistryReadSet, attempt: Attempt
    ) -> PlannedCommit[RegistryReadSet] | NoOp | Prerequisite:
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
        return RegistryPlan(self, read_set, attempt, change).planned_commit()

    async def answer_on_evidence(self, attempt: str, write_set: WriteSet) -> Answer:
        """The answer that the registry commit itself kept."""
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
            raise InternalError(f"registry commit {commit_id} has no answer for operation {attempt}")
        return await rebuilt(self.session, kept)


class RegistryPlan:
    """A planned change of the registry. It is committed by a registry commit of its own, written with the other first
    writes, or, where other requests are moving HEAD, by one that it shares with them."""

    def __init__(self, mutation: RegistryMutation, read_set: RegistryReadSet, attempt: Attempt, change: Change) -> None:
        self.mutation = mutation
        self.session = mutation.session
        self.state = mutation.state
        self.group_committer = self.session.catalog.group_committer
        self.read_set = read_set
        self.attempt = attempt
        self.change = change
        self.own: PreparedCommit | None = None

    def planned_commit(self) -> PlannedCommit[RegistryReadSet]:
        """The plan in the form that the driver executes."""
        change = self.change
        commit = Write(f"registry commit of {self.attempt.id} on {self.read_set.head.version}", self.put)
        beside = [*writes(self.session, *change.first), *self.mutation.further_writes(self.attempt)]
        return PlannedCommit(
            write_set=WriteSet(registry=self.read_set.head.sequence, marks=change.marks, creates=change.creates),
            first=[commit, *beside],
            check=self.check,
            swap=self.swap,
            after=writes(self.session, *change.after),
            answer=change.answer,
        )

    @property
    def contended(self) -> bool:
        """Whether the change is going to share a commit, most likely; then HEAD is chosen by who makes that."""
        return self.group_committer is not None and self.group_committer.contended

    async def check(self) -> RegistryReadSet | None:
        """A cached HEAD is read again beside the first writes: cheaper than losing the compare-and-swap."""
        if self.read_set.fresh or self.contended:
            return None
        fresher = RegistryReadSet(self.state, await self.state.head(), fresh=True)
        if fresher.head.version == self.read_set.head.version:
            return None
        if self.mutation.needs_base(fresher):
            await self.mutation.load_base(fresher)
        return fresher

    async def put(self) -> None:
        """Writes a commit of one's own, unless it would be in vain."""
        if self.contended:
            return
        with nullcontext() if self.group_committer is None else self.group_committer.preparing():
            operations = [self.operation(self.change)]
            own = await PreparedCommit.of(self.state, self.read_set.head, self.change.edits, operations)
            await own.put()
        self.own = own

    async def swap(self, revalidate: Revalidate[RegistryReadSet]) -> Applied | PreconditionFailed:
        """The commit point."""
        if self.group_committer is None:
            assert self.own is not None
            return await self.own.swap()

        async def revalidate_at(head: RegistryState) -> bool:
            return await revalidate(self.seen(head))

        session = self.session
        return await self.group_committer.commit(
            PendingCommit(self.state, self.replan, revalidate_at, session.seconds_left), self.own
        )

    def seen(self, head: RegistryState) -> RegistryReadSet:
        """A HEAD that somebody else chose, as this request sees it."""
        return RegistryReadSet(self.state, head.with_segments(self.state.loaded_segment), fresh=False)

    def replan(self, head: RegistryState) -> Replan | None:
        """The same change on another HEAD; None if it would be another one, or none, or must read anything first. What
        was written, declared as write set and is to be answered must stay as it is."""
        read_set, planned, mutation = self.seen(head), self.change, self.mutation
        try:
            if mutation.needs_base(read_set):
                return None
            steps = mutation.change_again(planned, read_set, self.attempt)
            change = carry_out_loaded(read_set.head.index, steps)
        except (Refusal, PendingTransaction):
            return None
        if self.session.access is not None and not self.session.access.judge_loaded(read_set.head.index):
            return None
        if not isinstance(change, Change) or not change.is_made_by(planned):
            return None
        return Replan(change.edits, self.operation(change))

    def operation(self, change: Change) -> Operation:
        """The entry in the registry's history."""
        detail: JsonObject = {**self.session.request.by, **change.detail}
        return Operation(self.attempt.id, self.mutation.kind, detail, encode_answer(change.answer))
