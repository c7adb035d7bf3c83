"""Turns of writers that lose one compare-and-swap of a pointer after another: a writer that has lost often reserves the
next move, and the others let it go first (docs/design/commit.md#turns)."""

from collections.abc import Callable
from typing import Final

from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.mutation import Freshness
from arco_catalog.protocol.relation_read_set import RelationLookup, RelationReadSet, read_relation
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.pointer import Pointer, Turn
from storage_backends import Applied
from storage_backends.backoff import pause_s, poll_pause_s

LOSSES: Final = 3
"""After so many lost compare-and-swaps a writer takes a turn."""
POLL_S: Final = 0.05
"""How often a writer that gives way looks at the pointer, roughly."""
MAX_TURN_MS: Final = 1_000
"""How long a writer gives way to one turn, whose writer may be dead: a turn is five calls to the store, one after the
other."""
MAX_TURNS_MS: Final = 5_000
"""How long a writer gives way to turns in succession: then it goes on in spite of the next one."""
MAX_DELAY_S: Final = 0.6
"""How long after another's turn a writer goes on at the latest. It lets the time go by that the other had waited
longer, so the writer that has waited longest goes first."""


class PointerTurns:
    """The turns of one request at the pointer of one table or view to which it commits; a transaction has several. It
    is made when the request has lost a compare-and-swap there for the first time. `is_conflict` is whether the commit
    is refused at a pointer, so that it awaits no turn there; it gets the newest metadata file that the request has
    read, too, which may be an older pointer's."""

    def __init__(
        self, session: Session, lookup: RelationLookup, is_conflict: Callable[[Pointer, bytes | None], bool]
    ) -> None:
        self._session = session
        self._lookup = lookup
        self._is_conflict = is_conflict
        self._since_ms = session.runtime.boot_ms()
        self._base: bytes | None = None
        self._passed_over: set[str] = set()
        """Moves that reserve nothing for others: the request's own turns, and turns to which it gives way no longer."""
        self._move: str | None = None
        """The last move by which the request took a turn, or may have."""

    async def take(self, read_set: RelationReadSet, losses: int) -> RelationReadSet | None:
        """Gives way to another writer's turn, and takes one after `losses` lost compare-and-swaps if these are at least
        `LOSSES`, by a move of the pointer that changes only its version; stops if another table or view has got the
        name, for which the caller may lack rights. Returns the read set to plan on, without a base, None if that is
        `read_set`. Must be called while no attempt of the request is in doubt. Raises `StoreError`, also past the
        deadline, and as `State.swap` and `read_relation` do."""
        self._base = read_set.base
        pointer = self._pointer(read_set)
        if pointer is None or not self._is_due(pointer, losses):
            return None
        began_ms = self._session.runtime.boot_ms()
        entity, read_set = pointer.entity, await self._read()
        while (pointer := self._pointer(read_set)) is not None and pointer.entity == entity:
            turn = self._turn_of_another(pointer)
            if turn is not None and self._session.runtime.boot_ms() - began_ms < MAX_TURNS_MS:
                read_set = await self._give_way(turn)
            elif turn is not None:
                self._passed_over.add(turn.move)
                break
            elif losses < LOSSES or self._has_turn(pointer) or await self._reserve(read_set, pointer):
                break
            else:
                await self._session.runtime.sleep(pause_s(self._session.runtime.random(), POLL_S))
                read_set = await self._read()
        return read_set

    def _is_due(self, pointer: Pointer, losses: int) -> bool:
        """Whether a request that has lost so many compare-and-swaps of this pointer must give way to another writer's
        turn, or may take a turn. False while the pointer has the request's own turn, or one that it has passed over."""
        return losses >= LOSSES if pointer.turn is None else pointer.turn.move not in self._passed_over

    def _has_turn(self, pointer: Pointer) -> bool:
        """Whether the pointer has this request's own turn: its move was applied, although its last answer was a
        refusal (docs/design/store.md#rule-1)."""
        return pointer.turn is not None and pointer.turn.move == self._move

    async def _read(self) -> RelationReadSet:
        """Reads the relation again, with a pointer from the store. Raises `StoreUnavailable` past the deadline."""
        self._session.check_deadline()
        return await read_relation(self._session, self._lookup, Freshness.MOVED)

    def _turn_of_another(self, pointer: Pointer | None) -> Turn | None:
        """Returns the turn in a pointer to which this request gives way; None if there is none, or it is this request's
        own, or one to which it has given way for too long."""
        turn = None if pointer is None else pointer.turn
        return None if turn is None or turn.move in self._passed_over else turn

    async def _give_way(self, turn: Turn) -> RelationReadSet:
        """Waits until another writer's turn at the pointer is over, and then as much longer as this request has waited
        less than that writer, for at most `MAX_DELAY_S`. After `MAX_TURN_MS` it waits no longer, and passes this turn
        over from then on. Returns the relation as it was read last."""
        runtime = self._session.runtime
        began_ms = runtime.boot_ms()
        waited_less_s = (turn.waited_ms - self._waited_ms) / 1_000
        while True:
            await runtime.sleep(poll_pause_s(runtime.random(), POLL_S))
            read_set = await self._read()
            if self._turn_of_another(self._pointer(read_set)) != turn:
                break
            if runtime.boot_ms() - began_ms >= MAX_TURN_MS:
                self._passed_over.add(turn.move)
                return read_set
        if waited_less_s <= 0 or self._pointer(read_set) is None:
            return read_set
        await runtime.sleep(min(MAX_DELAY_S, waited_less_s))
        return await self._read()

    async def _reserve(self, read_set: RelationReadSet, pointer: Pointer) -> bool:
        """Takes a turn at the pointer of this read set, and puts the pointer that has the turn there. Returns whether
        it did: False if the pointer has moved, which may be an echo of this move."""
        state, move = self._session.state, self._session.runtime.ulid()
        reserved = pointer.reserved(Turn(move, self._waited_ms))
        self._move = move
        self._passed_over.add(move)
        outcome = await state.move_pointer(reserved, pointer.version)
        if not isinstance(outcome, Applied):
            return False
        read_set.pointer = Pointer(reserved.document, outcome.version)
        return True

    @property
    def _waited_ms(self) -> int:
        """The milliseconds since this request first lost a compare-and-swap of the pointer."""
        return self._session.runtime.boot_ms() - self._since_ms

    def _pointer(self, read_set: RelationReadSet) -> Pointer | None:
        """Returns the pointer in the read set of a table or view; None if there is none, or if what was read makes the
        commit fail."""
        pointer = read_set.pointer
        if pointer is None or read_set.refusal is not None or self._is_conflict(pointer, self._base):
            return None
        return pointer if read_set.entry is not None and has_pointer(read_set.entry.json) else None
