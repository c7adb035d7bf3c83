"""Registry commits that are no request's own: they place and settle intents on names, and add locations.

A table that a transaction creates is an intent on its name: the registry's entry carries the transaction, and counts
once that committed (docs/design/transaction.md). Such commits have fresh operation ids, which are evidence of nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import look_up
from arco_catalog.protocol.prepared_commit import PreparedCommit
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.registry import Operation, RegistryState
from storage_backends import Applied, StoreError


def pending_transactions(
    index: Index, counts: Callable[[str, JsonObject], bool] = lambda key, entry: True
) -> Sequence[str]:
    """The transactions on which entries depend, oldest first; only those entries that `counts` says. No intent is ever
    spilled, so all of them are among the edits."""
    found = {
        transaction
        for key, entry in index.edits.items()
        if entry is not None and isinstance(transaction := entry.get("transaction"), str) and counts(key, entry)
    }
    return sorted(found)


def settling(index: Index, decided: Mapping[str, bool]) -> Edits:
    """Edits that settle the intents of transactions, by whether each committed. No intent is ever spilled."""
    edits: dict[str, JsonObject | None] = {}
    for key, entry in index.edits.items():
        transaction = None if entry is None else entry.get("transaction")
        if entry is None or not isinstance(transaction, str) or transaction not in decided:
            continue
        settled = {name: value for name, value in entry.items() if name != "transaction"}
        edits[key] = settled if decided[transaction] else None
    return edits


async def settle_decided(session: Session, decided: Mapping[str, bool]) -> None:
    """Takes the intents of decided transactions out of the registry, by whether each committed: entries that count, or
    none. Nothing is written where there are none (any more)."""
    one = [*decided] if len(decided) == 1 else None
    detail: JsonObject = {"transactions": [*decided]} if one is None else {"transaction": one[0]}
    await change_registry(session, "settle-names", detail, lambda head: settling(head.index, decided))


async def try_to_settle(session: Session, decided: Mapping[str, bool]) -> None:
    """The same at best effort: a later request that reads the intent settles it, and so does the reconciler."""
    try:
        await settle_decided(session, decided)
    except (StoreError, CommitStateUnknown) as error:
        session.drop_write("the commit that settles names", error)


def internal_commit(
    session: Session, kind: str, detail: JsonObject, head: RegistryState, edits: Edits
) -> PreparedCommit:
    """A registry commit under a fresh operation id. Raises `Unread` where it spills."""
    operation = Operation(session.runtime.ulid(), kind, {"principal": session.request.principal, **detail}, None)
    return PreparedCommit(session.state, head, edits, [operation])


async def change_registry(
    session: Session, kind: str, detail: JsonObject, edit: Callable[[RegistryState], Edits | None]
) -> None:
    """Makes a registry commit as often as it takes, on fresh reads; none if `edit` finds nothing (more) to do."""
    async with session.lock_registry():
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
    session: Session, kind: str, detail: JsonObject, head: RegistryState, edit: Callable[[RegistryState], Edits | None]
) -> PreparedCommit | None:
    edits = edit(head)
    return internal_commit(session, kind, detail, head, edits) if edits else None
