"""Carries out one mutation exactly once: begins it, joins another sending of the request, or takes over from one
(docs/design/commit.md, docs/design/idempotency.md).

arco_catalog/operations/README.md lists each step, its guard, and what happens when the process dies there.
"""

from typing import Generic, TypeVar

from arco_catalog.iceberg.errors import CatalogChanged, CommitStateUnknown, KeyInProgress, Unavailable
from arco_catalog.planning.answers import Answer, encode_answer
from arco_catalog.protocol import evidence
from arco_catalog.protocol.attempts import Attempts
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.commit_loop import CommitLoop
from arco_catalog.protocol.concurrency import Superseded
from arco_catalog.protocol.idempotency import IdempotencyGuard
from arco_catalog.protocol.mutation import Freshness, Mutation, ReadSet
from arco_catalog.protocol.replay import answer_read_only, replay
from arco_catalog.protocol.store_refusals import refused_by_store
from arco_catalog.state.access import SegmentGone
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.memory import OutOfMemory
from storage_backends import InvalidKey, StoreDenied, StoreError
from storage_backends.backoff import poll_pause_s

V = TypeVar("V", bound=ReadSet)

POLL_SECONDS = 0.2
"""How often a duplicate looks for the answer, roughly."""
IN_PROGRESS = "Another sending of the request with this Idempotency-Key is in progress: try again with the same key"


async def run(session: Session, mutation: Mutation[V]) -> Answer:
    """Carries out a mutation exactly once for its idempotency key, or once for this call without one, and returns the
    answer. Records in the request's statistics why an outcome is unknown.

    Raises `Refusal` if the request can't be carried out, `CommitStateUnknown` if the change may have been made or may
    follow, `Unavailable` if the change was not made and can't follow, `CatalogChanged` if the catalog must be opened
    anew first, `KeyInProgress` if another sending of the request may be under way, and `KeyReused` if the key belongs
    to another request.
    """
    try:
        return await _run(session, mutation)
    except CommitStateUnknown as unknown:
        session.stats.unknown_outcome = unknown.reason
        raise


async def _run(session: Session, mutation: Mutation[V]) -> Answer:
    """Carries out a mutation, and raises, for any failure, the error that the client gets: that the request may be sent
    again, that it failed for certain, or that the outcome is unknown. `CatalogChanged` is raised as it is, for the
    caller to handle the request again."""
    await session.identify()
    driver = Driver(session, mutation)
    try:
        return await driver.run()
    except (StoreDenied, InvalidKey) as error:
        await driver.refuse_as_the_store_did(error)
        raise refused_by_store(error) from error
    except StoreError as error:
        reason = str(error) if isinstance(error, OutOfMemory) else f"The object store failed: {error}"
        if driver.is_outcome_unknown:
            raise CommitStateUnknown(f"Whether this request was carried out is unknown: {reason}") from error
        raise driver.retryable_error(reason) from error
    except CommitStateUnknown as unknown:
        if unknown.reason == "store-timeout" and not driver.is_outcome_unknown:
            # A write before the swap: an intent, a reservation, the decision of another's transaction.
            raise driver.retryable_error(unknown.message) from unknown
        raise
    except CatalogChanged:
        raise  # the handler runs again at once, with the same attempts to pass over
    except Unavailable as error:
        if driver.attempts.any_in_doubt:
            raise CommitStateUnknown(
                f"Whether this request was carried out is unknown: {error.message}", "undecided"
            ) from error
        raise driver.retryable_error(error.message) from error


