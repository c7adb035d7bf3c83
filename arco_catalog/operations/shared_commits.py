"""Registry commits that requests of one process share (docs/decisions/0013-shared-registry-commits.md).

HEAD takes one compare-and-swap at a time, so requests beside each other would lose all but one of theirs. Here they
wait while one is under way, and then go together: the changes of all that wait are planned one after the other on the
newest HEAD, each on what those before it left, and become one registry commit.

No verdict is given here. Who can't be part of a commit as it was planned is told that its compare-and-swap was refused,
and looks for itself, as after any other.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.concurrency import gather
from arco_catalog.operations.lookup import look_up
from arco_catalog.operations.registry_commit import RegistryCommit
from arco_catalog.state.access import State
from arco_catalog.state.index import Edits, Growing
from arco_catalog.state.registry import Head, Operation
from storage_backends import Applied, Refused, StoreError, StoreUnavailable

MOST = 128
"""Requests that share one commit, at most."""
MOST_BYTES = 256 << 10
"""What they may add to HEAD together, roughly: every request reads it."""
PATIENCE_SECONDS = 2.0
"""How long one request may have the turn before others go without it: its call to the store may hang."""
ROUNDS = 4
"""How often one request leads in vain, because other processes move HEAD, before it looks for itself."""

UNSAID = "The store did not answer in time, so it is unknown whether the change was made"
ALONE = Refused(None, 0)
"""For who must decide alone: nothing of it was sent."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one request puts into a registry commit."""

    edits: Edits
    operation: Operation

    @property
    def size(self) -> int:
        """Bytes that it adds to HEAD, roughly."""
        return len(dumps([dict(self.edits), self.operation.to_json()]))


