"""A registry commit that is to be made on one HEAD: an immutable object and its segments, then a compare-and-swap."""

from collections.abc import Sequence

from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.access import State
from arco_catalog.state.index import Edits
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.segments import Segment
from storage_backends import Applied, PreconditionFailed


class PreparedCommit:
    """Edits and operations on a HEAD, which `put` writes and `swap` makes HEAD. Raises `Unread` where it spills."""

    def __init__(self, state: State, head: RegistryState, edits: Edits, operations: Sequence[Operation]) -> None:
        self._state = state
        self._expected = head.version
        self._successor = state.successor(head, edits, operations)

    @property
    def key(self) -> str:
        """Where it is written."""
        return self._state.paths.registry_commit(str(self._successor.id))

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments that it makes."""
        return self._successor.spilled

    async def put(self) -> None:
        """Writes the immutable commit, and the segments that it makes. All of them must be there before it is HEAD."""
        segments = [self._state.write_segment(segment) for segment in self.segments]
        await gather(self._put_commit(), *segments)

    async def _put_commit(self) -> None:
        await self._state.create(self.key, self._successor.body)

    async def swap(self, state: State | None = None) -> Applied | PreconditionFailed:
        """Makes it HEAD, through any request's store. `PreconditionFailed`: HEAD had moved, perhaps to this very commit
        by our own echo."""
        return await (state or self._state).move_head(self._successor, self._expected)
