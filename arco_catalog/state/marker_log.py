"""The marker of one idempotency key, which a request reads and extends."""

from collections.abc import Sequence
from dataclasses import replace

from arco_catalog.state.access import State
from arco_catalog.state.marker import RequestIdentity, Slot, bound_to
from storage_backends import ABSENT, Applied, Found, Missing, PreconditionFailed, Unknown


class MarkerLog:
    """The slots of one idempotency key's marker, as one request reads and extends them. `slots` are the slots read or
    put so far, from 0 on without gaps, but without those by which settings with a number below `settings` closed the
    marker. `keyless` are the attempts of the slots left out after which the request may have been carried out without
    its key. `now_ms` is the store's time of the last slot that was read, missed or put, from which ages are computed; 0
    before. `earlier_hash` names the marker in which an older version of the program would have stored this request, if
    that is another."""

    def __init__(
        self,
        state: State,
        key_hash: str,
        identity: RequestIdentity,
        earlier_hash: str | None = None,
        settings: int = 0,
    ) -> None:
        self._state = state
        self._hash = key_hash
        self._earlier_hash = earlier_hash
        self._settings = settings
        self._passed = 0
        self.keyless: set[str] = set()
        self.identity = identity
        self.slots: list[Slot] = []
        self.now_ms = 0

    def _key(self, slot: int) -> str:
        """Returns the key in the store of one slot of the idempotency key's marker."""
        return self._state.paths.marker_slot(self._hash, slot)

    async def find_earlier(self) -> None:
        """Switches to the slot log in which an older version stored this request under its idempotency key, if there is
        one and its first slot has this request: the request may then have been applied. A second call does nothing."""
        earlier, self._earlier_hash = self._earlier_hash, None
        if earlier is None:
            return
        key = self._state.paths.marker_slot(earlier, 0)
        found = await self._state.store.get(key)
        if isinstance(found, Found) and bound_to(Slot.parse(found, key), self.identity):
            self._hash = earlier

    async def read_on(self) -> Sequence[Slot]:
        """Reads the slots of the marker after those read so far, up to the first that does not exist, and returns all
        slots, without those by which older settings closed the marker. It adds the attempts of such slots to `keyless`
        if their requests may have been carried out without the key."""
        while True:
            key = self._key(self._passed + len(self.slots))
            match await self._state.store.get(key):
                case Found() as found:
                    self.now_ms = found.now_ms
                    slot = Slot.parse(found, key)
                    if slot.closed_by is not None and slot.closed_by < self._settings:
                        self._passed += 1
                        if slot.is_keyless:
                            self.keyless.add(slot.attempt)
                    else:
                        self.slots.append(slot)
                case Missing(now_ms):
                    self.now_ms = now_ms
                    return self.slots
                case unexpected:
                    raise AssertionError(unexpected)

    async def put(self, slot: Slot) -> bool:
        """Creates the next slot of the marker, and sends the write again while the outcome is unknown. Returns True if
        the slot has these bytes, also by an earlier sending, and adds it to `slots` then. Returns False if it exists
        with other content, or existed and was deleted meanwhile."""
        place = self._passed + len(self.slots)
        while True:
            match await self._state.store.put(self._key(place), slot.body, ABSENT):
                case Applied(_, now_ms):
                    self.now_ms = now_ms
                    self.slots.append(replace(slot, written_ms=now_ms))
                    return True
                case PreconditionFailed():
                    return await self._put_before(place, slot)
                case Unknown():
                    await self._state.pause()

    async def _put_before(self, place: int, slot: Slot) -> bool:
        """Whether the slot with the number `place` has the bytes of `slot`, because an earlier sending of this write
        created it. If so, adds it to the slots that were read. The bytes include the write set, which is what a
        takeover fences."""
        found = await self._state.store.get(self._key(place))
        if not isinstance(found, Found):
            return False
        self.now_ms = found.now_ms
        there = Slot.parse(found, self._key(place))
        if there.body != slot.body:
            return False
        self.slots.append(there)
        return True

    def age_ms(self) -> int:
        """Returns how long before the store's last answer about the marker the last of `slots` was written, in
        milliseconds of the store's clock. There must be a slot."""
        return self.now_ms - self.slots[-1].written_ms
