"""Rules of the protocols left out, which only programs drawn from a seed, or short ones about one danger, find."""

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from arco_catalog.iceberg.errors import BadRequest, CommitFailed, KeyInProgress, Refusal, Unavailable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations import (
    drop,
    generic_tables,
    governance,
    listing,
    load,
    namespaces,
    notifications,
    register,
    rename,
    semantic_models,
    undrop,
)
from arco_catalog.operations.drop import Drop
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.planning import names, registry_change, relation_change
from arco_catalog.planning.answers import Answer, TableState
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.governance import Governance, merge
from arco_catalog.planning.kinds import Semantics
from arco_catalog.planning.metadata_file import NewMetadata
from arco_catalog.planning.name_intents import pending_transactions
from arco_catalog.planning.names import no_such
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol import cleaning, decisions, evidence, relation_committer, relation_read_set, reservations
from arco_catalog.protocol.attempts import Attempts
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.commit_execution import CommitExecution
from arco_catalog.protocol.commit_loop import CommitLoop
from arco_catalog.protocol.concurrency import Superseded
from arco_catalog.protocol.driver import Driver
from arco_catalog.protocol.idempotency import IdempotencyGuard
from arco_catalog.protocol.mutation import Freshness, ReadSet
from arco_catalog.protocol.planned_commit import PlannedCommit
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.protocol.relation_read_set import RelationLookup, RelationReadSet
from arco_catalog.state import locations
from arco_catalog.state.access import State
from arco_catalog.state.checkpoints import Checkpoints, Span, WalkCheckpoint
from arco_catalog.state.entries import TOMBSTONE_FIELDS, NamespaceEntry, RelationEntry, find_namespace, find_relation
from arco_catalog.state.index import Index, Namespace, namespace_key, relation_key
from arco_catalog.state.marker import Slot, WriteSet
from arco_catalog.state.metadata_claim import Claim
from arco_catalog.state.needs import Needs, Steps, immediately
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.transaction import Decision
from arco_catalog.upkeep import reconcile, walk
from arco_catalog.upkeep.reconcile import ListedPointer

AnyDriver = Driver[Any]
AnyLoop = CommitLoop[Any]


def a_new_write_set_under_the_same_attempt(patch: pytest.MonkeyPatch) -> None:
    rightly = Attempts.begin_another

    def begin_another(self: Attempts) -> None:
        attempt = self.current
        rightly(self)
        if attempt.id in self.tried:
            self.current = attempt

    patch.setattr(Attempts, "begin_another", begin_another)
    an_attempt_without_a_key_bound_to_nothing(patch)


def a_takeover_that_fences_before_it_has_its_slot(patch: pytest.MonkeyPatch) -> None:
    async def take_over(self: AnyDriver) -> Answer:
        earlier = self.attempts.known()
        self.loop.new_attempt()
        committed = await evidence.fence(self.session, earlier)
        read_set = await self.mutation.read(Freshness.FRESH, self.attempts.current.rank)
        await self.loop.claim(await self.mutation.write_set(read_set, self.attempts.current))
        if committed is not None:
            return await self.loop.answer_on_evidence(committed)
        return await self.loop.run(Freshness.FRESH)

    patch.setattr(Driver, "take_over", take_over)


def a_drop_content_with_any_older_mark(patch: pytest.MonkeyPatch) -> None:
    rightly = evidence.mark_dropped

    async def mark_dropped(session: Session, entity: str, operation: str) -> None:
        pointer = await session.state.pointer(entity)
        if pointer is not None and pointer.dropped_by is None:
            await rightly(session, entity, operation)

    patch.setattr(evidence, "mark_dropped", mark_dropped)


def what_is_beyond_recent_taken_for_not_committed(patch: pytest.MonkeyPatch) -> None:
    def has_committed(self: Pointer, attempt: str, since: int) -> bool:
        return attempt in self.recent

    patch.setattr(Pointer, "has_committed", has_committed)


def an_undrop_that_takes_no_location_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(undrop, "restored_holds", lambda *_, **__: immediately({}))


def tombstones_of_the_namespace_that_was_there_first(patch: pytest.MonkeyPatch) -> None:
    """By its name, as if that were always given to the same one."""
    first: dict[Namespace, NamespaceEntry | None] = {}

    def remembered(index: Index, namespace: Namespace) -> NamespaceEntry | None:
        return first.setdefault(namespace, find_namespace(index, namespace))

    patch.setattr(registry_change, "find_namespace", remembered)


