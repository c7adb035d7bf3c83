"""What a request does with the marker of its idempotency key; nothing if it has no key
(docs/design/idempotency.md#markers)."""

from collections.abc import Sequence

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import Superseded
from arco_catalog.protocol.slot_claims import SlotClaims
from arco_catalog.state.age import has_passed
from arco_catalog.state.marker import Slot, WriteSet

EXPIRED = "This Idempotency-Key is too old: whether its request was carried out is no longer known"


class IdempotencyGuard:
    """Sees to it that one attempt at a time carries out the request, and that its answer is kept."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.marker = session.marker()
        key = session.request.key
        own = session.request.attempts
        self.claims = None if self.marker is None or key is None else SlotClaims(self.marker, key, own)

    @property
    def slots(self) -> Sequence[Slot]:
        """The slots seen so far."""
        return () if self.marker is None else self.marker.slots

    async def is_new(self, attempt: str) -> bool:
        """False if somebody has the key already, as far as that is looked for. Raises as `SlotClaims.is_new` does."""
        return self.claims is None or await self.claims.is_new(attempt, self._session.runtime.now_ms())

    async def claim(self, attempt: str, write_set: WriteSet) -> None:
        """Takes the next slot for an attempt. Raises `Superseded`, and what `SlotClaims.put` does."""
        assert self.claims is not None
        await self.claims.put(attempt, write_set)

    async def check_not_superseded(self) -> None:
        """Raises `Superseded` unless our own slot is still the last."""
        if self.marker is not None:
            seen = len(self.marker.slots)
            if len(await self.marker.read_on()) > seen:
                raise Superseded

    async def finalize(self, attempt: str, write_set: WriteSet, answer: JsonObject) -> None:
        """Puts the final slot: only after this may a failure or a no-op be told. Raises `Superseded`, and what
        `SlotClaims.put` does."""
        if self.claims is not None:
            await self.claims.put(attempt, write_set, answer)

    async def keep_answer(self, attempt: str, write_set: WriteSet, answer: JsonObject) -> None:
        """Puts the final slot of what has committed, if none is seen. It may be lost: evidence tells the same."""
        if self.marker is not None and not (self.marker.slots and self.marker.slots[-1].final):
            await self.marker.put(Slot(attempt, write_set, {}, answer))

    async def read(self) -> Sequence[Slot]:
        """All slots, read anew; at least one. Raises as `SlotClaims.read` does, and `CommitStateUnknown` if there is
        none any more."""
        slots = [] if self.claims is None else await self.claims.read()
        if not slots:
            raise CommitStateUnknown("The marker of this Idempotency-Key no longer exists", "key-expired")
        return slots

    def check_not_expired(self) -> None:
        """Raises `CommitStateUnknown` for a marker so old that it may be in the middle of its collection: its final
        slot goes before its first one (docs/design/collection.md#rule-6)."""
        kept_ms = self._session.settings.retention.markers_ms
        if self.marker is not None and self.marker.now_ms - self.marker.slots[0].written_ms >= kept_ms:
            raise CommitStateUnknown(EXPIRED, "key-expired")

    @property
    def may_be_taken_over(self) -> bool:
        """Whether nobody works on the last slot any more: it is old, or of an attempt that this request gave up."""
        if self.marker is None:
            return False
        given_up = self.marker.slots[-1].attempt in self._session.request.attempts
        return given_up or has_passed(self.marker.age_ms(), self._session.settings.in_progress_ms)
