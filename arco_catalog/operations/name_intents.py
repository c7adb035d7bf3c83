"""Registry commits that are no request's own: they lay and settle intents on names, and add locations.

A table that a transaction creates is an intent on its name: the registry's entry carries the transaction, and counts
once that committed (design.md 6.7). Such commits have fresh operation ids, which are evidence of nothing.
"""

from collections.abc import Callable

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.decisions import outcome_of
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.registry import Head, Operation
from storage_backends import Applied


async def settle_names(session: Session, transaction: str, rank: str | None = None) -> None:
    """Waits for the decision (or makes it, by lease or rank) and takes the intents out of the registry: entries that
    count, or none. Raises `CommitFailed` if it stays undecided until shortly before our deadline."""
    committed = await outcome_of(session, transaction, rank)
    detail: JsonObject = {"transaction": transaction}
    await change_registry(session, "settle-names", detail, lambda head: settling(head.index, transaction, committed))


def settling(index: Index, transaction: str, committed: bool) -> Edits:
    """Edits that settle a decided transaction's intents."""
    edits: dict[str, JsonObject | None] = {}
    for prefix in ("relation\n", "location\n"):
        for key, entry in index.scan(prefix):
            if entry.get("transaction") == transaction:
                settled = {name: value for name, value in entry.items() if name != "transaction"}
                edits[key] = settled if committed else None
    return edits


class RegistryCommit:
    """A registry commit under a fresh operation id, on one HEAD: written at one time, made HEAD at another."""

    def __init__(self, session: Session, kind: str, detail: JsonObject, head: Head, edits: Edits) -> None:
        self._state = session.state
        self._head = head
        operation = Operation(session.runtime.ulid(), kind, {"principal": session.call.principal, **detail}, None)
        commit = session.runtime.ulid()
        self._successor = head.successor(
            commit=commit, at_ms=session.runtime.now_ms(), edits=edits, operations=[operation]
        )
        self.key = session.state.paths.registry_commit(commit)

    async def put(self) -> None:
        """Writes the immutable commit."""
        await self._state.create(self.key, self._successor.body)

    async def swap(self) -> bool:
        """Makes it HEAD. False: HEAD had moved, perhaps to this very commit by our own echo."""
        return isinstance(await self._state.move_head(self._successor, self._head.version), Applied)


async def change_registry(
    session: Session, kind: str, detail: JsonObject, edit: Callable[[Head], Edits | None]
) -> None:
    """Makes a registry commit as often as it takes, on fresh reads; none if `edit` finds nothing (more) to do."""
    while True:
        head = await session.state.head()
        edits = edit(head)
        if not edits:
            return
        commit = RegistryCommit(session, kind, detail, head, edits)
        await commit.put()
        if await commit.swap():
            return
        await session.state.pause()
