"""The one driver of every mutation: markers, evidence, takeover, retries (docs/design/commit.md,
docs/design/idempotency.md).

arco_catalog/operations/README.md tells each step, its guard, and what happens when the process dies there.
"""

from collections.abc import Awaitable, Coroutine
from functools import partial
from typing import Generic, TypeVar

from arco_catalog.iceberg.errors import (
    CommitStateUnknown,
    InternalError,
    KeyInProgress,
    Refusal,
    Unavailable,
)
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol import evidence
from arco_catalog.protocol.answers import Answer, encode_answer
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import Superseded, gather
from arco_catalog.protocol.lookup import look_up
from arco_catalog.protocol.mutation import (
    Attempt,
    AttemptAborted,
    Freshness,
    Mutation,
    NoOp,
    PlannedCommit,
    Prerequisite,
    ReadSet,
    Write,
)
from arco_catalog.protocol.replay import replay, replay_only
from arco_catalog.protocol.slot_claims import SlotClaims
from arco_catalog.protocol.store_refusals import refused_by_store
from arco_catalog.state.access import SegmentGone
from arco_catalog.state.age import has_passed
from arco_catalog.state.marker import Slot, WriteSet
from arco_catalog.state.marker_log import MarkerLog
from arco_catalog.state.memory import OutOfMemory
from arco_catalog.state.store_clock import MAX_CORRECTION_MS
from storage_backends import Applied, InvalidKey, StoreDenied, StoreError

V = TypeVar("V", bound=ReadSet)

BACKOFF_SECONDS = 0.05
"""Upper end of the first wait after a lost compare-and-swap; it doubles each time."""
MAX_BACKOFF_SECONDS = 2.0
POLL_SECONDS = 0.2
"""How often a duplicate looks for the answer, roughly."""


async def run(session: Session, mutation: Mutation[V]) -> Answer:
    """Carries out a mutation exactly once for its idempotency key, or once for this call without one.

    Raises `Refusal` for a definite no, `CommitStateUnknown` where the change may have been or may yet be made,
    `Unavailable` where nothing was done, and `KeyInProgress` or `KeyReused` for the key itself.
    """
    await session.identify()
    driver = Driver(session, mutation)
    try:
        return await driver.run()
    except (StoreDenied, InvalidKey) as error:
        await driver.refuse_as_the_store_did(error)
        raise refused_by_store(error) from error
    except StoreError as error:
        reason = str(error) if isinstance(error, OutOfMemory) else f"The object store failed: {error}"
        if driver.may_have_changed_something:
            raise CommitStateUnknown(reason) from error
        raise Unavailable(reason) from error
    except Unavailable as error:
        if driver.marker is not None:  # of us that is true; another try under the same key may be doing it
            raise KeyInProgress(error.message) from error
        raise


