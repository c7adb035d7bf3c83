"""The commit loop of every mutation: read, look for evidence, plan, prepare, swap; again until something is decided
(docs/design/commit.md)."""

from collections.abc import Awaitable, Coroutine
from typing import Generic, TypeVar

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError, Refusal
from arco_catalog.planning.answers import Answer, encode_answer
from arco_catalog.protocol import evidence
from arco_catalog.protocol.attempts import Attempts
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.commit_execution import CommitExecution, PointerExecution
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.idempotency import IdempotencyGuard
from arco_catalog.protocol.key_resolution import check_key_settings, require_record
from arco_catalog.protocol.mutation import AttemptAborted, Freshness, Mutation, NoOp, Prerequisite, ReadSet
from arco_catalog.protocol.planned_commit import (
    PlannedCommit,
    PointerCommit,
    RegistryCommit,
    TransactionCommit,
    Write,
)
from arco_catalog.protocol.registry_execution import RegistryExecution
from arco_catalog.protocol.transaction_coordinator import TransactionCoordinator
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.registry import RegistryState
from storage_backends import Applied, StoreError
from storage_backends.backoff import growing_pause_s

V = TypeVar("V", bound=ReadSet)

OUTCOME_MS = 1_000
"""How much time a compare-and-swap must have until the deadline: for its answer, and to read whether a refusal is the
echo of our own write."""
MAX_PAUSE_IN_DOUBT_S = 0.25
"""How long a pause may be while a refusal may be the echo of our own write."""


