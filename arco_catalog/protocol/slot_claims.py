"""One request's slots in the marker of its idempotency key, and whether the key may be executed at all
(docs/design/idempotency.md#rule-7).

A key's age is measured by the store's clock: up to the time when slot 0 was written; or, without a slot 0, up to the
time in the store's answer that there is none. So every machine decides alike, whatever its own clock says.
"""

from collections.abc import Sequence

from arco_catalog.iceberg.errors import BadRequest, CommitStateUnknown, KeyInProgress, KeyReused
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.answers import encode_answer
from arco_catalog.protocol.concurrency import Superseded
from arco_catalog.protocol.operation_request import IdempotencyKey
from arco_catalog.protocol.request_stats import note_stale_key
from arco_catalog.state.marker import Slot, WriteSet, bound_to
from arco_catalog.state.marker_log import MarkerLog
from storage_backends import StoreError


class SlotClaims:
    """Reads the slots of one request's marker, and puts its own."""

    def __init__(self, marker: MarkerLog, key: IdempotencyKey, own: set[str]) -> None:
        """`own` are the attempts of this request whose slots were sent."""
        self._marker = marker
        self._key = key
        self._own = own

    async def is_new(self, attempt: str, machine_ms: int) -> bool:
        """False if the key is known to have a marker. The marker is read only if the key is too old or too new by the
        machine's clock: if there is one, its answer is still good; if there is none, the store's answer tells the time.
        Raises `CommitStateUnknown` for a key that is too old by that time, `BadRequest` for one from the future, and
        `Superseded`."""
        if self._key.refusal(machine_ms) is None:
            return True
        if await self._marker.read_on():
            return False
        match self._key.refusal(self._marker.now_ms):
            case CommitStateUnknown() as unknown:
                note_stale_key()
                raise unknown
            case BadRequest() as refusal:
                await self.put(attempt, WriteSet(), encode_answer(refusal))
                raise refusal
            case None:
                return True

    async def put(self, attempt: str, write_set: WriteSet, answer: JsonObject | None = None) -> None:
        """Puts the next slot; with an answer, it is the final slot. Raises `Superseded` if somebody else has put the
        next slot. When slot 0 shows that the key is too old or too new, raises `CommitStateUnknown`
        or `BadRequest`, as `is_new` does.

        A put that was cancelled, because a step that ran concurrently failed, may have landed nevertheless. So slots of
        our own are skipped.
        """
        marker = self._marker
        self._own.add(attempt)
        while not await marker.put(Slot(attempt, write_set, self._request(), answer)):
            seen = len(marker.slots)
            if any(slot.final or slot.attempt not in self._own for slot in (await marker.read_on())[seen:]):
                raise Superseded
        if len(marker.slots) == 1:
            await self._check_age(attempt, write_set, answer)

    async def give_up(self, attempt: str, write_set: WriteSet, answer: JsonObject) -> None:
        """Puts the final slot of a request that was refused half-way. Raises `Superseded` if another sending has put
        a slot too, and `KeyInProgress` if the final slot could not be written: another sending may still be
        executed."""
        try:
            slots = await self._marker.read_on()
            if any(slot.final or slot.attempt not in self._own for slot in slots):
                raise Superseded
            await self.put(attempt, write_set, answer)
        except StoreError as error:
            raise KeyInProgress(
                f"Nothing was changed, but the idempotency record could not be written: {error}"
            ) from error

    def _request(self) -> JsonObject:
        """What slot 0 binds the key to."""
        return {} if self._marker.slots else self._marker.identity.to_json()

    async def _check_age(self, attempt: str, write_set: WriteSet, answer: JsonObject | None) -> None:
        """Raises for a key that is too old or too new by the time at which our slot 0 was written. This machine's clock
        is then wrong: by the right time the slot would not have been put."""
        match self._key.refusal(self._marker.slots[0].written_ms):
            case CommitStateUnknown() as unknown:
                raise unknown
            case BadRequest() as refusal if answer is None:
                await self.put(attempt, write_set, encode_answer(refusal))
                raise refusal

    async def read(self) -> Sequence[Slot]:
        """All slots, read anew. Raises `KeyReused` if slot 0 binds the key to another request, and `CommitStateUnknown`
        for a key that was too old when slot 0 was put, or is too old now and has none: an older marker may have been
        collected, so no answer may rest on this one."""
        marker = self._marker
        marker.slots.clear()
        slots = await marker.read_on()
        if slots and slots[0].closed_by is not None:
            return slots
        if slots and not bound_to(slots[0], marker.identity):
            raise KeyReused("Idempotency-Key was already used for a different request")
        refusal = self._key.refusal(slots[0].written_ms if slots else marker.now_ms)
        if isinstance(refusal, CommitStateUnknown):
            if not slots:
                note_stale_key()
            raise refusal
        return slots
