"""The rules of proposals, left out one at a time (docs/design/registry.md#proposals)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning import name_intents, proposals, purge
from arco_catalog.planning.proposals import Verdict
from arco_catalog.protocol import evidence, internal_commits, proposed_commit, transaction_coordinator
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.group_commit import FALL_BACK
from arco_catalog.protocol.idempotency import IdempotencyGuard
from arco_catalog.protocol.mutation import AttemptAborted
from arco_catalog.protocol.prepared_commit import PreparedCommit
from arco_catalog.protocol.proposed_commit import ProposedCommit
from arco_catalog.protocol.registry_execution import RegistryExecution
from arco_catalog.state import commit_edits, registry
from arco_catalog.state.access import State
from arco_catalog.state.fields import mapping
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.needs import Steps, immediately
from arco_catalog.state.proposal import Proposal
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.tombstone import Tombstone
from arco_catalog.upkeep.purge import executor
from storage_backends import Applied, PreconditionFailed, StoreError
from tests.simulation.rule_mutations import Mutation
from tests.support.steps import result

Ended = Callable[[RegistryState, str], bool]


def is_committed(head: RegistryState, attempt: str) -> bool:
    return head.commit_of(attempt) is not None


def is_cancelled(head: RegistryState, attempt: str) -> bool:
    return head.is_cancelled(attempt)


def leaders_leave(patch: pytest.MonkeyPatch, *ended: Ended, forgotten: bool = True, old: bool = True) -> None:
    """Leaders leave proposals by these rules alone: that the attempt has ended, is `forgotten`, has `old` files."""

    def has_ended(head: RegistryState, attempt: str) -> bool:
        return any(rule(head, attempt) for rule in ended)

    def judge(proposal: Proposal, head: RegistryState, read_ms: int, lifetime_ms: int) -> Steps[Verdict]:
        if has_ended(head, proposal.attempt) or (forgotten and not head.remembers(proposal.base)):
            return Verdict.LEAVE
        if old and proposal.written_ms + lifetime_ms < read_ms:
            return Verdict.LEAVE
        if proposals.cancels_committed(proposal, head):
            return Verdict.CANCEL
        return Verdict.TAKE_IN if (yield from proposal.still_holds(head)) else Verdict.CANCEL

    patch.setattr(proposals, "judge_proposal", judge)
    patch.setattr(proposed_commit, "_has_ended", has_ended)


# Leaders.


def a_committed_attempt_decided_again(patch: pytest.MonkeyPatch) -> None:
    leaders_leave(patch, is_cancelled)


def a_cancelled_attempt_taken_in(patch: pytest.MonkeyPatch) -> None:
    leaders_leave(patch, is_committed)


def a_proposal_whose_base_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    leaders_leave(patch, is_committed, is_cancelled, forgotten=False)


def a_proposal_with_old_files(patch: pytest.MonkeyPatch) -> None:
    leaders_leave(patch, is_committed, is_cancelled, old=False)


def a_proposal_whose_reads_changed(patch: pytest.MonkeyPatch) -> None:
    def still_holds(self: Proposal, head: RegistryState) -> Steps[bool]:
        yield from self.reads.on(head)
        return True

    patch.setattr(Proposal, "still_holds", still_holds)


def a_changed_proposal_left_instead_of_cancelled(patch: pytest.MonkeyPatch) -> None:
    rightly = proposals.judge_proposal

    def judge(proposal: Proposal, head: RegistryState, read_ms: int, lifetime_ms: int) -> Steps[Verdict]:
        verdict = yield from rightly(proposal, head, read_ms, lifetime_ms)
        return Verdict.LEAVE if verdict is Verdict.CANCEL else verdict

    patch.setattr(proposals, "judge_proposal", judge)


def a_commit_on_a_head_that_was_not_judged(patch: pytest.MonkeyPatch) -> None:
    class OnTheNewest(PreparedCommit):
        @classmethod
        async def of(
            cls, state: State, head: RegistryState, edits: Edits, operations: Sequence[Operation]
        ) -> PreparedCommit:
            return await PreparedCommit.of(state, (await state.head()).with_bell(head.bell), edits, operations)

    patch.setattr(proposed_commit, "PreparedCommit", OnTheNewest)


# Takeovers.


def a_cancellation_of_a_committed_attempt(patch: pytest.MonkeyPatch) -> None:
    """The leader goes by the search of the takeover, on an earlier HEAD."""
    patch.setattr(proposals, "cancels_committed", lambda proposal, head: False)


def a_cancellation_of_an_attempt_in_the_same_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(proposals, "cancels_any", lambda proposal, taken_in: False)


def an_attempt_taken_in_after_its_cancellation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(proposals, "ended_by", lambda proposal: {proposal.attempt})


def a_cancellation_proposed_again_without_a_walk(patch: pytest.MonkeyPatch) -> None:
    """HEAD has forgotten the commit of the attempt, and the new base is after it."""

    async def is_void(self: ProposedCommit, head: RegistryState, since: int) -> bool:
        return False

    patch.setattr(ProposedCommit, "_is_void", is_void)


def a_takeover_that_only_fences(patch: pytest.MonkeyPatch) -> None:
    async def fence(session: Session, attempts: Mapping[str, WriteSet]) -> RegistryState:
        return await evidence.fence_registry(session)

    patch.setattr(evidence, "cancel_in_registry", fence)


# Requests that propose.


def a_proposal_without_a_look_at_the_next_slot(patch: pytest.MonkeyPatch) -> None:
    rightly, looks = RegistryExecution.propose, IdempotencyGuard.check_not_superseded
    proposes = ContextVar("proposes", default=False)

    async def propose(
        self: RegistryExecution, revalidate: Callable[[RegistryState], Awaitable[bool]]
    ) -> Applied | PreconditionFailed:
        async def revalidate_blindly(head: RegistryState) -> bool:
            token = proposes.set(True)
            try:
                return await revalidate(head)
            finally:
                proposes.reset(token)

        return await rightly(self, revalidate_blindly)

    async def check_not_superseded(self: IdempotencyGuard) -> None:
        if not proposes.get():
            await looks(self)

    patch.setattr(RegistryExecution, "propose", propose)
    patch.setattr(IdempotencyGuard, "check_not_superseded", check_not_superseded)


def a_later_base_without_a_walk(patch: pytest.MonkeyPatch) -> None:
    async def find_end(state: State, head: RegistryState, attempt: str, since: int) -> bool | None:
        if is_committed(head, attempt):
            return True
        return False if is_cancelled(head, attempt) else None

    patch.setattr(proposed_commit, "find_end", find_end)


def a_shared_commit_without_the_edits_of_others(patch: pytest.MonkeyPatch) -> None:
    """The object of a commit has the edits of one change, and HEAD those of all."""

    def changes_of(before: JsonObject, after: JsonObject) -> JsonObject:
        changes = commit_edits.changes_of(before, after)
        return {**changes, "embedded": dict([*mapping(changes, "embedded").items()][:2])}

    patch.setattr(registry, "changes_of", changes_of)


def a_failure_answered_after_proposing(patch: pytest.MonkeyPatch) -> None:
    rightly = ProposedCommit.run

    async def run(self: ProposedCommit) -> Applied:
        try:
            return await rightly(self)
        except StoreError as error:
            raise AttemptAborted from error

    patch.setattr(ProposedCommit, "run", run)


def a_head_without_the_attempt_taken_for_evidence(patch: pytest.MonkeyPatch) -> None:
    async def run(self: ProposedCommit) -> Applied | PreconditionFailed:
        await self._begin()
        match await self._look():
            case True:
                return Applied(self._head.version or proposed_commit.NO_VERSION, 0)
            case False:
                raise AttemptAborted
            case None:
                return FALL_BACK

    patch.setattr(ProposedCommit, "run", run)


# Commits of the catalog itself.


def intents_settled_without_being_read(patch: pytest.MonkeyPatch) -> None:
    def settling(index: Index, decided: Mapping[str, bool]) -> Steps[Edits]:
        return immediately(result(name_intents.settling(index, decided)))

    for module in (internal_commits, transaction_coordinator):
        patch.setattr(module, "settling", settling)


def a_commit_of_the_catalog_without_its_reads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(internal_commits, "recorded", lambda steps, lookups: steps)


def a_purge_given_up_while_its_beginning_waits(patch: pytest.MonkeyPatch) -> None:
    """Which another process then commits."""

    def give_up(index: Index, planned: Tombstone, fence: int, *, must_fence: bool = False) -> Steps[Edits | None]:
        return purge.give_up(index, planned, fence)

    patch.setattr(executor, "give_up", give_up)


BUGS: tuple[Mutation, ...] = (
    a_committed_attempt_decided_again,
    a_cancelled_attempt_taken_in,
    a_proposal_whose_base_is_forgotten,
    a_proposal_with_old_files,
    a_proposal_whose_reads_changed,
    a_changed_proposal_left_instead_of_cancelled,
    a_commit_on_a_head_that_was_not_judged,
    a_takeover_that_only_fences,
    a_cancellation_of_a_committed_attempt,
    a_cancellation_of_an_attempt_in_the_same_commit,
    an_attempt_taken_in_after_its_cancellation,
    a_cancellation_proposed_again_without_a_walk,
    a_proposal_without_a_look_at_the_next_slot,
    a_later_base_without_a_walk,
    a_shared_commit_without_the_edits_of_others,
    a_failure_answered_after_proposing,
    a_head_without_the_attempt_taken_for_evidence,
    intents_settled_without_being_read,
    a_commit_of_the_catalog_without_its_reads,
)
