"""The marker of a request's idempotency key, as the request reads and extends it; without a key there is none
(docs/design/idempotency.md#markers).

A key's age is measured by the store's clock: up to the time when slot 0 was written; or, without a slot 0, up to the
time in the store's answer that there is none. So every machine decides alike, whatever its own clock shows
(docs/design/idempotency.md#rule-7).
"""

from collections.abc import Sequence, Set

from arco_catalog.iceberg.errors import BadRequest, CommitStateUnknown, KeyInProgress, KeyReused
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.answers import encode_answer
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import Superseded
from arco_catalog.protocol.request_stats import note_stale_key
from arco_catalog.state.age import has_passed
from arco_catalog.state.marker import Slot, WriteSet, bound_to
from arco_catalog.state.marker_log import MarkerLog
from storage_backends import StoreError

EXPIRED = (
    "This Idempotency-Key is too old: its record may be deleted, so whether its request was carried out is no longer "
    "known. Look whether the change is there before you make it with a new key"
)


def check_not_keyless(log: MarkerLog, own: Set[str]) -> None:
    """Raises `CommitStateUnknown` if the marker has no slot, and another sending of the request, an attempt that is not
    among `own`, may have been carried out while the catalog read no keys (docs/design/idempotency.md#rule-13). Returns
    otherwise."""
    if not log.slots and log.keyless - own:
        raise CommitStateUnknown(
            "This request was sent before while the catalog read no idempotency keys: it may have been applied then. "
            "Look whether the change is there before you make it again",
            "key-settings",
        )


