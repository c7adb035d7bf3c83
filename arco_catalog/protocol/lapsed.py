"""Settles intents on names of transactions whose coordinator crashed or lost the store, before or after the decision.

They stay in HEAD, which every request reads, until a request uses that name. So the reconciler settles them, and so
does a transaction that finds many of them.
"""

from collections.abc import Callable

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError
from arco_catalog.planning.name_intents import pending_transactions
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.decisions import abort_if_undecided, read_decision
from arco_catalog.protocol.internal_commits import try_to_settle
from arco_catalog.state.transaction import committed
from storage_backends import StoreError

CROWDED = 100
"""If HEAD has intents of more transactions than this, a transaction that places intents on names settles lapsed ones
first. With the transactions of one lease, this bounds the intents in HEAD."""
MAX_TRANSACTIONS = 1_000
"""The limit of transactions in one run, the oldest first."""
AT_ONCE = 32
"""The number of decisions that are read concurrently, and settled by one registry commit."""


async def settle_lapsed(
    session: Session, limit: int = MAX_TRANSACTIONS, should_stop: Callable[[], bool] = lambda: False
) -> int:
    """Settles the intents on names of decided transactions, and of ones that have outlived their lease, which it
    aborts. It examines at most `limit` transactions, the oldest first, until `should_stop` is true, and leaves
    undecided ones within their lease. Returns the number of settled transactions. Raises `StoreError` or
    `InternalError` if HEAD can't be read; later reads and writes that fail are logged and counted, and left for the
    next run."""
    waiting = pending_transactions((await session.state.head()).index)[:limit]
    settled = 0
    for batch in batches(waiting, AT_ONCE):
        if should_stop():
            break
        outcomes = await gather(*(_outcome(session, transaction) for transaction in batch))
        decided = {each: committed for each, committed in zip(batch, outcomes, strict=True) if committed is not None}
        if decided and await try_to_settle(session, decided):
            settled += len(decided)
    return settled


async def _outcome(session: Session, transaction: str) -> bool | None:
    """Whether a transaction committed, after aborting it if the lease is over; False if it does not exist (any more),
    None if it is still undecided. Also None, which is logged and counted, if the store failed, if it is unknown whether
    the abort was written, or if the stored object is corrupt."""
    state, runtime = session.state, session.runtime
    try:
        decision = await read_decision(state, transaction)
        if decision is not None and decision.expired:
            return await abort_if_undecided(state, runtime, transaction)
        return committed(decision)
    except (StoreError, CommitStateUnknown, InternalError) as error:
        session.note_failed_write(f"the decision of transaction {transaction}", error)
        return None