class Driver(Generic[V]):
    """One request's way through the protocol. Not for reuse."""

    def __init__(self, session: Session, mutation: Mutation[V]) -> None:
        self.session = session
        self.stats = session.stats
        self.mutation = mutation
        self.marker: MarkerLog | None = session.marker()
        key = session.request.key
        self.claims = None if self.marker is None or key is None else SlotClaims(self.marker, key)
        self.rank: str | None = None
        self.attempt = self.create_attempt()
        self.claimed: WriteSet | None = None
        """The write set in the slot of our attempt."""
        self.tried: dict[str, WriteSet] = {}
        """Our own attempts whose compare-and-swap was sent."""
        self.written: set[str] = set()
        self.next_slot_unchecked = False
        """Whether the version that the plan relies on was read after our claim, and the next slot not read since
        (docs/design/commit.md#rule-1)."""
        self.planned_ms = 0
        self.rounds = 0

    @property
    def may_have_changed_something(self) -> bool:
        """Whether a failure to answer leaves the outcome open."""
        return self.marker is not None or bool(self.tried)

    def create_attempt(self) -> Attempt:
        """An attempt with a fresh id, and a fresh entity for what it may create; its rank is the id of the request's
        first."""
        attempt = self.session.runtime.ulid()
        self.stats.tried(attempt)
        self.rank = self.marker.slots[0].attempt if self.marker and self.marker.slots else self.rank or attempt
        self.mutation.rank = self.rank
        return Attempt(attempt, self.session.runtime.ulid(), self.rank)

    def new_attempt(self) -> None:
        """Begins another attempt in place of one that is over. With a marker it claims the next slot, after the version
        that its plan relies on was read."""
        self.attempt = self.create_attempt()
        self.claimed = None
        self.next_slot_unchecked = False
        self.written.clear()

    @property
    def declared(self) -> WriteSet | None:
        """The write set that our attempt declared: in its slot, or, without one, by its first compare-and-swap."""
        return self.tried.get(self.attempt.id) if self.claimed is None else self.claimed

    async def run(self) -> Answer:
        """Answers the request: carries it out, joins another sending of it, or takes over from one."""
        if self.marker is not None:
            await self.marker.find_earlier()
        if self.session.settings.read_only_because is not None:
            return await replay_only(self.session, self.claims, self.session.settings.read_only_because)
        try:
            if self.claims is not None and not await self.claims.is_new(self.attempt.id, self.session.runtime.now_ms()):
                return await self.join_in_flight()
            try:
                return await self.run_attempts(Freshness.CACHED)
            except SegmentGone:  # the cached HEAD is so old that parts of its index were collected
                self.new_attempt()
                return await self.run_attempts(Freshness.FRESH)
        except Superseded:
            return await self.join_in_flight()

    # Read, look for evidence, plan, prepare, swap.

    async def run_attempts(self, freshness: Freshness) -> Answer:
        """Tries until something is decided. Raises `Superseded` when somebody else decides."""
        read_set: V | None = None
        while True:
            self.check_deadline()
            if read_set is None:
                read_set = await self.read(freshness)
            committed = await self.find_evidence(read_set)
            if committed is not None:
                return await self.answer_on_evidence(committed)
            self.planned_ms = self.session.now_ms()
            try:
                await self.mutation.work(read_set)
                plan = await look_up(self.session.state, partial(self.mutation.plan, read_set, self.attempt))
                if isinstance(plan, Prerequisite):
                    await plan.run()
            except Refusal as refusal:
                if not self.is_fresh(read_set):
                    read_set, freshness = None, Freshness.FRESH
                    continue
                await self.finalize(encode_answer(refusal), read_set)
                raise
            match plan:
                case Prerequisite():
                    read_set, freshness = None, Freshness.FRESH
                case NoOp(answer):
                    if self.is_fresh(read_set):
                        await self.finalize(encode_answer(answer), read_set)
                        self.stats.outcome = "unchanged"
                        return answer
                    read_set, freshness = None, Freshness.FRESH
                case PlannedCommit():
                    moved, read_set = await self.execute(plan, read_set)
                    if moved:
                        return plan.answer
                    freshness = Freshness.MOVED

    async def execute(self, plan: PlannedCommit[V], read_set: V) -> tuple[bool, V | None]:
        """Makes a planned commit, if the plan is still valid and the swap applies. Returns whether it was made, and if
        not the read set to plan on again, None to read everything anew."""
        write_set = await self.write_set(read_set)
        if self.declared is not None and not self.declared.covers(write_set):
            # Evidence is looked for in the declared write set: a commit elsewhere would be taken for another attempt's.
            self.new_attempt()
            return False, read_set
        try:
            fresher = await self.prepare(plan, write_set)
            if fresher is not None:
                if write_set.transaction is not None:
                    self.new_attempt()  # its object names the plan that no longer stands
                return False, fresher
            if abs(self.session.now_ms() - self.planned_ms) > MAX_CORRECTION_MS:
                raise AttemptAborted  # what the store has told meanwhile makes the time in what was written wrong
            if plan.ready is not None:
                await plan.ready()
            self.check_deadline()
            if await self.swap(plan, write_set):
                self.stats.outcome = "moved"
                await self.follow_up(plan, write_set)
                return True, None
        except AttemptAborted:
            self.new_attempt()
        await self.back_off()
        return False, None

    def is_fresh(self, read_set: V) -> bool:
        """Whether a verdict may be given: on cached state only a compare-and-swap may rely
        (docs/design/commit.md#steps)."""
        return read_set.is_fresh

    async def read(self, freshness: Freshness) -> V:
        """Reads what the plan relies on.

        The first attempt claims its slot concurrently with the read of the base, after the version was read; a later
        one reads the next slot after the version was read, never before (docs/design/commit.md#rule-1).
        """
        read_set = await self.mutation.read(freshness)
        steps: list[Coroutine[object, object, None]] = []
        if self.claimed is not None:
            steps.append(self.check_not_superseded())
        elif self.marker is not None and self.mutation.needs_base(read_set):
            steps.append(self.claim(await self.write_set(read_set)))
        if self.mutation.needs_base(read_set):
            steps.append(self.mutation.load_base(read_set))
        await gather(*steps)
        self.next_slot_unchecked = False
        return read_set

    async def check_not_superseded(self) -> None:
        """Raises `Superseded` unless our own slot is still the last."""
        seen = 0 if self.marker is None else len(self.marker.slots)
        if self.marker is not None and len(await self.marker.read_on()) > seen:
            raise Superseded

    def attempts(self) -> dict[str, WriteSet]:
        """Every attempt that may have committed something for this request, with its write set."""
        known = {slot.attempt: slot.write_set for slot in self.marker.slots} if self.marker is not None else {}
        return {**known, **self.tried}

    async def find_evidence(self, read_set: V) -> str | None:
        """The attempt, ours or anybody's under this key, that is seen to have committed
        (docs/design/commit.md#evidence). What the read set does not cover, an entity that the name meant before, is
        read."""
        for attempt, write_set in self.attempts().items():
            if attempt == self.attempt.id and attempt not in self.tried:
                continue  # nothing of it was sent yet
            if read_set.covers(write_set):
                found = await read_set.has_committed(attempt, write_set)
            else:
                found = await evidence.has_committed(self.session.state, attempt, write_set)
            if found:
                return attempt
        return None

    async def prepare(self, plan: PlannedCommit[V], write_set: WriteSet) -> V | None:
        """Everything that must be durable or known before the move, side by side. Returns None if the plan is still
        valid, else the fresher read set to plan on."""
        fresher: list[V | None] = []

        async def check() -> None:
            fresher.append(await plan.check())
            self.next_slot_unchecked = fresher[0] is not None and self.claimed is not None

        steps: list[Coroutine[object, object, None]] = [check()]
        if self.next_slot_unchecked:
            steps.append(self.check_not_superseded())
        if self.marker is not None and self.claimed is None:
            steps.append(self.claim(write_set))
        steps.extend(self.write(write) for write in plan.first if write.key not in self.written)
        await gather(*steps)
        return fresher[0]

    async def write(self, write: Write) -> None:
        """One create-only write, not repeated in a later round."""
        await write.put()
        self.written.add(write.key)

    async def swap(self, plan: PlannedCommit[V], write_set: WriteSet) -> bool:
        """The commit point. False: refused, perhaps by our own echo."""
        self.tried.setdefault(self.attempt.id, write_set)
        return isinstance(await plan.swap(self.revalidate), Applied)

    async def revalidate(self, read_set: V) -> bool:
        """Checks docs/design/commit.md#rule-1 where the compare-and-swap names a version that was read after the plan
        was made. Raises `Superseded`."""
        await self.check_not_superseded()
        return await self.find_evidence(read_set) is None

    # Slots.

    async def write_set(self, read_set: V) -> WriteSet:
        """What our attempt may change if it is planned on this read set."""
        return await look_up(self.session.state, partial(self.mutation.write_set, read_set, self.attempt))

    async def claim(self, write_set: WriteSet) -> None:
        """Takes the next slot for our attempt. Raises `Superseded`, and what `SlotClaims.put` does."""
        assert self.claims is not None
        await self.claims.put(self.attempt.id, write_set)
        self.claimed = write_set

    async def finalize(self, answer: JsonObject, read_set: V) -> None:
        """Puts the final slot: only after this may a failure or a no-op be told. Raises `Superseded`, and what
        `SlotClaims.put` does."""
        if self.claims is not None:
            write_set = await self.write_set(read_set) if self.claimed is None else self.claimed
            await self.claims.put(self.attempt.id, write_set, answer)

    async def refuse_as_the_store_did(self, error: StoreDenied | InvalidKey) -> None:
        """The store refused, for certain, a call that this attempt needs: it allows it to nobody like us, or can't hold
        such a key. Returns if that may be told as a definite no: it is in the final slot, or there is no key. Raises
        `CommitStateUnknown` where the request may have been carried out, `KeyInProgress` where it may yet be."""
        unknown = CommitStateUnknown(f"The object store refused a step of what may have been done: {error}")
        if self.tried:
            raise unknown from error
        if self.claims is None:
            return
        try:
            await self.claims.give_up(
                self.attempt.id, self.claimed or WriteSet(), encode_answer(refused_by_store(error))
            )
        except Superseded:
            raise unknown from error

    # Success.

    async def follow_up(self, plan: PlannedCommit[V], write_set: WriteSet) -> None:
        """Writes what follows the commit point: a drop's marks, before the answer, then what may be lost."""
        await self.mark_dropped(self.attempt.id, write_set)
        steps = [self.best_effort(write.key, write.put()) for write in plan.after]
        if self.marker is not None:
            final = Slot(self.attempt.id, write_set, {}, encode_answer(plan.answer))
            steps.append(self.best_effort("the final slot", self.marker.put(final)))
        await self.session.run_in_background(gather(*steps))

    async def mark_dropped(self, attempt: str, write_set: WriteSet) -> None:
        """A drop is answered only when its mark is on the pointer (docs/design/registry.md#rule-4)."""
        for entity in write_set.marks:
            await evidence.mark_dropped(self.session, entity, attempt)

    async def best_effort(self, what: str, step: Awaitable[object]) -> None:
        """Runs a step that the reconciler or a duplicate can repair; counts it if it fails."""
        try:
            await step
        except (
            StoreError,
            CommitStateUnknown,
            InternalError,
        ) as error:  # of the step: what it follows is known to be made
            self.session.drop_write(what, error)

    async def answer_on_evidence(self, attempt: str) -> Answer:
        """The answer to an attempt that is known to have committed, whoever made it."""
        self.stats.outcome = "evidence"
        write_set = self.attempts()[attempt]
        await self.mark_dropped(attempt, write_set)
        try:
            answer = await self.mutation.answer_on_evidence(attempt, write_set)
        except Refusal as refusal:
            raise CommitStateUnknown(
                f"The change was made, but its answer cannot be given: {refusal.message}"
            ) from refusal
        if self.marker is not None and not self.marker.slots[-1].final:
            final = Slot(attempt, write_set, {}, encode_answer(answer))
            await self.best_effort("the final slot", self.marker.put(final))
        return answer

    # Duplicates and takeover (docs/design/idempotency.md#duplicates).

    async def join_in_flight(self) -> Answer:
        """Answers a request whose key has a marker already: by its final slot, by evidence of a commit, or by a
        takeover."""
        assert self.marker is not None
        assert self.claims is not None
        give_up_ms = self.session.runtime.now_ms() + self.session.settings.duplicate_timeout_ms
        while True:
            slots = await self.claims.read()
            if not slots:
                raise CommitStateUnknown("The marker of this Idempotency-Key no longer exists")
            kept = slots[-1].answer
            if kept is not None:
                return await replay(self.session, kept)
            for slot in slots:
                if await evidence.has_committed(self.session.state, slot.attempt, slot.write_set):
                    return await self.answer_on_evidence(slot.attempt)
            try:
                if has_passed(self.marker.age_ms(), self.session.settings.in_progress_ms):
                    return await self.take_over()
            except Superseded:
                continue
            if self.session.runtime.now_ms() >= give_up_ms:
                raise KeyInProgress("A request with this Idempotency-Key is in progress: try again")
            await self.session.runtime.sleep(POLL_SECONDS * (0.5 + self.session.runtime.random()))

    async def take_over(self) -> Answer:
        """Takes the next slot, makes sure that no earlier attempt can commit any more, and goes on in their place."""
        assert self.marker is not None
        earlier = self.attempts()
        self.new_attempt()
        read_set = await self.mutation.read(Freshness.FRESH)
        await self.claim(await self.write_set(read_set))
        committed = await self.fence(earlier)
        if committed is not None:
            return await self.answer_on_evidence(committed)
        return await self.run_attempts(Freshness.FRESH)

    async def fence(self, earlier: dict[str, WriteSet]) -> str | None:
        """Fences, once, everything that earlier slots name (docs/design/commit.md#rule-2)."""
        return await evidence.fence(self.session, earlier)

    # Time.

    def check_deadline(self) -> None:
        """Between every read and the compare-and-swap that relies on it (docs/design/commit.md#rule-5)."""
        self.session.check_deadline()

    async def back_off(self) -> None:
        """Full jitter after a lost compare-and-swap."""
        self.stats.conflicts += 1
        longest = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2**self.rounds)
        self.rounds += 1
        await self.session.runtime.sleep(longest * self.session.runtime.random())