class IdempotencyGuard:
    """Guards one request against other sendings of it: lets one attempt at a time execute it, and stores the answer
    under the idempotency key, if there is one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._own = session.request.attempts
        """The attempts of this request whose slots were sent."""
        self.marker = session.marker()

    @property
    def slots(self) -> Sequence[Slot]:
        """The slots of the marker of the request's idempotency key that were read or put until now, without the slots
        by which older settings closed the marker; empty without a key."""
        return () if self.marker is None else self.marker.slots

    def _age_error(self, now_ms: int) -> BadRequest | CommitStateUnknown | None:
        """Returns the error that refuses the request's key by the time `now_ms`: it is older than a day, was made while
        the catalog read no keys, or is more than five minutes in the future. None if it is none of these, or the
        request has no key."""
        key = self._session.request.key
        return None if key is None else key.refusal(now_ms)

    async def is_new(self, attempt: str) -> bool:
        """Whether the request may begin: True without a key, False if the marker is seen to have a slot already. The
        marker is read only if the key's age is an error by the machine's clock: if there is a marker, its answer is
        still good; if there is none, the store's answer has the time, by which the age is judged once more. Raises, by
        that time, `CommitStateUnknown` for a key that is too old, or was made, or sent before, while the catalog read
        no keys, and `BadRequest` for one from the future, which it stores as the answer; raises `Superseded` if another
        sending puts a slot meanwhile."""
        marker = self.marker
        if marker is None or self._age_error(self._session.runtime.now_ms()) is None:
            return True
        if await marker.read_on():
            return False
        check_not_keyless(marker, self._own)
        match self._age_error(marker.now_ms):
            case CommitStateUnknown() as unknown:
                note_stale_key()
                raise unknown
            case BadRequest() as error:
                await self.put(attempt, WriteSet(), encode_answer(error))
                raise error
            case None:
                return True

    async def put(self, attempt: str, write_set: WriteSet, answer: JsonObject | None = None) -> None:
        """Puts the next slot of the idempotency key's marker for an attempt, and adds that to the request's own
        attempts; does nothing if the request has no key. With an answer it is the final slot: only after it may a
        failure or a no-op be answered. Raises `Superseded` if another sending has put the next slot, or that slot is
        final, and `CommitStateUnknown` if the request may have been carried out without its key. If this put slot 0,
        the key is judged by the slot's time: raises `CommitStateUnknown` if it is too old, or of a time when the
        catalog read no keys; if it is too new and there is no `answer`, puts a `BadRequest` as the answer and raises
        that.

        A put that was cancelled, because a step that ran concurrently failed, may have been applied nevertheless. So
        slots of our own that are not final are skipped.
        """
        marker = self.marker
        if marker is None:
            return
        self._own.add(attempt)
        check_not_keyless(marker, self._own)
        while not await marker.put(Slot(attempt, write_set, self._binding(marker), answer)):
            seen = len(marker.slots)
            if any(slot.final or slot.attempt not in self._own for slot in (await marker.read_on())[seen:]):
                raise Superseded
            check_not_keyless(marker, self._own)
        if len(marker.slots) == 1:
            await self._check_age(attempt, write_set, answer)

    @staticmethod
    def _binding(marker: MarkerLog) -> JsonObject:
        """Returns the part of the marker's next slot that binds the key to this request: the request's identity for
        slot 0, empty for later slots."""
        return {} if marker.slots else marker.identity.to_json()

    async def _check_age(self, attempt: str, write_set: WriteSet, answer: JsonObject | None) -> None:
        """Raises for a key that is too old, of a time when the catalog read no keys, or too new, by the time at which
        our slot 0 was written; with an `answer`, which makes the slot final, not for one that is too new. For a key
        that is too new it puts the error into the final slot first. This machine's clock is then wrong: by the right
        time the slot would not have been put."""
        match self._age_error(self.slots[0].written_ms):
            case CommitStateUnknown() as unknown:
                raise unknown
            case BadRequest() as error if answer is None:
                await self.put(attempt, write_set, encode_answer(error))
                raise error

    async def keep_answer(self, attempt: str, write_set: WriteSet, answer: JsonObject) -> None:
        """Puts the final slot of the idempotency key's marker, with the answer, for an attempt that has committed,
        unless the last slot that was read is final; does nothing without a key. The write may be lost: the evidence of
        the commit gives the same answer."""
        if self.marker is not None and not (self.marker.slots and self.marker.slots[-1].final):
            await self.marker.put(Slot(attempt, write_set, {}, answer))

    async def give_up(self, attempt: str, write_set: WriteSet, answer: JsonObject) -> None:
        """Puts the final slot of the idempotency key's marker for a request that was refused half-way; does nothing
        without a key. Raises `Superseded` if another sending has put a slot too, `CommitStateUnknown` as `put` does,
        and `KeyInProgress` if the store fails: another sending may still be executed."""
        if self.marker is None:
            return
        try:
            slots = await self.marker.read_on()
            if any(slot.final or slot.attempt not in self._own for slot in slots):
                raise Superseded
            await self.put(attempt, write_set, answer)
        except StoreError as error:
            raise KeyInProgress(
                f"This sending changed nothing, but the record of this Idempotency-Key could not be read or written "
                f"({error}): send the request once more with the same key"
            ) from error

    async def check_not_superseded(self) -> None:
        """Reads the idempotency key's marker from the store, and raises `Superseded` if a slot follows those that were
        read before; does nothing without a key."""
        if self.marker is not None:
            seen = len(self.marker.slots)
            if len(await self.marker.read_on()) > seen:
                raise Superseded

    async def read(self) -> Sequence[Slot]:
        """Reads all slots of the idempotency key's marker from the store and returns them; empty if there are none, or
        without a key. Those of a closed marker are returned without a check. Raises `KeyReused` if slot 0 binds the key
        to another request, and `CommitStateUnknown` for a key that was too old when slot 0 was put, or is too old now
        and has none: an older marker may have been collected, so no answer may rest on this one; and for a request that
        may have been carried out without its key."""
        marker = self.marker
        if marker is None:
            return ()
        marker.slots.clear()
        slots = await marker.read_on()
        if slots and slots[0].closed_by is not None:
            return slots
        if slots and not bound_to(slots[0], marker.identity):
            raise KeyReused("Idempotency-Key was already used for a different request: send this one with a new key")
        check_not_keyless(marker, self._own)
        error = self._age_error(slots[0].written_ms if slots else marker.now_ms)
        if isinstance(error, CommitStateUnknown):
            if not slots:
                note_stale_key()
            raise error
        return slots

    async def require_slots(self) -> Sequence[Slot]:
        """Reads all slots of the idempotency key's marker from the store and returns them, at least one. Raises as
        `read` does, and `CommitStateUnknown` if there is none: the marker was collected."""
        slots = await self.read()
        if not slots:
            raise CommitStateUnknown(
                "The record of this Idempotency-Key no longer exists: whether its request was carried out is "
                "unknown. Look whether the change is there before you make it with a new key",
                "key-expired",
            )
        return slots

    def check_not_expired(self) -> None:
        """Raises `CommitStateUnknown` if slot 0 of the marker is at least `Retention.markers_ms` old, so that the
        marker may be in the middle of its collection: the final slot is deleted before the first one
        (docs/design/collection.md#rule-6). Does nothing without a key."""
        kept_ms = self._session.settings.retention.markers_ms
        if self.marker is not None and self.marker.now_ms - self.marker.slots[0].written_ms >= kept_ms:
            raise CommitStateUnknown(EXPIRED, "key-expired")

    @property
    def may_be_taken_over(self) -> bool:
        """Whether another attempt may take the request over from the last slot's attempt: the slot is older than
        `Settings.in_progress_ms`, or this request put it and gave the attempt up. False without a key."""
        if self.marker is None:
            return False
        given_up = self.marker.slots[-1].attempt in self._own
        return given_up or has_passed(self.marker.age_ms(), self._session.settings.in_progress_ms)
