"""A commit to the registry through a proposal, for a request that lost the compare-and-swap of HEAD to another process,
or that meets proposals of others (docs/design/registry.md#proposals).

The request stores its planned change as a proposal. Then it looks at HEAD until a registry commit, of whichever
process, has committed or cancelled its attempt. One of the waiting requests leads: it makes one registry commit for the
proposals that still hold and fit, and cancels the ones that do not hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.planning.proposals import Capacity, Leading, lead
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.group_commit import MAX_BYTES, MAX_REQUESTS
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.protocol.mutation import AttemptAborted
from arco_catalog.protocol.prepared_commit import PreparedCommit
from arco_catalog.state.access import State
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.proposal import Proposal
from arco_catalog.state.proposal_store import MAX_AGE_MS, NO_ENTROPY, ProposalStore
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.runtime import ulid_of
from storage_backends import Applied, StoreError, StoreUnavailable, Version
from storage_backends.backoff import pause_s, poll_pause_s

CAPACITY = Capacity(MAX_REQUESTS, MAX_BYTES)
"""How much one registry commit may take in."""
OUTCOME_MS = 1_000
"""How much time a leader's compare-and-swap must have until the leader's own deadline."""
MIN_LOOK_SECONDS, MAX_LOOK_SECONDS = 0.02, 1.0
"""How long a request waits between two looks at HEAD, at least and at most."""
LOOK_GROWTH = 1.25
"""By how much that time grows with each look at a HEAD that has not moved."""
MIN_PATIENCE_MS, MAX_PATIENCE_MS = 1_000, 3_000
"""How long HEAD may stand still before a request leads that is not the first of those it found waiting: the first one
may be dead. The time is drawn, so that not all of them lead at once."""

MAX_THROTTLED_MS = 2_000
"""How long a leader lets HEAD stand, at most, after the store throttled a write of it."""

NO_VERSION = Version("")


class ProposedCommit:
    """The commit of one request's change through a proposal. It is used once."""

    def __init__(self, session: Session, proposal: Proposal, head: RegistryState) -> None:
        """Makes the commit of a proposal that was planned on `head`."""
        self._session = session
        self._state = session.state
        self._store = ProposalStore(session.state)
        self._stored = [proposal]
        """The proposal, and the same with later bases."""
        self._head = head
        """The HEAD that was read last: up to this one the attempt has neither been committed nor cancelled."""
        self._bell = session.catalog.caches.bell
        self._is_limited = session.catalog.caches.write_interval_ms > 0
        self._look_s = MAX_LOOK_SECONDS
        """How long it waits, roughly, between two looks at HEAD: as long as a write took."""
        self._throttled_ms = 0
        """How long it lets HEAD stand after the store throttled a write of it."""
        self._read: dict[str, Proposal] = {}
        """The proposals that were read, by their keys."""
        self._unreadable: set[str] = set()
        """The keys of proposals that could not be parsed."""
        self._before: set[str] = set()
        """The attempts whose proposals were stored, and have smaller ids, and whose end has not been seen. Those whose
        proposals proved to be unreadable are left out: only their own processes can end them."""

    async def run(self) -> Applied:
        """Stores the proposal, and waits until its attempt is committed, by itself or by another process. Raises
        `AttemptAborted` if it can never commit: it was cancelled, or an attempt that it cancels is committed. Whether
        it is committed or can't be, the proposal is then deleted in the background. Raises `StoreError`, also past the
        deadline, `SegmentGone` and `CommitStateUnknown` while it may still be committed: the proposal is left."""
        is_committed = await self._wait(await self._begin())
        await self._session.run_in_background(self._delete())
        if not is_committed:
            raise AttemptAborted
        return Applied(self._head.version or NO_VERSION, self._session.now_ms())

    async def _begin(self) -> Mapping[str, str] | None:
        """Stores the proposal, rings the bell concurrently, and then lists all proposals. Returns their attempts by the
        keys, and records those that go before it. Where the store limits how often an object is written, it stores,
        then lists, and only the first of those who wait then rings; it returns None."""
        session = self._session
        sent_ms = session.runtime.boot_ms()
        stored = self._store.put(self._stored[0])
        await (stored if self._is_limited else gather(stored, self._ring()))
        self._look_s = min(MAX_LOOK_SECONDS, max(MIN_LOOK_SECONDS, (session.runtime.boot_ms() - sent_ms) / 1000))
        attempts = await self._list()
        self._before = self._living_before(self._head, attempts)
        if not self._is_limited:
            return attempts
        await self._ring()
        return None

    def _living_before(self, head: RegistryState, attempts: Mapping[str, str]) -> set[str]:
        """Returns the attempts with smaller ids that have not ended by this HEAD, and are so young that a process may
        still wait for them. Proposals that can't be parsed do not count."""
        own, session = self._stored[0].attempt, self._session
        living = ulid_of(session.now_ms() - session.settings.request_ms, NO_ENTROPY)
        return {
            each
            for key, each in attempts.items()
            if living <= each < own and key not in self._unreadable and not _has_ended(head, each)
        }

    async def _wait(self, attempts: Mapping[str, str] | None) -> bool:
        """Waits until the proposed attempt has ended, and, when it is this request's turn, leads: commits the stored
        proposals that still hold, and cancels others. Returns whether the attempt is committed; False if it is
        cancelled, or can't commit any more. `attempts` are those of the proposals that were there after the bell was
        read, by key; None to list them again. Raises as `run` does."""
        runtime = self._session.runtime
        patience_ms = pause_s(runtime.random(), MAX_PATIENCE_MS, MIN_PATIENCE_MS)
        rested_ms, look_s = self._rested_ms(), self._look_s
        while True:
            must_wait, rests_ms = True, rested_ms - runtime.boot_ms()
            if rests_ms <= (-patience_ms if self._before else 0):
                patience_ms = 2 * patience_ms if self._before else patience_ms
                must_wait = not await self._lead(attempts)
                rested_ms = runtime.boot_ms() + self._throttled_ms
            if must_wait:
                await runtime.sleep(poll_pause_s(runtime.random(), max(look_s, rests_ms / 3_000)))
            attempts, before = None, self._head.version
            is_committed = await self._look()
            if is_committed is not None:
                return is_committed
            self._check_time()
            if self._head.version != before:
                rested_ms, look_s = self._rested_ms(), self._look_s
                await self._propose_again_if_forgotten()
                await self._ring()
            elif rests_ms <= 0:
                look_s = min(MAX_LOOK_SECONDS, LOOK_GROWTH * look_s)

    def _rested_ms(self) -> int:
        """Returns the time from which HEAD may be swapped, by the clock since boot: now, unless the store limits how
        often."""
        return self._session.runtime.boot_ms() + self._state.rest_ms(self._head)

    async def _look(self) -> bool | None:
        """Reads HEAD, unless this process has just read it, and returns whether the proposed attempt is committed:
        False if it can't be any more, None if neither is seen, or HEAD has not moved since the last look. Forgets the
        attempts before it that have ended."""
        since, attempt = self._head.sequence, self._stored[0].attempt
        head = self._state.cached_head(int(self._look_s * 500)) or await self._state.head()
        if head.version == self._head.version:
            return None
        self._before = {each for each in self._before if not _has_ended(head, each)}
        found = await find_end(self._state, head, attempt, since)
        if found is None and await self._is_void(head, since):
            found = False
        self._head = head
        return found

    async def _is_void(self, head: RegistryState, since: int) -> bool:
        """Whether an attempt that the operation cancels is committed by this HEAD, after the sequence number `since`:
        no HEAD from there on can take the proposal in."""
        for cancelled in self._stored[0].operation.cancels:
            if await find_end(self._state, head, cancelled, since):
                return True
        return False

    def _check_time(self) -> None:
        """Raises `StoreUnavailable` past the deadline, and once all processes leave the proposal because of its age: a
        task's lease may end much later."""
        session = self._session
        session.check_deadline()
        if session.now_ms() > self._stored[0].written_ms + session.settings.request_ms:
            raise StoreUnavailable("the proposed change of the registry was not committed in time, and may still be")

    async def _propose_again_if_forgotten(self) -> None:
        """Stores the proposal with HEAD as its base if HEAD no longer lists all commits since the last base: others
        could not know whether the attempt has ended."""
        if not self._head.remembers(self._stored[-1].base):
            again = replace(self._stored[-1], base=self._head.sequence)
            self._stored.append(again)
            await self._store.put(again)

    async def _ring(self) -> None:
        """Rings the bell, unless it has rung since the last registry commit that took its id, or another request goes
        before this one and the store limits how often it is written."""
        if not self._bell.has_rung(self._head.bell) and not (self._is_limited and self._before):
            self._bell = await self._state.ring(self._bell)

    # Leading.

    async def _lead(self, attempts: Mapping[str, str] | None) -> bool:
        """Makes one registry commit that takes in the proposals that still hold, up to `CAPACITY`, and cancels those
        that do not: those of these `attempts` on the HEAD that was read last, or, if they are None, those of now on the
        HEAD of now. Returns whether it has sent one; another process may have moved HEAD first. False if there was
        nothing to do, or attempts with smaller ids were found that must lead first."""
        session, state = self._session, self._state
        async with session.lock_registry():
            if attempts is not None:
                head = self._head
            else:
                head, attempts = await self._read_again()
                if not self._before:  # it leads in turn: others, with smaller ids, may have been stored since
                    self._before = self._living_before(head, attempts)
                    if self._before:
                        return False
            read_ms = session.now_ms()
            proposals = await self._proposals(head, attempts)
            steps = lead(head, proposals, CAPACITY, read_ms, session.settings.request_ms)
            leading = await carry_out(state, head.index, steps)
            operations = [*leading.operations, *_cancellations(leading, session.runtime.ulid())]
            if not operations:
                return False
            # While several processes wait, the bell stays rung: others propose instead of swapping HEAD before them.
            considered = head.with_bell(self._bell.id) if len(leading.operations) <= 1 and not leading.is_full else head
            commit = await PreparedCommit.of(state, considered, leading.changes, operations)
            await commit.put()
            session.check_deadline(OUTCOME_MS)
            await self._swap(commit)
            return True

    async def _swap(self, commit: PreparedCommit) -> None:
        """Swaps HEAD, once; a swap that another process's move of HEAD refused is no error. If the store throttles it,
        this counts a conflict, and the leader lets HEAD stand for a time that doubles each time, up to
        `MAX_THROTTLED_MS`."""
        try:
            await commit.swap(may_propose=True)
        except StoreUnavailable:  # it was not applied: another leader may succeed, and else this one tries again
            self._session.stats.conflicts += 1
            self._throttled_ms = min(MAX_THROTTLED_MS, 2 * self._throttled_ms or int(1000 * self._look_s))
        else:
            self._throttled_ms = 0

    async def _read_again(self) -> tuple[RegistryState, Mapping[str, str]]:
        """Reads the bell, then HEAD and the list of proposals. Returns HEAD, and the attempts of the stored proposals
        by the keys of these. A proposal that is written after the list rings the bell."""
        self._bell = await self._state.bell()
        return await gather(self._state.head(), self._list())

    async def _list(self) -> Mapping[str, str]:
        """Lists the proposals that are stored and at most `MAX_AGE_MS` old: their attempts by their keys."""
        return await self._store.attempts(self._session.now_ms() - MAX_AGE_MS)

    async def _proposals(self, head: RegistryState, attempts: Mapping[str, str]) -> Sequence[Proposal]:
        """Returns the proposals whose attempts have not ended by this HEAD, and those of this request; reads the ones
        that were not read before, concurrently, and forgets the ones of attempts that have ended. Proposals that no
        longer exist or can't be parsed are left out."""
        waiting = {
            key: each for key, each in attempts.items() if key not in self._unreadable and not _has_ended(head, each)
        }
        self._read = {key: each for key, each in self._read.items() if key in waiting}
        await gather(*(self._fetch(key) for key in waiting if key not in self._read))
        self._before -= {attempt for key, attempt in waiting.items() if key in self._unreadable}
        return [*self._read.values(), *self._stored]

    async def _fetch(self, key: str) -> None:
        """Reads the stored proposal with this key, and keeps it for the commit. One that no longer exists is left out,
        and so is one that can't be parsed, which is logged and counted."""
        try:
            found = await self._store.read(key)
        except InternalError as error:
            self._unreadable.add(key)
            self._session.note_failed_write(f"the read of the proposal {key}, which this request was to commit", error)
            return
        if found is not None:
            self._read[key] = found

    async def _delete(self) -> None:
        """Deletes the proposals of the attempt, at best effort: a collection deletes what is left."""
        try:
            await self._store.delete(self._stored)
        except StoreError as error:
            self._session.note_failed_write(
                f"the deletion of the proposals of attempt {self._stored[0].attempt}", error
            )


def _has_ended(head: RegistryState, attempt: str) -> bool:
    """Whether HEAD lists an attempt as committed or cancelled."""
    return head.commit_of(attempt) is not None or head.is_cancelled(attempt)


def _cancellations(leading: Leading, operation: str) -> Sequence[Operation]:
    """Returns the operation, with this id, that cancels what no longer holds; nothing if there is nothing to cancel."""
    return [Operation(operation, "cancel", {}, None, cancels=leading.cancels)] if leading.cancels else []


async def find_end(state: State, head: CommitRecord, attempt: str, since: int) -> bool | None:
    """Returns whether an attempt is committed, False if it is cancelled, and None if it is neither by this HEAD. It was
    neither at the sequence number `since`. Reads history backwards if HEAD does not list all commits since. Raises
    `CommitStateUnknown` if these were deleted."""
    while True:
        if head.commit_of(attempt) is not None:
            return True
        if head.is_cancelled(attempt):
            return False
        if head.remembers(since) or head.before is None:
            return None
        head = await state.registry_commit(head.before)
