"""Registry commits that are no request's own: they lay and settle intents on names, and add locations.

A table that a transaction creates is an intent on its name: the registry's entry carries the transaction, and counts
once that committed (design.md 6.7). Such commits have fresh operation ids, which are evidence of nothing.
"""

from collections.abc import Callable
from functools import partial

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.beside import beside
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.decisions import outcome_of
from arco_catalog.operations.lookup import look_up
from arco_catalog.operations.mutation import Write
from arco_catalog.state.access import State
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.registry import Head, Operation
from arco_catalog.state.segments import Segment
from storage_backends import Applied


async def settle_names(session: Session, transaction: str, rank: str | None = None) -> None:
    """Waits for the decision (or makes it, by lease or rank) and takes the intents out of the registry: entries that
    count, or none. Raises `CommitFailed` if it stays undecided until shortly before our deadline."""
    committed = await outcome_of(session, transaction, rank)
    detail: JsonObject = {"transaction": transaction}
    await change_registry(session, "settle-names", detail, lambda head: settling(head.index, transaction, committed))


def settling(index: Index, transaction: str, committed: bool) -> Edits:
    """Edits that settle a decided transaction's intents. No intent is ever spilled."""
    edits: dict[str, JsonObject | None] = {}
    for key, entry in index.edits.items():
        if entry is not None and entry.get("transaction") == transaction:
            settled = {name: value for name, value in entry.items() if name != "transaction"}
            edits[key] = settled if committed else None
    return edits


def spilled_writes(state: State, successor: Head) -> list[Write]:
    """How to write the segments that a registry commit makes. All of them must be there before it is HEAD."""

    def write(segment: Segment) -> Write:
        return Write(state.paths.index_segment(segment.id), lambda: state.write_segment(segment))

    return [write(segment) for segment in successor.spilled]


class RegistryCommit:
    """A registry commit under a fresh operation id, on one HEAD: written at one time, made HEAD at another. Raises
    `Unread` where it spills."""

    def __init__(self, session: Session, kind: str, detail: JsonObject, head: Head, edits: Edits) -> None:
        self._state = session.state
        self._head = head
        operation = Operation(session.runtime.ulid(), kind, {"principal": session.call.principal, **detail}, None)
        commit = session.runtime.ulid()
        self._successor = head.successor(
            commit=commit,
            at_ms=session.runtime.now_ms(),
            edits=edits,
            operations=[operation],
            spilling=session.state.spilling,
        )
        self.key = session.state.paths.registry_commit(commit)

    async def put(self) -> None:
        """Writes the immutable commit, and the segments that it makes."""
        segments = spilled_writes(self._state, self._successor)
        await beside(self._state.create(self.key, self._successor.body), *(write.put() for write in segments))

    async def swap(self) -> bool:
        """Makes it HEAD. False: HEAD had moved, perhaps to this very commit by our own echo."""
        return isinstance(await self._state.move_head(self._successor, self._head.version), Applied)


async def change_registry(
    session: Session, kind: str, detail: JsonObject, edit: Callable[[Head], Edits | None]
) -> None:
    """Makes a registry commit as often as it takes, on fresh reads; none if `edit` finds nothing (more) to do."""
    while True:
        head = await session.state.head()
        prepared = await look_up(session.state, partial(_prepared, session, kind, detail, head, edit))
        if prepared is None:
            return
        await prepared.put()
        if await prepared.swap():
            return
        await session.state.pause()


def _prepared(
    session: Session, kind: str, detail: JsonObject, head: Head, edit: Callable[[Head], Edits | None]
) -> RegistryCommit | None:
    edits = edit(head)
    return RegistryCommit(session, kind, detail, head, edits) if edits else None
