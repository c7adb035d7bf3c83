"""One try at a request, with all that a plan takes from outside of what was read: its time, and ids."""

import hashlib
import uuid
from dataclasses import dataclass, replace

from arco_catalog.state.runtime import ulid_of


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a mutation, from its claim to its end. `id` is what the object that it moves will remember.

    `entity` is minted with it, for the create or register that it may turn out to be. `rank` is the first id of the
    request: of two transactions that meet, the smaller goes on. Other ids follow from `seed`, which is random: planned
    twice, the same thing has the same id. `now_ms` is the time of its first plan, by the store's clock, and what it
    writes says so; 0 before that.
    """

    id: str
    entity: str
    rank: str
    seed: str
    now_ms: int = 0

    def at(self, now_ms: int) -> "Attempt":
        """The attempt as it is planned at this time; that of an earlier plan stays."""
        return self if self.now_ms else replace(self, now_ms=now_ms)

    def uuid(self, *what: object) -> str:
        """A random (version 4) UUID for one thing that the attempt makes."""
        return str(uuid.UUID(bytes=self._bytes("uuid", *what)[:16], version=4))

    def member(self, place: int) -> "Attempt":
        """The same attempt, for one of several tables that it makes: each is an entity of its own."""
        return replace(self, entity=ulid_of(self.now_ms, self._bytes("entity", place)[:10]))

    def _bytes(self, *what: object) -> bytes:
        return hashlib.sha256("\n".join(map(str, (self.seed, *what))).encode()).digest()