class Driver(Generic[V]):
    """Carries out the mutation of one request exactly once, and returns the answer. It is used once."""

    def __init__(self, session: Session, mutation: Mutation[V]) -> None:
        self.session = session
        self.mutation = mutation
        self.guard = IdempotencyGuard(session)
        self.attempts = Attempts(session, self.guard)
        self.loop = CommitLoop(session, mutation, self.guard, self.attempts)

    @property
    def is_outcome_unknown(self) -> bool:
        """Whether a failure must be answered with `CommitStateUnknown`: one of our own attempts may have committed, or,
        under a key and before the deadline, one of another sending. After the deadline the attempts of others do not
        count, because the client sends the request again, and that request learns of them."""
        if self.attempts.any_in_doubt:
            return True
        if self.guard.marker is None or self.session.late():
            return False
        return not self.attempts.alone_with_key

    def retryable_error(self, reason: str) -> Unavailable | KeyInProgress:
        """Returns the error of a request none of whose own attempts can have committed, so that the client may send it
        again: `Unavailable` without a key. With a key it is `KeyInProgress`, because another sending may have committed
        or still commit, which the answer to the next one shows."""
        return Unavailable(reason) if self.guard.marker is None else KeyInProgress(reason)

    async def run(self) -> Answer:
        """Answers the request: carries it out, joins another sending of it, or takes over from one. If the catalog is
        read-only, it only replays the answer that the key's marker has, as `answer_read_only` describes. Raises as the
        function `run` does, and also what the store raises (`StoreError`)."""
        if self.guard.marker is not None:
            await self.guard.marker.find_earlier()
        if self.session.settings.read_only_because is not None:
            return await answer_read_only(self.session, self.guard, self.session.settings.read_only_because)
        try:
            if not await self.guard.is_new(self.attempts.current.id):
                return await self.join_in_flight()
            try:
                return await self.loop.run(Freshness.CACHED)
            except SegmentGone:  # the cached HEAD is so old that parts of its index were collected
                self.loop.new_attempt()
                return await self.loop.run(Freshness.FRESH)
        except Superseded:
            return await self.join_in_flight()

    async def join_in_flight(self) -> Answer:
        """Answers a request whose key has a marker already: by the final slot, by evidence of a commit, or by a
        takeover, if the last attempt is old or is our own. Raises `KeyInProgress` if none of them is possible in time,
        `CommitStateUnknown` if the marker is too old or has been deleted, `KeyReused` if the key was used for another
        request, and the error that is stored as the answer (docs/design/idempotency.md#duplicates)."""
        session = self.session
        give_up_ms = session.runtime.now_ms() + session.settings.duplicate_timeout_ms
        while True:
            slots = await self.guard.require_slots()
            kept = slots[-1].answer
            if kept is not None:
                return await replay(session, kept)
            committed = await evidence.find_committed(session.state, {slot.attempt: slot.write_set for slot in slots})
            if committed is not None:
                return await self.loop.answer_on_evidence(committed)
            try:
                self.guard.check_not_expired()
                if self.guard.may_be_taken_over:
                    return await self.take_over()
            except Superseded:
                continue
            if session.runtime.now_ms() >= give_up_ms:
                raise KeyInProgress(IN_PROGRESS)
            await session.runtime.sleep(poll_pause_s(session.runtime.random(), POLL_SECONDS))

    async def take_over(self) -> Answer:
        """Takes the next slot, makes sure that no earlier attempt can commit any more, and returns the answer to the
        one that has committed; if none has, it goes on in their place. Raises `Superseded` if another sending has put
        the next slot."""
        earlier = self.attempts.known()
        self.loop.new_attempt()
        read_set = await self.mutation.read(Freshness.FRESH, self.attempts.current.rank)
        await self.loop.claim(await self.mutation.write_set(read_set, self.attempts.current))
        committed = await evidence.fence(self.session, earlier)  # docs/design/commit.md#rule-2
        if committed is not None:
            return await self.loop.answer_on_evidence(committed)
        self.attempts.exclude(earlier)
        return await self.loop.run(Freshness.FRESH)

    async def refuse_as_the_store_did(self, error: StoreDenied | InvalidKey) -> None:
        """Handles a call that the store refused for certain: the credentials do not allow it, or the store can't hold
        such a key. Returns if the error may be answered as a definite failure: then it is in the final slot, or the
        request has no idempotency key. Raises `CommitStateUnknown` if the request may have been carried out, and
        `KeyInProgress` if another sending may still be."""
        unknown = CommitStateUnknown(
            f"Whether this request was carried out is unknown: the object store refused a step of the request: {error}",
            "forbidden",
        )
        if self.attempts.any_in_doubt:
            raise unknown from error
        if self.guard.marker is None:
            return
        try:
            write_set = self.attempts.claimed or WriteSet()
            answer = encode_answer(refused_by_store(error))
            await self.guard.give_up(self.attempts.current.id, write_set, answer)
        except Superseded:
            raise unknown from error
