"""Registry commits of the catalog itself, not of a request: for example, they place and settle intents on names,
reserve locations, and record settings.

A table that a transaction creates is an intent on its name: the registry's entry carries the transaction, and counts
once that committed (docs/design/transaction.md). Such commits have fresh operation ids, which are evidence of nothing.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.name_intents import settling
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.protocol.prepared_commit import PreparedCommit
from arco_catalog.state.index import Edits
from arco_catalog.state.needs import Steps, immediately
from arco_catalog.state.registry import Operation, RegistryState
from storage_backends import Applied, StoreError
from storage_backends.lazy_dataclass import dataclass


async def settle_decided(session: Session, decided: Mapping[str, bool]) -> None:
    """Settles the intents on names of these transactions in the registry: intents of committed ones become entries, and
    the others are removed. `decided` maps each transaction, which must be decided, to whether it committed. Writes
    nothing if there are no such intents. Raises as `change_head` does."""
    one = [*decided] if len(decided) == 1 else None
    detail: JsonObject = {"transactions": [*decided]} if one is None else {"transaction": one[0]}
    await change_registry(session, "settle-names", detail, lambda head: immediately(settling(head.index, decided)))


async def try_to_settle(session: Session, decided: Mapping[str, bool]) -> bool:
    """Settles intents on names as `settle_decided` does, not intents on pointers, and returns whether it succeeded.
    False after a failure of the store or an unknown outcome, which is only logged and counted: a later request that
    reads an intent settles it, and so does the reconciler."""
    try:
        await settle_decided(session, decided)
    except (StoreError, CommitStateUnknown) as error:
        session.note_failed_write("the registry commit that settles intents on names", error)
        return False
    return True


async def internal_commit(
    session: Session, kind: str, detail: JsonObject, head: RegistryState, edits: Edits
) -> PreparedCommit:
    """Returns a registry commit of the catalog itself on this HEAD, not yet written: one operation of this kind, with a
    fresh id, and with the request's principal in the detail. Raises `SegmentGone`."""
    operation = Operation(session.runtime.ulid(), kind, {"principal": session.request.principal, **detail}, None)
    return await PreparedCommit.of(session.state, head, edits, [operation])


async def change_registry(
    session: Session, kind: str, detail: JsonObject, edit: Callable[[RegistryState], Steps[Edits | None]]
) -> None:
    """Makes a registry commit of the changes that `edit` computes for HEAD, on fresh reads until it applies; none if
    there is nothing to change (any more). Raises as `change_head` does, and what `edit` raises."""

    async def change(head: RegistryState) -> HeadChange | None:
        edits = await carry_out(session.state, head.index, edit(head))
        return HeadChange(head, detail, edits) if edits else None

    await change_head(session, kind, change)


@dataclass(frozen=True, slots=True)
class HeadChange:
    """A change of the registry by the catalog itself: HEAD with new values outside of the index, the detail for the
    history, and changes of the index."""

    head: RegistryState
    detail: JsonObject
    edits: Edits = field(default_factory=dict)


async def change_head(
    session: Session,
    kind: str,
    change: Callable[[RegistryState], Awaitable[HeadChange | None]],
    *,
    when_late: str | None = None,
) -> RegistryState:
    """Makes a registry commit of the change that `change` returns for HEAD, on fresh reads until it applies. Returns
    the `head` of the change that applied, or, if `change` returns None, HEAD as it was read; the last call of `change`
    decides what was done. Raises `StoreError`, what `change` raises, and `CommitStateUnknown`; with `when_late`, a text
    about what to do then, also past the deadline."""
    async with session.lock_registry():
        sent: tuple[PreparedCommit, RegistryState] | None = None
        while True:
            head = await session.state.head()
            if sent is not None and sent[0].is_in(head):  # it had applied, and the store's answer was lost
                return sent[1]
            changed = await change(head)
            if changed is None:
                return head
            prepared = await internal_commit(session, kind, changed.detail, changed.head, changed.edits)
            if when_late is not None and session.late():
                raise CommitStateUnknown(f"The request's deadline has passed: {when_late}")
            await prepared.put()
            if isinstance(await prepared.swap(), Applied):
                return changed.head
            sent = prepared, changed.head
            await session.state.pause()
