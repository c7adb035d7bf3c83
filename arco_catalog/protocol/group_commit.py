"""Group commit: requests of one process share registry commits (docs/decisions/0013-group-commit.md).

HEAD takes one compare-and-swap at a time, so of concurrent requests all but one would lose theirs. Here they queue
while one is under way. Then one of them, the leader, replans the changes of all that wait on the newest HEAD, each
on what those before it left, and makes one registry commit of them.

No request is refused here. A request whose replanned change differs gets the outcome of a refused compare-and-swap,
and falls back to the driver, which reads again as after any lost compare-and-swap.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from itertools import chain

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.prepared_commit import PreparedCommit
from arco_catalog.state.access import State
from arco_catalog.state.bell import Bell
from arco_catalog.state.index import Edits, Growing
from arco_catalog.state.needs import Needs
from arco_catalog.state.registry import Operation, RegistryState
from storage_backends import Applied, PreconditionFailed, StoreError, StoreUnavailable
from storage_backends.lazy_dataclass import dataclass

MAX_REQUESTS = 128
"""How many requests share one commit at most."""
MAX_BYTES = 256 << 10
"""How many bytes the requests of one commit may add to HEAD together, roughly: every request reads HEAD."""
LOCK_TIMEOUT_SECONDS = 2.0
"""How long one request may hold the lock before others go on without it: its call to the store may hang."""
MAX_ROUNDS = 4
"""How often one request leads in vain, because other processes move HEAD, before it falls back to the driver."""

OUTCOME_UNKNOWN = (
    "Whether the change was made is unknown: the object store did not answer before the request's deadline. Look "
    "whether the change is there before you repeat it"
)
FALL_BACK = PreconditionFailed(None, 0)
"""The outcome of a request that must fall back to the driver: nothing of it was sent."""


MUST_PROPOSE = PreconditionFailed(None, 0)
"""The outcome of a request that must propose its change to the process that leads: nothing of it was sent."""


@dataclass(frozen=True, slots=True)
class Replan:
    """One request's change of the registry, planned again on the HEAD on which a shared registry commit is built: the
    edits of the index, the operation for the history, and the lookups in the index on which both depend."""

    edits: Edits
    operation: Operation
    lookups: Sequence[Needs]

    @property
    def size(self) -> int:
        """Roughly the bytes that the replanned change adds to HEAD: the edits and the operation."""
        return len(dumps([dict(self.edits), self.operation.to_json()]))


@dataclass(eq=False)
class PendingCommit:
    """A request that waits to join a registry commit. Everything that must be durable before the commit is durable.

    `replan` plans it again on a HEAD; None if that needs a read, is not seen to be allowed, or gives a different
    result. `revalidate` checks, given a HEAD, that no other sending of the request superseded it and that none of its
    attempts committed (docs/design/commit.md#rule-1). `seconds_left` is the time until its deadline.
    """

    state: State
    replan: Callable[[RegistryState], Replan | None]
    revalidate: Callable[[RegistryState], Awaitable[bool]]
    seconds_left: Callable[[], float]
    in_batch: bool = False
    """Whether a leader is making a commit that holds it: until that ends it must not give up."""
    sent: "Batch | None" = None
    """The batch that was sent with it and has no definite outcome yet."""
    outcome: Applied | PreconditionFailed | None = None
    error: Exception | None = None

    @property
    def is_pending(self) -> bool:
        """Whether the request still has to be sent: it has neither outcome nor error, and no batch that was sent with
        it has an unknown outcome."""
        return self.sent is None and self.outcome is None and self.error is None


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """A registry commit that is to make the changes of all requests in `members`, which waited for one."""

    commit: PreparedCommit
    members: Sequence[PendingCommit]

    def resolve(self, outcome: Applied | PreconditionFailed | None) -> None:
        """Gives the outcome of the batch to all its requests that were not sent with another batch since; with None
        these requests wait to be sent again."""
        for member in self.members:
            if member.sent is self:
                member.sent, member.outcome = None, outcome


async def _read_bell(state: State, head: RegistryState) -> Bell:
    """Reads the bell of the registry; returns one that has never rung if the registry is of a version without
    proposals."""
    return await state.bell() if head.allows_cancellations else Bell()


@contextmanager
def _in_batch(members: Iterable[PendingCommit]) -> Iterator[None]:
    """Returns a context during which these requests are marked as being in a batch that a leader commits."""
    for member in members:
        member.in_batch = True
    try:
        yield
    finally:
        for member in members:
            member.in_batch = False


class GroupCommitter:
    """Makes the registry commits of the requests that change one catalog in one process: shared ones where requests
    wait. It must be used on one event loop."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        """Held while a request moves HEAD. It is advisory: the compare-and-swap of HEAD admits only one."""
        self._queue: dict[PendingCommit, None] = {}
        """The requests that wait, in the order in which they came."""
        self._acquisitions = 0
        self._preparing = 0
        self._made_cached_head = False
        """Whether the cached HEAD is the one that this process made last."""

    @property
    def contended(self) -> bool:
        """Whether other requests move HEAD or are about to: a commit object of one's own would be written in vain."""
        return self._preparing > 0 or self._lock.locked() or bool(self._queue)

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Returns a context in which a request writes a commit object of its own: `contended` is true meanwhile."""
        self._preparing += 1
        try:
            yield
        finally:
            self._preparing -= 1

    async def commit(self, member: PendingCommit, own: PreparedCommit | None) -> Applied | PreconditionFailed:
        """Commits a request's change: by its own commit if it wrote one and no other request holds the lock or waits,
        else in a batch that it leads or joins.

        Returns `FALL_BACK` if the request must fall back to the driver, and another `PreconditionFailed` if its commit
        lost or the request must propose its change; its own id may be in HEAD nevertheless, as after any
        compare-and-swap. Raises `CommitStateUnknown` if the outcome is unknown, as at the deadline, and if the
        store failed after a batch with the request was sent; `StoreError` if nothing was applied; and what `replan` and
        `revalidate` raise.
        """
        if own is not None and not self._lock.locked() and not self._queue:
            async with self.lock(member.seconds_left):
                return await self._send(own, member.state)
        self._queue[member] = None
        try:
            async with self.lock(member.seconds_left, lambda: not member.in_batch and member.sent is None):
                await self._resend_or_lead(member)
        except StoreError as error:
            if member.sent is not None:
                raise CommitStateUnknown(OUTCOME_UNKNOWN) from error
            if member.is_pending:
                raise
        finally:
            del self._queue[member]
        if member.error is not None:
            raise member.error
        return member.outcome or FALL_BACK

    @asynccontextmanager
    async def lock(
        self, seconds_left: Callable[[], float], may_skip: Callable[[], bool] = lambda: True
    ) -> AsyncIterator[None]:
        """Returns a context that holds the advisory lock of HEAD, so that this process makes one registry commit at a
        time. A caller for which `may_skip` is true goes on without the lock if one holder keeps it for
        `LOCK_TIMEOUT_SECONDS`. Raises `StoreUnavailable` when the deadline passes before that."""
        acquired = await self._acquire(seconds_left, may_skip)
        try:
            yield
        finally:
            if acquired:
                self._lock.release()

    async def _acquire(self, seconds_left: Callable[[], float], may_skip: Callable[[], bool]) -> bool:
        """Acquires the advisory lock of HEAD, and returns whether it did: False if one holder kept it for too long, and
        this caller may skip it. While others acquire and release it, this caller waits on. Raises `StoreUnavailable`
        when the deadline passes."""
        while True:
            seen = self._acquisitions
            try:
                async with asyncio.timeout(max(0.0, min(LOCK_TIMEOUT_SECONDS, seconds_left()))):
                    await self._lock.acquire()
            except TimeoutError as error:
                if seconds_left() <= 0:
                    raise StoreUnavailable(
                        "the deadline of the request or task has passed while it waited for other changes of the "
                        "registry"
                    ) from error
                if seen == self._acquisitions and may_skip():
                    return False
            else:
                self._acquisitions += 1
                return True

    async def _resend_or_lead(self, member: PendingCommit) -> None:
        """Sends the batch with this request again if its leader has left, or leads a new one; does nothing if the
        request has an outcome or error, or is in a batch that a leader is making."""
        if member.sent is not None:
            # Its leader gave up, or was cancelled, before the outcome was definite: send the identical write again.
            batch = member.sent
            batch.resolve(await self._send(batch.commit, member.state, may_propose=False))
        elif member.is_pending and not member.in_batch:
            # No other leader takes it meanwhile: if it is refused, nothing of it may still be under way.
            with _in_batch([member]):
                await self._lead(member)

    async def _lead(self, leader: PendingCommit) -> None:
        """Makes a commit for the leader and the other requests that wait, and tries once more while other processes
        win, at most `MAX_ROUNDS` times. It returns as soon as the leader has an outcome or error. After the last round
        the leader's request alone falls back to the driver; one of the others leads next. If HEAD must rest, and this
        process did not make it, the requests must propose their changes instead."""
        for _ in range(MAX_ROUNDS):
            is_cached = self._made_cached_head
            head = await self._base_head(leader.state)
            rest_ms = leader.state.rest_ms(head)
            if rest_ms and is_cached:
                await leader.state.rest(rest_ms)
            replans = self._replan_all(head, leader)
            if leader not in replans:
                return
            if rest_ms and not is_cached:  # other processes wait for HEAD, too
                for member in replans:
                    member.outcome = MUST_PROPOSE
                return
            with _in_batch([member for member in replans if member is not leader]):
                may_propose = head.allows_cancellations and not is_cached
                outcome = await self._commit_batch(leader.state, head, replans, may_propose=may_propose)
            if not leader.is_pending:
                return
            if outcome is not None:
                await leader.state.pause()
        leader.outcome = FALL_BACK

    async def _commit_batch(
        self, state: State, head: RegistryState, replans: Mapping[PendingCommit, Replan], *, may_propose: bool
    ) -> Applied | PreconditionFailed | None:
        """Makes one commit of all replanned changes, and returns the outcome; None if nothing was sent. The requests
        get that outcome if it applied, or if they may propose their changes; otherwise they wait again. They must
        propose if the proposals of other processes wait (then it returns None), or if the store is unavailable and HEAD
        allows proposals (it returns `MUST_PROPOSE`); where HEAD allows none, it raises `StoreUnavailable`."""
        edits: dict[str, JsonObject | None] = {}
        for replan in replans.values():
            edits |= replan.edits
        operations = [replan.operation for replan in replans.values()]
        commit = await PreparedCommit.of(state, head, edits, operations)
        first_writes = gather(commit.put(), *(self._revalidate(member, head) for member in replans))
        bell, _ = await gather(_read_bell(state, head), first_writes)
        if bell.has_rung(head.bell):
            for member in replans:
                member.outcome = member.outcome or MUST_PROPOSE
            return None
        if not all(self._may_be_sent(member) for member in replans):
            return None
        batch = Batch(commit, list(replans))
        for member in batch.members:
            member.sent = batch
        try:
            outcome = await self._send(commit, state)
        except StoreUnavailable:  # it was not applied: the store may limit how often HEAD is written
            if not head.allows_cancellations:
                raise
            batch.resolve(MUST_PROPOSE)
            return MUST_PROPOSE
        batch.resolve(outcome if may_propose or isinstance(outcome, Applied) else None)
        return outcome

    async def _base_head(self, state: State) -> RegistryState:
        """Returns the HEAD to build on: the cached one if this process made it last, else one read from the store. A
        cached HEAD may be outdated; then the compare-and-swap fails, and the next round tries again."""
        known = state.cached_head() if self._made_cached_head else None
        return known or await state.head()

    def _replan_all(self, head: RegistryState, leader: PendingCommit) -> dict[PendingCommit, Replan]:
        """Returns the replanned changes of the leader and then of the requests that wait, up to the limits of one
        commit, each planned on what the ones before it leave. A request that can't be replanned falls back to the
        driver, and one whose replanning fails gets the error; neither is returned."""
        replans: dict[PendingCommit, Replan] = {}
        size, index = 0, Growing(head.index)
        for member in chain([leader], (other for other in self._queue if other is not leader)):
            if not member.is_pending or (member.in_batch and member is not leader):
                continue
            if len(replans) == MAX_REQUESTS or size > MAX_BYTES:
                break
            try:
                replan = member.replan(replace(head, index=index, place=len(replans)))
            except Exception as error:  # an error of one request is raised to that one alone
                member.error = error
                continue
            if replan is None:
                member.outcome = FALL_BACK
                continue
            replans[member] = replan
            size += replan.size
            index.add(replan.edits)
        return replans

    @staticmethod
    async def _revalidate(member: PendingCommit, head: RegistryState) -> None:
        """Checks, for a HEAD that was read after the member planned, that no other sending of the request superseded it
        and that none of its attempts committed (docs/design/commit.md#rule-1). Stores a failed check as the member's
        outcome, which is None after a good one, and an exception as the member's error."""
        try:
            valid = await member.revalidate(head)
        except Exception as error:  # an error of one request is raised to that one alone
            member.error = error
        else:
            member.outcome = None if valid else FALL_BACK

    def _may_be_sent(self, member: PendingCommit) -> bool:
        """Whether a member may be sent now: it has not left, has no outcome or error, and has time left
        (docs/design/commit.md#rule-5). A member without time left gets the error `StoreUnavailable`."""
        if member.is_pending and member.seconds_left() <= 0:
            member.error = StoreUnavailable("the request's deadline has passed")
        return member.is_pending and member in self._queue

    async def _send(
        self, commit: PreparedCommit, state: State, *, may_propose: bool = True
    ) -> Applied | PreconditionFailed:
        """Sends the compare-and-swap that makes a prepared commit HEAD, as `PreparedCommit.swap` does, and returns the
        outcome. Records whether it applied: only then does the next batch of this process build on the cached HEAD."""
        self._made_cached_head = False
        outcome = await commit.swap(state, may_propose=may_propose)
        self._made_cached_head = isinstance(outcome, Applied)
        return outcome
