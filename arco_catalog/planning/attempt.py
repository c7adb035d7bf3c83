"""One attempt at a request, with the inputs of its plan that do not come from stored state: the time and ids."""

import hashlib
import uuid
from dataclasses import replace

from arco_catalog.state.runtime import ulid_of
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a mutation. Its `id` goes into the object that the commit moves.

    `entity` is a fresh id for the table or view that the attempt may create. `rank` is the first id of the request: of
    two transactions on one table, the one with the smaller rank continues. All other ids are computed from the random
    `seed`, so that another plan of the attempt has the ids of the first. `now_ms` is the time of the first plan, by the
    store's clock, which the writes contain; 0 before that plan.
    """

    id: str
    entity: str
    rank: str
    seed: str
    now_ms: int = 0

    def at(self, now_ms: int) -> "Attempt":
        """Returns the attempt with this time, in milliseconds since 1970; unchanged if it has the time of an earlier
        plan."""
        return self if self.now_ms else replace(self, now_ms=now_ms)

    def uuid(self, *what: object) -> str:
        """Returns a version 4 UUID for the object that `what` identifies. Equal arguments give one UUID in one attempt,
        and another in every other attempt."""
        return str(uuid.UUID(bytes=self._bytes("uuid", *what)[:16], version=4))

    def member(self, place: int) -> "Attempt":
        """Returns this attempt with another entity id, for one of several tables that it creates: the one with the
        number `place`."""
        return replace(self, entity=ulid_of(self.now_ms, self._bytes("entity", place)[:10]))

    def _bytes(self, *what: object) -> bytes:
        """Returns bytes that are derived from the attempt's seed and these values."""
        return hashlib.sha256("\n".join(map(str, (self.seed, *what))).encode()).digest()