@dataclass(eq=False)
class Member:
    """A request that waits to become part of a registry commit; all that must be durable before is.

    `part` plans it on a HEAD: None if it would be anything else than it was. `stands` sees, given a HEAD, that nobody
    overtook it and that it has not been done (design.md 6.2, rule 1). `seconds_left` is what its deadline leaves.
    """

    state: State
    part: Callable[[Head], Part | None]
    stands: Callable[[Head], Awaitable[bool]]
    seconds_left: Callable[[], float]
    taken: bool = False
    """Whether somebody is making a commit of its part: what it brought is in that one's hands."""
    sent: "Group | None" = None
    """What was sent with it, and has no definite outcome yet."""
    outcome: Applied | Refused | None = None
    error: Exception | None = None

    @property
    def waits(self) -> bool:
        """Whether nothing became of it yet."""
        return self.sent is None and self.outcome is None and self.error is None


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A commit, and those who are part of it."""

    commit: RegistryCommit
    members: Sequence[Member]

    def end(self, outcome: Applied | Refused | None) -> None:
        """Tells every member; None: they wait again."""
        for member in self.members:
            if member.sent is self:
                member.sent, member.outcome = None, outcome


@contextmanager
def _taken(members: Iterable[Member]) -> Iterator[None]:
    for member in members:
        member.taken = True
    try:
        yield
    finally:
        for member in members:
            member.taken = False


class SharedCommits:
    """The registry commits of one catalog in one process. For one event loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        """Held by who moves HEAD. Nothing rests on it but speed: HEAD itself admits only one."""
        self._there: dict[Member, None] = {}
        """Those that wait, the first first."""
        self._turns = 0
        self._preparing = 0
        self._newest_known = False
        """Whether the HEAD that we remember is the one that we made last."""

    @property
    def crowded(self) -> bool:
        """Whether others move HEAD, or are about to: a commit of one's own would be written in vain."""
        return self._preparing > 0 or self._turn.locked() or bool(self._there)

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """While a commit of one's own is written."""
        self._preparing += 1
        try:
            yield
        finally:
            self._preparing -= 1

    async def commit(self, member: Member, own: RegistryCommit | None) -> Applied | Refused:
        """Makes a request's change part of HEAD: by its own commit if it wrote one and is alone, else with others.

        Refused: its own id may be in HEAD all the same, as after any compare-and-swap. Raises `CommitStateUnknown` if
        time runs out while the outcome is unknown, `StoreUnavailable` if nothing was sent, and what `stands` does.
        """
        if own is not None and not self._turn.locked() and not self._there:
            async with self.turn(member.seconds_left):
                return await self._send(own, member.state)
        self._there[member] = None
        try:
            async with self.turn(member.seconds_left, lambda: not member.taken and member.sent is None):
                await self._serve(member)
        except StoreError as error:
            if member.sent is not None:
                raise CommitStateUnknown(UNSAID) from error
            if member.waits:
                raise
        finally:
            del self._there[member]
        if member.error is not None:
            raise member.error
        return member.outcome or ALONE

    @asynccontextmanager
    async def turn(
        self, seconds_left: Callable[[], float], impatient: Callable[[], bool] = lambda: True
    ) -> AsyncIterator[None]:
        """While one registry commit is made, this process makes no others. Raises `StoreUnavailable` if it is never
        one's turn."""
        mine = await self._take_turn(seconds_left, impatient)
        try:
            yield
        finally:
            if mine:
                self._turn.release()

    async def _take_turn(self, seconds_left: Callable[[], float], impatient: Callable[[], bool]) -> bool:
        """Takes the turn. False: whoever has it stands still, and the impatient go anyway. Raises `StoreUnavailable`
        when time runs out."""
        while True:
            turns = self._turns
            try:
                async with asyncio.timeout(max(0.0, min(PATIENCE_SECONDS, seconds_left()))):
                    await self._turn.acquire()
            except TimeoutError as error:
                if seconds_left() <= 0:
                    raise StoreUnavailable("the request's deadline has passed") from error
                if turns == self._turns and impatient():
                    return False
            else:
                self._turns += 1
                return True

    async def _serve(self, member: Member) -> None:
        """Others have done it all, have left it half done, or it leads."""
        if member.sent is not None:
            # Who sent it gave up, or died, before the outcome was definite: the very same again.
            group = member.sent
            group.end(await self._send(group.commit, member.state))
        elif member.waits and not member.taken:
            # In its own hands until it ends: a refusal that it is told means that nothing of it is under way.
            with _taken([member]):
                await self._lead(member)

    async def _lead(self, leader: Member) -> None:
        """Commits for all that wait, as often as it takes to come before other processes."""
        for _ in range(ROUNDS):
            head = await self._newest(leader.state)
            parts = self._parts(head, leader)
            if leader not in parts:
                return
            with _taken([member for member in parts if member is not leader]):
                outcome = await self._commit_for(leader.state, head, parts)
            if not leader.waits:
                return
            if outcome is not None:
                await leader.state.pause()
        leader.outcome = ALONE

    async def _commit_for(self, state: State, head: Head, parts: Mapping[Member, Part]) -> Applied | Refused | None:
        """Makes one commit of all parts; None if one of the members must not be sent."""
        edits: dict[str, JsonObject | None] = {}
        for part in parts.values():
            edits |= part.edits
        operations = [part.operation for part in parts.values()]
        commit = await look_up(state, partial(RegistryCommit, state, head, edits, operations))
        await gather(commit.put(), *(self._see(member, head) for member in parts))
        if not all(self._may_be_sent(member) for member in parts):
            return None
        group = Group(commit, list(parts))
        for member in group.members:
            member.sent = group
        outcome = await self._send(commit, state)
        group.end(outcome if isinstance(outcome, Applied) else None)
        return outcome

    async def _newest(self, state: State) -> Head:
        """HEAD to build on. One that is not the newest any more costs a compare-and-swap, and nothing else."""
        known = state.cached_head() if self._newest_known else None
        return known or await state.head()

    def _parts(self, head: Head, leader: Member) -> dict[Member, Part]:
        """Everybody's part, each planned on what those before it leave; the leader's comes first."""
        parts: dict[Member, Part] = {}
        size, index = 0, Growing(head.index)
        for member in chain([leader], (other for other in self._there if other is not leader)):
            if not member.waits or (member.taken and member is not leader):
                continue
            if len(parts) == MOST or size > MOST_BYTES:
                break
            try:
                part = member.part(replace(head, index=index, place=len(parts)))
            except Exception as error:  # what goes wrong with one is told to that one
                member.error = error
                continue
            if part is None:
                member.outcome = ALONE
                continue
            parts[member] = part
            size += part.size
            index.add(part.edits)
        return parts

    @staticmethod
    async def _see(member: Member, head: Head) -> None:
        """Rule 1, for a HEAD that was read after the member planned: beside the writing of the commit."""
        try:
            stands = await member.stands(head)
        except Exception as error:  # what goes wrong with one is told to that one
            member.error = error
        else:
            member.outcome = None if stands else ALONE

    def _may_be_sent(self, member: Member) -> bool:
        """Whether a member may be sent now: it has not left, was not overtaken, and has time (rule 5)."""
        if member.waits and member.seconds_left() <= 0:
            member.error = StoreUnavailable("the request's deadline has passed")
        return member.waits and member in self._there

    async def _send(self, commit: RegistryCommit, state: State) -> Applied | Refused:
        """The compare-and-swap."""
        self._newest_known = False
        outcome = await commit.swap(state)
        self._newest_known = isinstance(outcome, Applied)
        return outcome
