"""The protocols with one rule left out, each of which must make the simulation fail: a search that finds nothing proves
something only if it finds what is there."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from arco_catalog.iceberg.errors import Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.commit import CommitRelation
from arco_catalog.operations.rename import _Rename
from arco_catalog.operations.transaction import Transaction, TransactionReadSet
from arco_catalog.planning.answers import Answer
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol import decisions, evidence, group_commit, relation_read_set, transaction_coordinator
from arco_catalog.protocol.attempts import Attempts
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.commit_loop import CommitLoop
from arco_catalog.protocol.driver import Driver
from arco_catalog.protocol.group_commit import GroupCommitter, PendingCommit, Replan
from arco_catalog.protocol.idempotency import IdempotencyGuard
from arco_catalog.protocol.mutation import Freshness, ReadSet
from arco_catalog.protocol.planned_commit import Write
from arco_catalog.protocol.prepared_commit import PreparedCommit
from arco_catalog.protocol.registry_execution import RegistryExecution
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.protocol.relation_read_set import RelationReadSet
from arco_catalog.protocol.transaction_coordinator import TransactionCoordinator
from arco_catalog.state import spilling
from arco_catalog.state.access import State
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.segments import Ref, Segment
from storage_backends import ANY, Applied, PreconditionFailed, Version

AnyDriver = Driver[Any]
AnyLoop = CommitLoop[Any]
Mutation = Callable[[pytest.MonkeyPatch], None]


def no_fence_at_a_takeover(patch: pytest.MonkeyPatch) -> None:
    async def fence(session: Session, earlier: Mapping[str, WriteSet]) -> str | None:
        for attempt, write_set in earlier.items():
            if await evidence.has_committed(session.state, attempt, write_set):
                return attempt
        return None

    patch.setattr(evidence, "fence", fence)


def the_next_slot_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    async def check_not_superseded(self: IdempotencyGuard) -> None:
        return None

    patch.setattr(IdempotencyGuard, "check_not_superseded", check_not_superseded)


def only_ones_own_id_looked_for(patch: pytest.MonkeyPatch) -> None:
    everybodys = Attempts.known

    def known(self: Attempts) -> dict[str, WriteSet]:
        return {attempt: write_set for attempt, write_set in everybodys(self).items() if attempt == self.current.id}

    async def has_committed(state: State, attempt: str, write_set: WriteSet) -> bool:
        return False

    patch.setattr(Attempts, "known", known)
    patch.setattr(evidence, "has_committed", has_committed)


def a_failure_answered_without_a_final_slot(patch: pytest.MonkeyPatch) -> None:
    async def finalize(self: AnyLoop, answer: Answer | Refusal) -> None:
        return None

    patch.setattr(CommitLoop, "finalize", finalize)


def a_verdict_from_a_cached_base(patch: pytest.MonkeyPatch) -> None:
    def is_fresh(self: AnyLoop, read_set: ReadSet) -> bool:
        return True

    patch.setattr(CommitLoop, "is_fresh", is_fresh)


def a_base_read_after_the_look_at_the_next_slot(patch: pytest.MonkeyPatch) -> None:
    rightly = CommitLoop.read

    async def read(self: AnyLoop, freshness: Freshness) -> ReadSet:
        if self.attempts.claimed is None:
            return await rightly(self, freshness)
        await self.guard.check_not_superseded()
        read_set: ReadSet = await self.mutation.read(freshness, self.attempts.current.rank)
        if self.mutation.needs_base(read_set):
            await self.mutation.load_base(read_set)
        return read_set

    patch.setattr(CommitLoop, "read", read)


def a_name_validated_before_the_pointer_was_read(patch: pytest.MonkeyPatch) -> None:
    async def validate_name(self: CommitRelation, read_set: RelationReadSet) -> RelationReadSet | None:
        return None  # `read_relation` resolved the name, and read the pointer after it

    patch.setattr(CommitRelation, "validate_name", validate_name)


def evidence_from_the_newest_move_only(patch: pytest.MonkeyPatch) -> None:
    def has_committed(self: Pointer, attempt: str, since: int) -> bool:
        return self.recent[:1] == (attempt,)

    patch.setattr(Pointer, "has_committed", has_committed)


def a_slot_that_names_no_entity(patch: pytest.MonkeyPatch) -> None:
    rightly = IdempotencyGuard.put

    async def put(self: IdempotencyGuard, attempt: str, write_set: WriteSet, answer: JsonObject | None = None) -> None:
        await rightly(self, attempt, WriteSet() if answer is None else write_set, answer)

    patch.setattr(IdempotencyGuard, "put", put)


def the_pointer_deleted_at_drop(patch: pytest.MonkeyPatch) -> None:
    async def delete(session: Session, entity: str, operation: str) -> None:
        await session.state.store.delete(session.state.paths.pointer(entity))

    patch.setattr(evidence, "mark_dropped", delete)


def a_drop_answered_before_its_mark(patch: pytest.MonkeyPatch) -> None:
    async def mark_dropped(self: AnyLoop, attempt: str, write_set: WriteSet) -> None:
        return None

    patch.setattr(CommitLoop, "mark_dropped", mark_dropped)


BUGS: tuple[Mutation, ...] = (
    no_fence_at_a_takeover,
    the_next_slot_not_looked_at,
    only_ones_own_id_looked_for,
    a_failure_answered_without_a_final_slot,
    a_verdict_from_a_cached_base,
    a_base_read_after_the_look_at_the_next_slot,
    a_name_validated_before_the_pointer_was_read,
    a_slot_that_names_no_entity,
    the_pointer_deleted_at_drop,
    a_drop_answered_before_its_mark,
)


# Transactions (docs/design/transaction.md).


def a_decision_before_every_intent_is_there(patch: pytest.MonkeyPatch) -> None:
    async def place_intents(self: TransactionCoordinator) -> None:
        await self.place_on_pointer(*self.plan.moves[0])

    patch.setattr(TransactionCoordinator, "place_intents", place_intents)


def a_refused_decision_taken_for_a_commit(patch: pytest.MonkeyPatch) -> None:
    async def decided(state: State, runtime: Runtime, transaction: str) -> bool:
        return True

    patch.setattr(transaction_coordinator, "abort_if_undecided", decided)


def a_plan_placed_again_at_another_version(patch: pytest.MonkeyPatch) -> None:
    rightly = TransactionCoordinator.place_on_pointer

    async def place_on_pointer(self: TransactionCoordinator, pointer: Pointer, successor: Pointer) -> bool:
        if await rightly(self, pointer, successor):
            return True
        now = await self.state.pointer(pointer.entity)
        return now is not None and now.intent is None and await rightly(self, now, successor)

    patch.setattr(TransactionCoordinator, "place_on_pointer", place_on_pointer)


def an_abort_acted_on_before_it_is_definite(patch: pytest.MonkeyPatch) -> None:
    async def wait_for_decision(session: Session, transaction: str, rank: str | None = None) -> bool:
        return await decisions.transaction_committed(session.state, transaction)

    patch.setattr(decisions, "wait_for_decision", wait_for_decision)


def an_intent_settled_whatever_is_there_now(patch: pytest.MonkeyPatch) -> None:
    async def settle_intents(self: TransactionCoordinator) -> None:
        for placed in self.placed:
            settled = placed.settled(self.session.runtime.ulid(), committed=True)
            await self.state.store.put(self.state.paths.pointer(placed.entity), settled.body, ANY)

    patch.setattr(TransactionCoordinator, "settle_intents", settle_intents)


def an_intent_revalidated_by_version(patch: pytest.MonkeyPatch) -> None:
    rightly, seen = decisions.resolve_for_read, dict[object, Pointer]()

    async def resolve_for_read(state: State, pointer: Pointer) -> Pointer:
        if pointer.version not in seen:
            seen[pointer.version] = await rightly(state, pointer)
        return seen[pointer.version]

    patch.setattr(relation_read_set, "resolve_for_read", resolve_for_read)


def a_takeover_that_aborts_nothing(patch: pytest.MonkeyPatch) -> None:
    async def abort_if_undecided(state: State, runtime: Runtime, transaction: str) -> bool:
        return await decisions.transaction_committed(state, transaction)

    patch.setattr(evidence, "abort_if_undecided", abort_if_undecided)


def a_takeover_that_aborts_only_what_has_begun(patch: pytest.MonkeyPatch) -> None:
    rightly = decisions.abort_if_undecided

    async def abort_if_undecided(state: State, runtime: Runtime, transaction: str) -> bool:
        if await decisions.read_decision(state, transaction) is None:
            return False
        return await rightly(state, runtime, transaction)

    patch.setattr(evidence, "abort_if_undecided", abort_if_undecided)


def names_of_a_transaction_not_validated(patch: pytest.MonkeyPatch) -> None:
    async def validate(self: Transaction, read_set: TransactionReadSet, rank: str) -> TransactionReadSet | None:
        return None

    patch.setattr(Transaction, "validate", validate)


def a_commit_over_an_undecided_intent(patch: pytest.MonkeyPatch) -> None:
    async def resolve_for_write(
        session: Session, entity: str, pointer: Pointer | None, rank: str | None = None
    ) -> Pointer | None:
        return None if pointer is None else pointer.resolved(committed=False)

    patch.setattr(relation_read_set, "resolve_for_write", resolve_for_write)


def a_registry_commit_on_an_undecided_name(patch: pytest.MonkeyPatch) -> None:
    def require_committed(self: RelationEntry) -> RelationEntry:
        return self

    patch.setattr(RelationEntry, "require_committed", require_committed)


def a_rename_from_or_to_an_undecided_name(patch: pytest.MonkeyPatch) -> None:
    rightly = _Rename.change

    def change(self: _Rename, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        steps = rightly(self, read_set, attempt)
        while True:
            with pytest.MonkeyPatch.context() as meanwhile:
                a_registry_commit_on_an_undecided_name(meanwhile)
                try:
                    needs = next(steps)
                except StopIteration as end:
                    changed: Change = end.value
                    return changed
            yield needs

    patch.setattr(_Rename, "change", change)


TRANSACTION_BUGS: tuple[Mutation, ...] = (
    a_decision_before_every_intent_is_there,
    a_refused_decision_taken_for_a_commit,
    a_plan_placed_again_at_another_version,
    an_abort_acted_on_before_it_is_definite,
    an_intent_settled_whatever_is_there_now,
    an_intent_revalidated_by_version,
    a_takeover_that_aborts_nothing,
    a_takeover_that_aborts_only_what_has_begun,
    names_of_a_transaction_not_validated,
    a_commit_over_an_undecided_intent,
    a_rename_from_or_to_an_undecided_name,
)


# The spilled index (docs/decisions/0010-spilled-index.md).


def a_removal_that_leaves_no_mark(patch: pytest.MonkeyPatch) -> None:
    rightly = Index.edited

    def edited(self: Index, edits: Edits) -> Index:
        after = rightly(self, edits)
        kept = {key: entry for key, entry in after.edits.items() if entry is not None}
        return Index(kept, after.directory, after.segment_lookup)

    patch.setattr(Index, "edited", edited)


def a_segment_written_after_the_commit_that_names_it(patch: pytest.MonkeyPatch) -> None:
    rightly = State.move_head

    async def move_head(
        self: State, successor: RegistryState, expected: Version | None
    ) -> Applied | PreconditionFailed:
        outcome = await rightly(self, successor, expected)
        for segment in successor.spilled:
            await self.write_segment(segment)
        return outcome

    patch.setattr(State, "move_head", move_head)
    patch.setattr(PreparedCommit, "segments", ())


def a_segment_that_was_not_read_taken_for_an_empty_one(patch: pytest.MonkeyPatch) -> None:
    def loaded(self: Index, ref: Ref | None) -> Segment | None:
        return None if ref is None else self.segment_lookup(ref.id)

    def missing(self: Index, needs: Needs) -> Sequence[str]:
        return ()

    patch.setattr(Index, "loaded", loaded)
    patch.setattr(Index, "missing", missing)


def a_segment_that_wins_over_later_edits(patch: pytest.MonkeyPatch) -> None:
    rightly = Index.get

    def get(self: Index, key: str) -> JsonObject | None:
        segment = self.loaded(self.directory.covering(key))
        older = None if segment is None else segment.get(key)
        return rightly(self, key) if older is None else older

    patch.setattr(Index, "get", get)


def an_intent_on_a_name_that_is_spilled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spilling, "is_pending", lambda entry: False)


SPILL_BUGS: tuple[Mutation, ...] = (
    a_removal_that_leaves_no_mark,
    a_segment_written_after_the_commit_that_names_it,
    a_segment_that_was_not_read_taken_for_an_empty_one,
    a_segment_that_wins_over_later_edits,
    an_intent_on_a_name_that_is_spilled,
)


# Registry commits that requests share (docs/decisions/0013-group-commit.md).


def one_who_was_left_out_told_that_it_is_in(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group_commit, "FALL_BACK", Applied(Version(""), 0))


def a_refused_group_taken_for_applied(patch: pytest.MonkeyPatch) -> None:
    rightly = GroupCommitter._send

    async def send(self: GroupCommitter, commit: PreparedCommit, state: State) -> Applied | PreconditionFailed:
        outcome = await rightly(self, commit, state)
        return Applied(Version(""), outcome.now_ms)

    patch.setattr(GroupCommitter, "_send", send)


def a_group_that_goes_before_what_its_members_write_first(patch: pytest.MonkeyPatch) -> None:
    first_writes, after_writes = RegistryExecution.first_writes, RegistryExecution.after_writes

    def only_the_commit(self: RegistryExecution) -> list[Write]:
        return first_writes(self)[:1]

    def all_others(self: RegistryExecution) -> list[Write]:
        return [*first_writes(self)[1:], *after_writes(self)]

    patch.setattr(RegistryExecution, "first_writes", only_the_commit)
    patch.setattr(RegistryExecution, "after_writes", all_others)


def parts_planned_beside_each_other(patch: pytest.MonkeyPatch) -> None:
    rightly = RegistryExecution.replan

    def replan(self: RegistryExecution, head: RegistryState) -> Replan | None:
        return rightly(self, self.state.cached_head() or head)

    patch.setattr(RegistryExecution, "replan", replan)


def a_member_whose_next_slot_was_not_seen(patch: pytest.MonkeyPatch) -> None:
    async def see(member: PendingCommit, head: RegistryState) -> None:
        return None

    patch.setattr(GroupCommitter, "_revalidate", staticmethod(see))


def a_member_in_the_hands_of_two(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group_commit, "_in_batch", lambda members: nullcontext())


SHARING_BUGS: tuple[Mutation, ...] = (
    one_who_was_left_out_told_that_it_is_in,
    a_refused_group_taken_for_applied,
    a_group_that_goes_before_what_its_members_write_first,
    parts_planned_beside_each_other,
    a_member_whose_next_slot_was_not_seen,
    a_member_in_the_hands_of_two,
)

BY_PROGRAMS: tuple[Mutation, ...] = (evidence_from_the_newest_move_only, a_registry_commit_on_an_undecided_name)
"""Those that programs of requests find, and the scenarios do not."""
