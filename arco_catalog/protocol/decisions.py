"""Decisions of transactions: how readers, writers and takeovers learn them, and who may make them
(docs/design/transaction.md).

A writer acts on an abort only once it is definite: its own compare-and-swap applied, or it read the decision.
"""

from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.internal_commits import settle_decided, try_to_settle
from arco_catalog.state.access import State
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.transaction import Decision, Status, committed, encode
from storage_backends import Applied
from storage_backends.backoff import poll_pause_s

POLL_SECONDS = 0.05
ANSWER_MS = 2_000
"""How much of a deadline is kept for answering when a wait was in vain."""


async def read_decision(state: State, transaction: str) -> Decision | None:
    """Reads the object of a transaction, which may still be pending, and returns it; None if it does not exist yet, or
    was collected."""
    key = state.paths.transaction(transaction)
    found = await state.read(key)
    return None if found is None else Decision.parse(found, key)


async def decide(state: State, runtime: Runtime, decision: Decision, status: Status) -> bool:
    """Moves a pending transaction to the decision `status`, and returns whether the write applied. It may fail because
    another decision came first, or because our own write had applied before."""
    key = state.paths.transaction(str(decision.document["transaction"]))
    body = encode(decision.decided(status, runtime.ulid()))
    return isinstance(await state.swap(key, body, decision.version), Applied)


async def abort_if_undecided(state: State, runtime: Runtime, transaction: str) -> bool:
    """Makes sure that a transaction is decided, by aborting it if it is not, whether or not its lease is over; one
    without an object, because it never began or the object was collected, is created as aborted. Returns whether it
    committed; False for one that is created."""
    while True:
        decision = await read_decision(state, transaction)
        if decision is None:
            closed = Decision.closed(transaction=transaction, move=runtime.ulid())
            body = encode(closed.document)
            if isinstance(await state.swap(state.paths.transaction(transaction), body, None), Applied):
                return False
        elif (known := committed(decision)) is not None:
            return known
        elif await decide(state, runtime, decision, "aborted"):
            return False
        await state.pause()


async def read_outcome(state: State, transaction: str) -> bool | None:
    """Whether a transaction has committed by now; False while it is pending or if it was aborted, None if it has no
    object (not yet, or it was collected) or was created as aborted (`Decision.is_closed`). A caller that read an intent
    before must then read it again: if it is still there, the transaction was aborted; otherwise it has been settled
    meanwhile."""
    decision = await read_decision(state, transaction)
    return None if decision is None or decision.is_closed else decision.status == "committed"


async def transaction_committed(state: State, transaction: str) -> bool:
    """Reads whether a transaction has committed by now; False for any other, also for one that does not exist (any
    more)."""
    return committed(await read_decision(state, transaction)) is True


async def resolve_for_read(state: State, pointer: Pointer) -> Pointer:
    """Returns the entity's pointer without an intent, for a reader: with the new state if the intent's transaction
    committed, else with the old one. A pointer without an intent is returned as it is. If the decision was collected,
    the pointer is read once more: if it has this intent no longer, it is used instead; if it still has it, or is
    gone, the old state is returned. Nothing is written."""
    while pointer.intent is not None:
        outcome = await read_outcome(state, pointer.intent)
        if outcome is not None:
            return pointer.resolved(outcome)
        again = await state.pointer(pointer.entity)
        if again is None or again.intent == pointer.intent:
            return pointer.resolved(committed=False)  # collected, so it was decided: a commit would have been settled
        pointer = again
    return pointer


async def wait_for_decision(session: Session, transaction: str, rank: str | None = None) -> bool:
    """Waits for the decision of a transaction, and returns whether it committed; False if it does not exist (any more).
    After the lease, or at once for a request of smaller `rank`, it aborts the transaction and, at best effort, settles
    its intents on names, because its coordinator may have crashed.

    Raises `Unavailable` if the transaction is still undecided shortly before the request's deadline, because the answer
    depends on it. A caller that has changed something already must report an unknown outcome instead.
    """
    while True:
        decision = await read_decision(session.state, transaction)
        known = committed(decision)
        if decision is None or known is not None:
            return known is True
        if decision.expired or (rank is not None and rank < decision.rank):
            if await decide(session.state, session.runtime, decision, "aborted"):
                if decision.creates:
                    await try_to_settle(session, {transaction: False})
                return False
            continue
        if session.deadline.left_ms() <= ANSWER_MS:
            raise Unavailable("A transaction over the same table or name is under way, and not decided yet: try again")
        await session.runtime.sleep(poll_pause_s(session.runtime.random(), POLL_SECONDS))


async def resolve_for_write(
    session: Session, entity: str, pointer: Pointer | None, rank: str | None = None
) -> Pointer | None:
    """Returns the pointer without its intent, as the base of a write, after waiting until the intent's transaction is
    decided, which this may abort as `wait_for_decision` does; a pointer without an intent as it is, and None if the
    pointer does not exist (any more). Raises `Unavailable` as `wait_for_decision` does."""
    while pointer is not None and pointer.intent is not None:
        as_decided = await wait_for_decision(session, pointer.intent, rank)
        again = await session.state.pointer(entity)
        if again is not None and again.intent == pointer.intent:
            return again.resolved(as_decided)
        pointer = again
    return pointer


async def settle_names(session: Session, transaction: str, rank: str | None = None) -> None:
    """Waits for the decision of a transaction as `wait_for_decision` does, which may abort it, and then settles the
    transaction's intents on names by a registry commit. Raises `Unavailable` if it is still undecided shortly before
    the request's deadline, and as `settle_decided` does."""
    await settle_decided(session, {transaction: await wait_for_decision(session, transaction, rank)})
