"""The execution of a commit to the registry: a registry commit of its own, which is written with the other first
writes, one that it shares with other requests of this process (docs/design/group-commit.md), or a proposal, which other
processes may commit."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.commit_execution import CommitExecution, Revalidate
from arco_catalog.protocol.group_commit import FALL_BACK, PendingCommit, Replan
from arco_catalog.protocol.planned_commit import RegistryCommit, Write
from arco_catalog.protocol.prepared_commit import PreparedCommit
from arco_catalog.protocol.registry_mutation import RegistryReadSet, registry_operation
from arco_catalog.state.access import SegmentGone
from arco_catalog.state.proposal import Proposal
from arco_catalog.state.reads import Reads
from arco_catalog.state.registry import RegistryState
from storage_backends import Applied, PreconditionFailed, StoreUnavailable


class RegistryExecution(CommitExecution):
    """Carries out a planned commit to the registry, alone, in a shared registry commit, or through a proposal."""

    def __init__(self, session: Session, plan: RegistryCommit) -> None:
        super().__init__(session, plan)
        self.commit = plan
        self.state = session.state
        self.group_committer = session.catalog.group_committer
        self.own: PreparedCommit | None = None
        """The registry commit that this request wrote for itself alone."""
        self.may_propose = plan.head.allows_cancellations

    def first_writes(self) -> list[Write]:
        """Returns the writes before the compare-and-swap, and makes none of them: the registry commit for this request
        alone, which `put` may find unnecessary, then the writes of the plan and of the mutation."""
        attempt = self.commit.attempt
        own = Write(f"registry commit of {attempt.id} on {self.commit.head.version}", self.put)
        return [own, *super().first_writes(), *self.commit.planner.further_writes(attempt)]

    async def put(self) -> None:
        """Writes a registry commit for this request alone, on the HEAD of the plan, without making it HEAD, and
        concurrently reads whether proposals wait (the bell). Writes none if the change will most likely share one,
        since then the leader of the batch chooses HEAD, or if HEAD must rest first."""
        group = self.group_committer
        if self.state.rest_ms(self.commit.head) or (group is not None and group.contended):
            return
        with nullcontext() if group is None else group.preparing():
            change = self.commit.change
            operations = [registry_operation(self.session, self.commit.planner.kind, self.commit.attempt, change)]
            own = await PreparedCommit.of(self.state, self.commit.head, change.edits, operations)
            await own.put_and_read_bell()
        self.own = own

    async def swap(self, revalidate: Revalidate) -> Applied | PreconditionFailed:
        """Makes the commit by itself or in a shared registry commit; through a proposal if it must, or if HEAD allows
        proposals and the compare-and-swap was lost or the store unavailable. Returns `PreconditionFailed` if it is not
        known to have applied (the first sending of a swap may have, as in `State.swap`), as `FALL_BACK` if the driver
        must plan again. Raises `CommitStateUnknown`, `StoreError`, and what `revalidate` and `ProposedCommit.run`
        raise."""

        async def revalidate_at(head: RegistryState) -> bool:
            return await revalidate(RegistryReadSet.at(self.state, head))

        if not self.must_propose:
            try:
                outcome = await self.swap_alone_or_shared(revalidate_at)
            except StoreUnavailable:  # it was not applied: the store may limit how often HEAD is written
                if not self.may_propose:
                    raise
            else:
                if outcome is FALL_BACK or isinstance(outcome, Applied) or not self.may_propose:
                    return outcome
        return await self.propose(revalidate_at)

    @property
    def must_propose(self) -> bool:
        """Whether the registry's change must be proposed, without a compare-and-swap of HEAD by this request: proposals
        of other processes wait, or HEAD must rest and this process has no group committer that waits for it."""
        return self.group_committer is None if self.own is None else self.own.must_propose

    async def swap_alone_or_shared(
        self, revalidate: Callable[[RegistryState], Awaitable[bool]]
    ) -> Applied | PreconditionFailed:
        """Makes the registry commit without a proposal, as `GroupCommitter.commit` does, or, in a process without a
        group committer, by a compare-and-swap for this request alone. `PreconditionFailed` may also mean that the swap
        applied before, as in `State.swap`."""
        if self.group_committer is None:
            assert self.own is not None
            return await self.own.swap(may_propose=True)
        member = PendingCommit(self.state, self.replan, revalidate, self.session.seconds_left)
        return await self.group_committer.commit(member, self.own)

    async def propose(self, revalidate: Callable[[RegistryState], Awaitable[bool]]) -> Applied | PreconditionFailed:
        """Makes the registry's change through a proposal, which other processes may commit, too: this process lost the
        compare-and-swap of HEAD, or would compete with those that wait. Returns `FALL_BACK`, with nothing proposed, if
        the request must fall back to the driver. Raises as `revalidate` and `ProposedCommit.run` do, and
        `CommitStateUnknown` instead of `SegmentGone`, for which the driver would begin another attempt."""
        from arco_catalog.protocol.proposed_commit import ProposedCommit  # a cold start does not pay for it

        head = await self.state.head()
        replan = self.replan(head)
        if replan is None or not await revalidate(head):
            return FALL_BACK
        proposal = Proposal.of(
            head,
            replan.operation,
            replan.edits,
            Reads.of(head, replan.lookups),
            base=head.sequence,
            written_ms=self.commit.attempt.now_ms,
        )
        self.session.check_deadline()
        try:
            return await ProposedCommit(self.session, proposal, head).run()
        except SegmentGone as gone:
            raise CommitStateUnknown(f"It is unknown whether the change is made: {gone.message}") from gone

    def replan(self, head: RegistryState) -> Replan | None:
        """Replans the request's change of the registry on another HEAD than that of the plan, such as the one that a
        leader chose. Returns None if the change can't be replanned or allowed there without reading, or differs from
        the plan, so that the request must fall back to the driver."""
        return self.commit.planner.replan(self.commit, head)
