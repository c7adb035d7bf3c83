"""The attempts of one request in this process: which one is under way, and what each declared that it may change."""

from collections.abc import Iterable, Mapping

from arco_catalog.planning.attempt import Attempt
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.idempotency import IdempotencyGuard
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.store_clock import MAX_CORRECTION_MS


class Attempts:
    """The attempts of one request in this process. `current` is the one that goes on; its write set is declared in its
    slot, or, without a key, by the first writes."""

    def __init__(self, session: Session, guard: IdempotencyGuard) -> None:
        self._session = session
        self._guard = guard
        self.rank: str | None = None
        """The id of the request's first attempt, by anybody."""
        self.claimed: WriteSet | None = None
        """The write set in the slot of the current attempt."""
        self.written: set[str] = set()
        """What the current attempt has written before its compare-and-swap."""
        self._announced: WriteSet | None = None
        self._correction_ms = 0
        self._tried: dict[str, WriteSet] = {}
        self._in_doubt: set[str] = set()
        self._excluded: set[str] = set()
        """Attempts that have not committed, and can no longer: no evidence of them is searched."""
        self.current = self._fresh()

    def _fresh(self) -> Attempt:
        """Returns an attempt with a fresh id, and a fresh entity for what it may create. The rank is the id of the
        request's first attempt: of the one in slot 0 if a slot was read, else of our first. Counts the attempt in the
        request's statistics."""
        slots = self._guard.slots
        attempt = self._session.attempt(slots[0].attempt if slots else self.rank)
        self._session.stats.tried(attempt.id)
        self.rank = attempt.rank
        return attempt

    def begin_another(self) -> None:
        """Makes a fresh attempt the current one, in place of the present one; it has declared, claimed and written
        nothing. With a key, the commit loop later claims the next slot for it, after it has read the version that the
        plan relies on."""
        self.current = self._fresh()
        self.claimed = self._announced = None
        self.written = set()

    def time_current(self) -> None:
        """Gives the current attempt a time, by this machine's clock corrected by the store's, unless it has one. It
        must be called after the store's first answer, which shows the store's clock."""
        if not self.current.now_ms:
            self.current = self.current.at(self._session.now_ms())
            self._correction_ms = self._session.catalog.clock.behind_ms

    @property
    def is_mistimed(self) -> bool:
        """Whether later answers of the store show that the time in the current attempt's writes is wrong by more than
        `MAX_CORRECTION_MS`."""
        return abs(self._session.catalog.clock.behind_ms - self._correction_ms) > MAX_CORRECTION_MS

    def announce(self, write_set: WriteSet) -> None:
        """Records the write set of the plan whose first writes the current attempt is about to make. Until a slot is
        claimed for the attempt, this is what it has `declared`."""
        self._announced = write_set

    def try_current(self, write_set: WriteSet) -> None:
        """Records that the current attempt's compare-and-swap is about to be sent, so that the attempt may have
        committed from now on. The write set names the sequence numbers of what was read last, where no commit of the
        attempt was found and none was under way: evidence is searched from there, not from the older numbers of the
        claim (docs/design/commit.md#evidence)."""
        self._tried[self.current.id] = write_set
        self._in_doubt.add(self.current.id)
        self._excluded.discard(self.current.id)

    def abandon_current(self) -> None:
        """Records that the current attempt has not committed, and never can, so that it is no longer in doubt and no
        evidence of it is searched any more."""
        self._in_doubt.discard(self.current.id)
        self.exclude([self.current.id])

    def confirm_absent(self) -> None:
        """Records that none of our attempts in doubt has committed, as a read showed after every compare-and-swap that
        was sent had been refused: none of them can apply any more."""
        self._excluded |= self._in_doubt
        self._in_doubt.clear()

    def exclude(self, attempts: Iterable[str]) -> None:
        """Records that these attempts have not committed, and no longer can, because they were fenced or abandoned, so
        that no evidence of them is searched any more."""
        self._excluded.update(attempts)

    @property
    def any_in_doubt(self) -> bool:
        """Whether one of our own attempts may have committed, or may yet."""
        return bool(self._in_doubt)

    @property
    def alone_with_key(self) -> bool:
        """Whether no other sending of the request can have committed: slots of the key were read or put, and every
        attempt of another sending in them was fenced. False without a key."""
        return bool(self._guard.slots) and self.known().keys() <= self._session.request.attempts

    @property
    def declared(self) -> WriteSet | None:
        """The write set that the current attempt declared: the one in its slot, or, without a slot, the one that was
        announced before the first writes; None if neither is there yet."""
        return self._announced if self.claimed is None else self.claimed

    @property
    def tried(self) -> Mapping[str, WriteSet]:
        """Our own attempts whose compare-and-swap was sent, by id, each with the write set of the last try."""
        return self._tried

    def known(self) -> dict[str, WriteSet]:
        """Returns the write set of every attempt that may have committed something for this request, by the attempt's
        id: those in the slots that were read, and our own that were sent, without the excluded ones. A slot has
        sequence numbers as old as the cache of the process that put it; the write sets of our own tries have newer
        ones."""
        known = {slot.attempt: slot.write_set for slot in self._guard.slots} | self._tried
        return {attempt: write_set for attempt, write_set in known.items() if attempt not in self._excluded}