def governance_replaced_whole(patch: pytest.MonkeyPatch) -> None:
    def whole(whose: str, before: Governance, change: JsonObject, *, columns: bool) -> dict[str, str]:
        return merge(whose, {}, change, columns=columns)

    patch.setattr(governance, "merge", whole)


def an_undrop_that_forgets_governance(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(undrop, "TOMBSTONE_FIELDS", (*TOMBSTONE_FIELDS, "governance"))


def _protection_unchecked(*_: object) -> None:
    """In place of the check of a table or view, or of a namespace."""


def a_drop_of_what_is_protected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(drop, "refuse_protected_relation", _protection_unchecked)


def a_rename_of_what_is_protected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rename, "refuse_protected_relation", _protection_unchecked)


def a_registration_over_what_is_protected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(register, "refuse_protected_relation", _protection_unchecked)


def a_drop_of_a_protected_namespace(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(namespaces, "refuse_protected_namespace", _protection_unchecked)


def a_drop_by_a_notification_of_what_is_protected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(notifications, "refuse_protected_relation", _protection_unchecked)


def protection_judged_by_the_first_plan(patch: pytest.MonkeyPatch) -> None:
    """A change that is planned again, since another commit was first, is judged as it was before."""
    seen: WeakKeyDictionary[object, None] = WeakKeyDictionary()
    rightly = Drop.change

    def change(self: Drop, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        again = self in seen
        seen[self] = None
        patched = pytest.MonkeyPatch()
        if again:
            a_drop_of_what_is_protected(patched)
        try:
            return (yield from rightly(self, read_set, attempt))
        finally:
            patched.undo()

    patch.setattr(Drop, "change", change)


def protection_of_a_namespace_not_in_its_entry(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NamespaceEntry, "with_protection", lambda entry, _: entry)


def labels_of_what_was_remembered(patch: pytest.MonkeyPatch) -> None:
    rightly = relation_read_set.relation_as_read

    async def relation_as_read(session: Session, lookup: RelationLookup, known: Any, cached: Any, *read: Any) -> Any:
        read_set = await rightly(session, lookup, known, cached, *read)
        if read_set.entry is not None and read_set.entry.entity == cached.entity:
            read_set.entry = cached
        return read_set

    patch.setattr(load, "relation_as_read", relation_as_read)


def leases_that_never_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Decision, "expired", property(lambda self: False))


def nameless_pointers_noted_as_walked(patch: pytest.MonkeyPatch) -> None:
    rightly = reconcile.due_for_walk

    def due_for_walk(
        checkpoints: Checkpoints, page: Sequence[ListedPointer]
    ) -> tuple[list[ListedPointer], ReconcileStats]:
        chosen = rightly(checkpoints, page)
        for pointer in page:
            if not pointer.named:
                checkpoints.record(pointer.entity, WalkCheckpoint(pointer.version, ""))
        return chosen

    patch.setattr(reconcile, "due_for_walk", due_for_walk)


def evidence_of_a_drop_that_leaves_no_mark(patch: pytest.MonkeyPatch) -> None:
    rightly = CommitLoop.answer_on_evidence

    async def answer_on_evidence(self: AnyLoop, attempt: str) -> Answer:
        async def leave_nothing(attempt: str, write_set: WriteSet) -> None:
            return None

        self.mark_dropped = leave_nothing  # type: ignore[method-assign]
        return await rightly(self, attempt)

    patch.setattr(CommitLoop, "answer_on_evidence", answer_on_evidence)


def the_next_slot_not_looked_at_after_a_fresher_read_set(patch: pytest.MonkeyPatch) -> None:
    rightly = CommitLoop.prepare

    async def prepare(
        self: AnyLoop, plan: PlannedCommit, execution: CommitExecution, read_set: ReadSet
    ) -> ReadSet | None:
        self.next_slot_unchecked = False
        fresher: ReadSet | None = await rightly(self, plan, execution, read_set)
        return fresher

    patch.setattr(CommitLoop, "prepare", prepare)


def one_sequence_for_all_tombstones(patch: pytest.MonkeyPatch) -> None:
    rightly = RelationEntry.tombstone

    def tombstone(self: RelationEntry, **said: Any) -> JsonObject:
        return rightly(self, **{**said, "sequence": 7})

    patch.setattr(RelationEntry, "tombstone", tombstone)


def the_age_of_a_key_judged_by_the_machine_before_its_marker(patch: pytest.MonkeyPatch) -> None:
    rightly = Driver.run

    async def run(self: AnyDriver) -> Answer:
        key = self.session.request.key
        if key is not None and key.made_ms is not None and key.made_ms - self.session.runtime.now_ms() > 300_000:
            raise BadRequest("Idempotency-Key lies in the future")
        return await rightly(self)

    patch.setattr(Driver, "run", run)


def an_expired_transaction_taken_for_aborted(patch: pytest.MonkeyPatch) -> None:
    rightly = decisions.wait_for_decision

    async def wait_for_decision(session: Session, transaction: str, rank: str | None = None) -> bool:
        decision = await decisions.read_decision(session.state, transaction)
        if decision is not None and decision.expired:
            return False
        return await rightly(session, transaction, rank)

    patch.setattr(decisions, "wait_for_decision", wait_for_decision)


def a_name_that_is_free_unless_a_table_has_it(patch: pytest.MonkeyPatch) -> None:
    """To generic tables and semantic models alone: to them the names of views and of each other are free."""

    def require_free_name(
        index: Index, namespace: Namespace, name: str, taken: Callable[[str], Refusal]
    ) -> Steps[None]:
        yield Needs(keys=[namespace_key(namespace), relation_key(namespace, name)])
        relation = find_relation(index, namespace, name)
        if relation is not None and relation.kind == "table":
            yield from names.require_free_name(index, namespace, name, taken)

    for described in (generic_tables, semantic_models):
        patch.setattr(described, "require_free_name", require_free_name)


# Faults that there were, planted again.


def an_attempt_without_a_key_bound_to_nothing(patch: pytest.MonkeyPatch) -> None:
    def try_current(self: Attempts, write_set: WriteSet) -> None:  # so evidence is searched in the first one alone
        self._tried.setdefault(self.current.id, write_set)
        self._in_doubt.add(self.current.id)

    patch.setattr(Attempts, "try_current", try_current)
    patch.setattr(Attempts, "declared", property(lambda self: self.claimed))


def a_pointer_read_before_the_name_that_leads_to_it(patch: pytest.MonkeyPatch) -> None:
    async def read_relation_again(
        session: Session, lookup: RelationLookup, head: RegistryState, seen: Pointer | None
    ) -> RelationReadSet:
        read = {} if seen is None else {seen.entity: seen}
        return await relation_read_set.read_relation_under(
            session, lookup, head, Freshness.FRESH, head_fresh=True, read={**read}
        )

    patch.setattr(relation_read_set, "_read_relation_again", read_relation_again)


def a_definite_no_for_what_is_undecided(patch: pytest.MonkeyPatch) -> None:
    rightly = decisions.wait_for_decision

    async def wait_for_decision(session: Session, transaction: str, rank: str | None = None) -> bool:
        try:
            return await rightly(session, transaction, rank)
        except Unavailable as undecided:
            raise CommitFailed("Another transaction over the same table is under way") from undecided

    patch.setattr(decisions, "wait_for_decision", wait_for_decision)


def intents_on_names_that_nobody_takes_away(patch: pytest.MonkeyPatch) -> None:
    async def leave(*_: object, **__: object) -> None:
        return None

    patch.setattr(reconcile, "settle_lapsed", leave)
    patch.setattr(decisions, "try_to_settle", leave)


def queued_work_over_what_no_name_leads_to(patch: pytest.MonkeyPatch) -> None:
    async def is_named(session: Session, entity: str) -> bool:
        return True

    patch.setattr(reconcile, "is_named", is_named)


def a_file_that_a_load_missed_believed_to_be_gone(patch: pytest.MonkeyPatch) -> None:
    async def read(session: Session, namespace: Namespace, name: str, kind: str) -> TableState:
        read_set = await relation_read_set.read_relation(
            session, RelationLookup(namespace, name, kind, writing=False), Freshness.FRESH
        )
        if read_set.entry is None or read_set.pointer is None:
            raise no_such(kind, namespace, name)
        location = read_set.pointer.metadata.location
        return TableState(read_set.entry.entity, location, await session.files.read(location), created=False)

    patch.setattr(load, "load", read)


def cleaning_that_asks_nobody_who_needs_a_file(patch: pytest.MonkeyPatch) -> None:
    async def claim(*_: object, **__: object) -> Claim:
        return Claim.REMOVED

    patch.setattr(cleaning, "held_by_another", lambda *_: immediately(False))
    patch.setattr(cleaning, "claim", claim)


def one_file_name_for_all_tables_of_a_request(patch: pytest.MonkeyPatch) -> None:
    rightly = NewMetadata.of

    def of(
        semantics: Semantics, document: JsonObject, base: MetadataFile | None, *told: Any, **more: Any
    ) -> NewMetadata:
        new = rightly(semantics, document, base, *told, **more)
        folder, _, name = new.file.location.rpartition("/")
        version, _, kind = name[:5], name[6:42], name[42:]
        name = f"{version}-{uuid.uuid5(uuid.NAMESPACE_OID, 'one for all')}{kind}"
        return replace(new, file=replace(new.file, location=f"{folder}/{name}"))

    patch.setattr(NewMetadata, "of", of)


def a_listing_that_takes_what_it_learns_in_one_round(patch: pytest.MonkeyPatch) -> None:
    async def one_instant(
        session: Session, counts: Callable[[str, JsonObject], bool]
    ) -> tuple[RegistryState, Sequence[str], frozenset[str]]:
        head = await session.state.head()
        waiting = pending_transactions(head.index, counts)
        decided = [each for each in waiting if await decisions.transaction_committed(session.state, each)]
        return head, waiting, frozenset(decided)

    patch.setattr(listing, "one_instant", one_instant)


def ones_own_claim_taken_for_anothers(patch: pytest.MonkeyPatch) -> None:
    async def put(self: IdempotencyGuard, attempt: str, write_set: WriteSet, answer: JsonObject | None = None) -> None:
        if self.marker is None:
            return
        if not await self.marker.put(Slot(attempt, write_set, self._binding(self.marker), answer)):
            raise Superseded
        if len(self.marker.slots) == 1:
            await self._check_age(attempt, write_set, answer)

    patch.setattr(IdempotencyGuard, "put", put)


def a_definite_no_that_no_final_slot_holds(patch: pytest.MonkeyPatch) -> None:
    rightly = IdempotencyGuard.give_up

    async def give_up(self: IdempotencyGuard, attempt: str, write_set: WriteSet, answer: JsonObject) -> None:
        with suppress(KeyInProgress):
            await rightly(self, attempt, write_set, answer)

    patch.setattr(IdempotencyGuard, "give_up", give_up)


def a_walk_that_is_cut_taken_for_complete(patch: pytest.MonkeyPatch) -> None:
    rightly = walk._Turn._walk

    async def go_over(self: walk._Turn, span: Span) -> Sequence[Span]:
        left = await rightly(self, span)
        return [] if self.cut else left

    patch.setattr(walk._Turn, "_walk", go_over)


def a_walk_that_is_cut_not_remembered(patch: pytest.MonkeyPatch) -> None:
    rightly = walk.walk

    async def forgetful(session: Session, entity: str, known: WalkCheckpoint | None, **said: Any) -> walk.WalkResult:
        done = await rightly(session, entity, known, **said)
        return replace(done, checkpoint=None) if done.more else done

    patch.setattr(reconcile, "walk", forgetful)


def history_walked_through_at_every_look(patch: pytest.MonkeyPatch) -> None:
    rightly = State.commit_of

    async def commit_of(self: State, head: RegistryState, operation: str, since: int) -> str | None:
        self._not_done_until.clear()
        return await rightly(self, head, operation, since)

    patch.setattr(State, "commit_of", commit_of)


def a_pointer_called_missing_by_a_cached_head(patch: pytest.MonkeyPatch) -> None:
    rightly = relation_read_set.read_relation_under

    async def read_relation_under(*arguments: Any, head_fresh: bool, **read: Any) -> RelationReadSet:
        read_set = await rightly(*arguments, head_fresh=True, **read)
        return replace(read_set, head_fresh=head_fresh)

    patch.setattr(relation_read_set, "read_relation_under", read_relation_under)


def locations_that_a_commit_does_not_reserve(patch: pytest.MonkeyPatch) -> None:
    for module in (relation_change, relation_committer):
        patch.setattr(module, "missing_locations", lambda *_: None)


def a_reservation_of_what_another_table_holds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reservations, "refuse_overlap", lambda *_, **__: immediately(None))


def an_empty_level_taken_for_none(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(locations, "_is_collapsed", lambda scheme, path: False)