class CommitLoop(Generic[V]):
    """Makes the commit of one request, or refuses it, after as many tries as it takes until the request's deadline. It
    is used for one request only."""

    def __init__(self, session: Session, mutation: Mutation[V], guard: IdempotencyGuard, attempts: Attempts) -> None:
        self.session = session
        self.mutation = mutation
        self.guard = guard
        self.attempts = attempts
        self.access = session.access
        self.rights_changed = False
        """Whether the caller's rights in the realm differ from those of the plan."""
        self.next_slot_unchecked = False
        """Whether the version that the plan relies on was read after our claim, and the next slot not read since
        (docs/design/commit.md#rule-1)."""
        self.rounds = 0
        self.postponed_s = 0.0
        """A pause that waits for the search for evidence."""

    async def run(self, freshness: Freshness) -> Answer:
        """Makes the mutation's commit, with a fresh read and plan after each lost compare-and-swap, until the request's
        deadline. Returns the answer: of the commit, of an attempt that is seen to have committed before, or of a
        mutation that changes nothing; which of them is in the request's statistics. With a key, a refusal and the
        answer of a mutation that changes nothing are first put into the final slot. `freshness` is that of the first
        read. Raises `Refusal`, `Superseded` when another sending answers instead, `CatalogChanged`, any other
        `Unavailable`, `SegmentGone` if the cached HEAD is too old, `CommitStateUnknown`, and `StoreError`, also after
        the deadline."""
        read_set: V | None = None
        while True:
            self.session.check_deadline()
            if read_set is None:
                read_set = await self.read(freshness)
            committed = await self.find_evidence(read_set)
            if committed is not None:
                return await self.answer_on_evidence(committed)
            self.attempts.confirm_absent()
            check_key_settings(self.session, read_set.head)
            if self.postponed_s:
                await self.pause(self.postponed_s)
                read_set = None
                continue
            try:
                await self.judge(read_set.head)
                if self.rounds and (fresher := await self.take_turn(read_set)) is not None:
                    read_set = fresher
                    continue
                self.attempts.time_current()
                plan = await self.mutation.plan(read_set, self.attempts.current)
                # A step that comes first writes: what this process remembers does not say that the caller may.
                if isinstance(plan, Prerequisite) and (not self.access.is_restricted or self.is_fresh(read_set)):
                    await plan.run()
            except Refusal as refusal:
                if not self.is_fresh(read_set):
                    read_set, freshness = None, Freshness.FRESH
                    continue
                await require_record(self.session, read_set.head)
                await self.finalize(refusal)
                raise
            match plan:
                case Prerequisite():
                    read_set, freshness = None, Freshness.FRESH
                case NoOp(answer):
                    if self.is_fresh(read_set):
                        await require_record(self.session, read_set.head)
                        await self.finalize(answer)
                        self.session.stats.outcome = "unchanged"
                        return answer
                    read_set, freshness = None, Freshness.FRESH
                case PointerCommit() | RegistryCommit() | TransactionCommit():
                    is_committed, read_set = await self.execute(plan, read_set)
                    if is_committed:
                        return plan.answer
                    freshness = Freshness.MOVED

    def new_attempt(self) -> None:
        """Makes a fresh attempt at the request the current one, in place of one that can never commit. No slot of the
        marker is claimed for it yet."""
        self.attempts.begin_another()
        self.next_slot_unchecked = False

    def is_fresh(self, read_set: V) -> bool:
        """Whether a refusal or "unchanged" may be answered on this read set, because neither it nor the caller's rights
        come from a cache. Cached state may be old, which only a compare-and-swap notices
        (docs/design/commit.md#steps)."""
        return read_set.is_fresh and self.access.is_fresh

    # Rights.

    async def judge(self, head: RegistryState) -> None:
        """Returns if the caller may make the request, by this HEAD and the caller's rights in the realm, as last read.
        It is called after the request's marker was read, never before (docs/design/access.md#rule-1). Raises
        `Refusal`."""
        await self.access.judge(self.session.state, head)

    async def read_rights_again(self) -> None:
        """Reads the caller's rights in the realm from the store, unless they were read from it for this request, and
        records whether they differ from the ones on which the request was judged."""
        self.rights_changed = await self.access.has_changed()

    async def is_still_allowed(self, planned: RegistryState) -> bool:
        """Whether the caller may still make the change, by the rights in the realm as last read and by the newest HEAD
        that this process has seen. True without a check if access is not restricted, or if neither differs from what
        the plan was allowed on (`planned` is the HEAD of the plan)."""
        if not self.access.is_restricted:
            return True
        head = self.session.state.cached_head() or planned
        if not self.rights_changed and head.version == planned.version:
            return True
        try:
            await self.judge(head)
        except Refusal:
            return False
        return True

    # Reading.

    async def read(self, freshness: Freshness) -> V:
        """Reads what the plan relies on: the mutation's read set, with the base if planning needs one, and the caller's
        rights.

        Under a key, an attempt without a slot claims one only if there is a base to read: after the version was read,
        and concurrently with the read of the base. Otherwise `prepare` claims it. An attempt that has a slot checks the
        next one after the version was read, never before (docs/design/commit.md#rule-1). Raises `Superseded` if another
        sending has put the next slot.
        """
        if not self.access.is_restricted:
            read_set = await self.mutation.read(freshness, self.attempts.current.rank)
        else:
            reading = self.mutation.read(freshness, self.attempts.current.rank)
            read_set, _ = await gather(reading, self.access.read(freshness))
        steps: list[Coroutine[object, object, None]] = []
        if self.attempts.claimed is not None:
            steps.append(self.guard.check_not_superseded())
        elif self.guard.marker is not None and self.mutation.needs_base(read_set):
            steps.append(self.claim(await self.mutation.write_set(read_set, self.attempts.current)))
        if self.mutation.needs_base(read_set):
            steps.append(self.mutation.load_base(read_set))
        await gather(*steps)
        self.next_slot_unchecked = False
        return read_set

    async def claim(self, write_set: WriteSet) -> None:
        """Puts the marker's next slot for the current attempt, with this write set, and remembers the write set as
        claimed. Raises as `IdempotencyGuard.put` does."""
        await self.guard.put(self.attempts.current.id, write_set)
        self.attempts.claimed = write_set

    async def find_evidence(self, read_set: ReadSet) -> str | None:
        """Returns the id of the attempt at this request, of this or another sending under the key, that is seen to have
        committed; None if there is none (docs/design/commit.md#evidence). Objects that the read set does not cover,
        such as an entity that the name meant before, are read. Raises `CommitStateUnknown` if evidence was removed."""
        for attempt, write_set in self.attempts.known().items():
            if attempt == self.attempts.current.id and attempt not in self.attempts.tried:
                continue  # nothing of it was sent yet
            if read_set.covers(write_set):
                found = await read_set.has_committed(attempt, write_set)
            else:
                found = await evidence.has_committed(self.session.state, attempt, write_set)
            if found:
                return attempt
        return None

    # Carrying out a plan.

    async def execute(self, plan: PlannedCommit, read_set: V) -> tuple[bool, V | None]:
        """Carries out a plan, if it is still valid and the swap applies, and then makes what follows the commit, and
        records it in the request's statistics. Returns whether it was committed, and if not the read set to plan on
        again, None to read everything again. An attempt that can never commit is replaced by another one. If the
        compare-and-swap was lost, or the attempt proved unable to commit while it was carried out, it calls `back_off`,
        which waits or postpones the wait, and returns None; it does not call it if it returns a read set."""
        declared = self.attempts.declared
        if declared is not None and not declared.covers(plan.write_set):
            # Evidence is searched in the declared write set: a commit elsewhere would be taken for another attempt's.
            self.new_attempt()
            return False, read_set
        execution = execution_of(self.session, plan)
        try:
            fresher = await self.prepare(plan, execution, read_set)
            if fresher is not None:
                if plan.write_set.transaction is not None:
                    self.new_attempt()  # its object names the plan that is no longer valid
                return False, fresher
            if self.attempts.is_mistimed or not await self.is_still_allowed(read_set.head):
                raise AttemptAborted
            check_key_settings(self.session, self.session.state.cached_head() or read_set.head)
            await execution.make_ready()
            # Between every read and the compare-and-swap that relies on it (docs/design/commit.md#rule-5).
            self.session.check_deadline(OUTCOME_MS)
            if await self.swap(plan, execution):
                self.session.stats.outcome = "moved"
                await self.follow_up(plan, execution)
                return True, None
        except AttemptAborted:
            self.attempts.abandon_current()
            self.new_attempt()
        await self.back_off()
        return False, None

    async def prepare(self, plan: PlannedCommit, execution: CommitExecution, read_set: V) -> V | None:
        """Does concurrently all that must be durable or known before the swap: validates the read set, checks the next
        slot or claims one if that is still to be done, reads the caller's rights, and makes the first writes that no
        round has made. Returns None if the plan is still valid, else the fresher read set to plan on."""
        steps: list[Coroutine[object, object, V | None]] = [self.validate(read_set)]
        if self.next_slot_unchecked:
            steps.append(self.guard.check_not_superseded())
        if self.guard.marker is not None and self.attempts.claimed is None:
            steps.append(self.claim(plan.write_set))
        if self.access.is_restricted:
            steps.append(self.read_rights_again())
        self.attempts.announce(plan.write_set)
        written = self.attempts.written
        steps.extend(self.write(write) for write in execution.first_writes() if write.key not in written)
        fresher, *_ = await gather(*steps)
        return fresher

    async def validate(self, read_set: V) -> V | None:
        """Returns None if a plan on this read set is still valid, by what is read now, else a fresher read set to plan
        on. If that was read after our claim of a slot, the marker's next slot counts as unchecked."""
        fresher = await self.mutation.validate(read_set, self.attempts.current.rank)
        self.next_slot_unchecked = fresher is not None and self.attempts.claimed is not None
        return fresher

    async def write(self, write: Write) -> None:
        """Makes one of a plan's first writes, and remembers the key of the object, so that a later round of the attempt
        does not repeat it."""
        await write.put()
        self.attempts.written.add(write.key)

    async def swap(self, plan: PlannedCommit, execution: CommitExecution) -> bool:
        """Sends the compare-and-swap of the current attempt, the commit point, and returns whether it applied. False
        does not show that the attempt has not committed: our own write may have applied before, and this one been
        refused as a repetition. Raises as `CommitExecution.swap` does."""
        self.attempts.try_current(plan.write_set)
        return isinstance(await execution.swap(self.revalidate), Applied)

    async def revalidate(self, read_set: ReadSet) -> bool:
        """Whether no attempt of the request is seen to have committed at a version that was read after the plan was
        made (docs/design/commit.md#rule-1). Raises `Superseded` if the next slot is not empty, `CatalogChanged` if the
        catalog now reads idempotency keys in another way, and `CommitStateUnknown` if evidence was removed."""
        check_key_settings(self.session, read_set.head)
        await self.guard.check_not_superseded()
        return await self.find_evidence(read_set) is None

    async def back_off(self) -> None:
        """Counts a conflict, and waits a random time that grows with the number of conflicts, after a lost
        compare-and-swap or an aborted attempt. While one of our own attempts is in doubt, a pause so long that the
        deadline may pass, or the evidence be forgotten, is postponed until a read has shown whether our own write had
        applied; without such an attempt no pause is postponed."""
        self.session.stats.conflicts += 1
        pause = growing_pause_s(self.session.runtime.random(), self.rounds)
        self.rounds += 1
        if self.attempts.any_in_doubt and pause > min(MAX_PAUSE_IN_DOUBT_S, self.session.seconds_left() / 2):
            self.postponed_s = pause
        else:
            await self.pause(pause)

    async def take_turn(self, read_set: V) -> V | None:
        """After lost compare-and-swaps: lets the mutation take a turn at the pointer, or wait for that of another
        writer (`Mutation.take_turn`). Returns a fresher read set to plan on, None to plan on the present one. If it was
        read after our claim of a slot, the marker's next slot counts as unchecked."""
        fresher = await self.mutation.take_turn(read_set, self.rounds, self.attempts.current.rank)
        self.next_slot_unchecked |= fresher is not None and self.attempts.claimed is not None
        return fresher

    async def pause(self, seconds: float) -> None:
        """Waits so many seconds before the next try of the commit, and forgets a pause that was postponed before."""
        self.postponed_s = 0.0
        await self.session.runtime.sleep(seconds)

    # Answers.

    async def finalize(self, answer: Answer | Refusal) -> None:
        """Puts the answer or error into the final slot of the request's key, which must be done before the client may
        have it; does nothing without a key. Raises as `IdempotencyGuard.put` does."""
        await self.guard.put(self.attempts.current.id, self.attempts.claimed or WriteSet(), encode_answer(answer))

    async def follow_up(self, plan: PlannedCommit, execution: CommitExecution) -> None:
        """Makes what follows the commit point: first marks the pointers of dropped entities, before the answer; then,
        by `Session.run_in_background`, the plan's later writes and, with a key, the final slot. These writes may be
        lost."""
        attempt = self.attempts.current.id
        await self.mark_dropped(attempt, plan.write_set)
        steps = [self.best_effort(write.key, write.put()) for write in execution.after_writes()]
        if self.guard.marker is not None:
            kept = self.guard.keep_answer(attempt, plan.write_set, encode_answer(plan.answer))
            steps.append(self.best_effort("the final slot", kept))
        await self.session.run_in_background(gather(*steps))

    async def mark_dropped(self, attempt: str, write_set: WriteSet) -> None:
        """Marks the pointers of all entities that an attempt with this write set dropped. A drop is answered only after
        that (docs/design/registry.md#operations)."""
        for entity in write_set.marks:
            await evidence.mark_dropped(self.session, entity, attempt)

    async def best_effort(self, what: str, step: Awaitable[object]) -> None:
        """Runs a step after the commit. A `StoreError`, `CommitStateUnknown` or `InternalError` of it is only counted
        and logged: the commit stands, and the reconciler or a duplicate of the request makes up for the step."""
        try:
            await step
        except (StoreError, CommitStateUnknown, InternalError) as error:
            self.session.note_failed_write(what, error)

    async def answer_on_evidence(self, attempt: str) -> Answer:
        """Returns the answer to an attempt that is known to have committed, of this or another sending of the request,
        after it has marked the pointers of what the attempt dropped, and puts the answer into the final slot at best
        effort. Records in the request's statistics that evidence gave the answer. Raises `CommitStateUnknown` if there
        is no such answer any more."""
        self.session.stats.outcome = "evidence"
        write_set = self.attempts.known()[attempt]
        await self.mark_dropped(attempt, write_set)
        try:
            answer = await self.mutation.answer_on_evidence(attempt, write_set)
        except Refusal as refusal:
            raise CommitStateUnknown(
                f"The change was made, so do not repeat it, but its answer cannot be given: {refusal.message}",
                "result-lost",
            ) from refusal
        kept = self.guard.keep_answer(attempt, write_set, encode_answer(answer))
        await self.best_effort("the final slot", kept)
        return answer


def execution_of(session: Session, plan: PlannedCommit) -> CommitExecution:
    """Returns a new execution of a plan: of a commit to one table or view, to the registry, or of a transaction."""
    match plan:
        case PointerCommit():
            return PointerExecution(session, plan)
        case RegistryCommit():
            return RegistryExecution(session, plan)
        case TransactionCommit():
            return TransactionCoordinator(session, plan)
