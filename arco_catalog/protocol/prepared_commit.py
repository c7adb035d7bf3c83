"""A registry commit that follows a HEAD, made in two steps: first the immutable object and new segments, then a
compare-and-swap."""

from collections.abc import Sequence
from contextlib import nullcontext

from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.access import State
from arco_catalog.state.index import Edits
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.segments import Segment
from storage_backends import Applied, PreconditionFailed, StoreUnavailable, Version
from storage_backends.backoff import limit_attempts

SWAP_ATTEMPTS = 2
"""How often a backend attempts the compare-and-swap of a request that may propose. The second attempt is for a conflict
with a write that was under way."""


class PreparedCommit:
    """A registry commit that follows a HEAD. `put` writes its object and segments, and `swap` makes it HEAD."""

    def __init__(self, state: State, successor: RegistryState, expected: Version | None) -> None:
        self._state = state
        self._successor = successor
        self._expected = expected
        self.must_propose = False
        """Whether proposals of other processes wait, so that the changes must be proposed instead of a swap."""

    @classmethod
    async def of(
        cls, state: State, head: RegistryState, edits: Edits, operations: Sequence[Operation]
    ) -> "PreparedCommit":
        """Returns the commit of these edits and operations on a HEAD, not yet written. If it spills, the segments that
        it rewrites are read. Raises `SegmentGone`."""
        successor = await carry_out(state, head.index, state.successor(head, edits, operations))
        return cls(state, successor, head.version)

    @property
    def segments(self) -> Sequence[Segment]:
        """The new segments of the registry's index that this commit must write before it becomes HEAD."""
        return self._successor.spilled

    def is_in(self, head: RegistryState) -> bool:
        """Whether `head` is this commit, or lists it among its recent ones."""
        return any(commit == self._successor.id for commit, _ in head.recent())

    async def put(self) -> None:
        """Writes the immutable object of the registry commit, and the new segments of the index. All of them must be
        there before the commit is HEAD."""
        segments = [self._state.write_segment(segment) for segment in self.segments]
        await gather(self._put_commit(), *segments)

    async def put_and_read_bell(self) -> None:
        """Writes as `put` does, and concurrently sets `must_propose` by the bell; a registry of a version without
        proposals has none."""
        if not self._successor.allows_cancellations:
            return await self.put()
        bell, _ = await gather(self._state.bell(), self.put())
        self.must_propose = bell.has_rung(self._successor.bell)

    async def _put_commit(self) -> None:
        """Creates the object of the prepared registry commit."""
        key = self._state.paths.registry_commit(str(self._successor.id))
        await self._state.create(key, self._successor.commit_body)

    async def try_swap(self) -> bool:
        """Makes the commit HEAD, and returns True if that applied, False if HEAD had moved, perhaps to this commit.
        In a registry with proposals it also returns False, so that the changes are proposed, if proposals wait, or
        instead of any `StoreUnavailable`, which stores raise that limit how often one object is written. Raises as
        `State.swap` does otherwise."""
        if self.must_propose:
            return False
        try:
            return isinstance(await self.swap(may_propose=True), Applied)
        except StoreUnavailable:
            if not self._successor.allows_cancellations:
                raise
            return False

    async def swap(self, state: State | None = None, *, may_propose: bool = False) -> Applied | PreconditionFailed:
        """Sends the compare-and-swap that makes this commit HEAD, by the store of `state` if it is given. Returns
        `PreconditionFailed` if HEAD had moved, perhaps to this very commit. Raises as `State.swap` does;
        `StoreUnavailable` soon if the store throttles the write, and the caller `may_propose` in a registry with
        proposals."""
        is_brief = may_propose and self._successor.allows_cancellations
        with limit_attempts(SWAP_ATTEMPTS) if is_brief else nullcontext():
            return await (state or self._state).move_head(self._successor, self._expected)
