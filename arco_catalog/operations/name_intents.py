"""Registry commits that are no request's own: they lay and settle intents on names, and add locations.

A table that a transaction creates is an intent on its name: the registry's entry carries the transaction, and counts
once that committed (design.md 6.7). Such commits have fresh operation ids, which are evidence of nothing.
"""

from collections.abc import Callable
from functools import partial

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.decisions import outcome_of
from arco_catalog.operations.lookup import look_up
from arco_catalog.operations.registry_commit import RegistryCommit
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
    """Edits that settle a decided transaction's intents. No intent is ever spilled."""
    edits: dict[str, JsonObject | None] = {}
    for key, entry in index.edits.items():
        if entry is not None and entry.get("transaction") == transaction:
            settled = {name: value for name, value in entry.items() if name != "transaction"}
            edits[key] = settled if committed else None
    return edits


def nobodys_commit(session: Session, kind: str, detail: JsonObject, head: Head, edits: Edits) -> RegistryCommit:
    """A registry commit under a fresh operation id. Raises `Unread` where it spills."""
    operation = Operation(session.runtime.ulid(), kind, {"principal": session.call.principal, **detail}, None)
    return RegistryCommit(session.state, head, edits, [operation])


async def change_registry(
    session: Session, kind: str, detail: JsonObject, edit: Callable[[Head], Edits | None]
) -> None:
    """Makes a registry commit as often as it takes, on fresh reads; none if `edit` finds nothing (more) to do."""
    async with session.registry_turn():
        while True:
            head = await session.state.head()
            prepared = await look_up(session.state, partial(_prepared, session, kind, detail, head, edit))
            if prepared is None:
                return
            await prepared.put()
            if isinstance(await prepared.swap(), Applied):
                return
            await session.state.pause()


def _prepared(
    session: Session, kind: str, detail: JsonObject, head: Head, edit: Callable[[Head], Edits | None]
) -> RegistryCommit | None:
    edits = edit(head)
    return nobodys_commit(session, kind, detail, head, edits) if edits else None
