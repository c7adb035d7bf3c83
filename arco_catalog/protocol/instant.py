"""One instant of the registry: HEAD, and which of the transactions that it waits for had committed then.

A name that a transaction creates is an intent until it is settled, and counts as soon as the transaction's one object
says `committed` (docs/design/transaction.md). A reader of several names must take one decision for all names
of a transaction, and must not see one transaction's commit and miss another's that came before it.
"""

from collections.abc import Callable, Sequence

from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.name_intents import pending_transactions
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.decisions import read_decision
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.transaction import committed

ROUNDS = 100
"""How often HEAD is read: again for each time that a transaction commits between it and the look at its decision."""
AT_ONCE = 32
"""Decisions that are read concurrently."""


async def one_instant(
    session: Session, counts: Callable[[str, JsonObject], bool]
) -> tuple[RegistryState, Sequence[str], frozenset[str]]:
    """HEAD, the transactions on which the entries that `counts` selects depend, and those of them that had committed
    when HEAD was read.

    A commit counts if it was known before HEAD was read. One that is learned after may have been made after, when HEAD
    had moved on: then HEAD is read once more. What is undecided after HEAD was read was so before. Raises `Unavailable`
    if transactions keep committing in between, which takes many of them a second.
    """
    decided: dict[str, bool] = {}
    for _ in range(ROUNDS):
        head = await session.head()
        waiting = pending_transactions(head.index, counts)
        learned = await _decided(session, [each for each in waiting if each not in decided])
        if not any(learned.values()):
            return head, waiting, frozenset(each for each in waiting if decided.get(each))
        decided |= learned
    raise Unavailable("Too many transactions committed during the request to read a consistent state: try again")


async def _decided(session: Session, transactions: Sequence[str]) -> dict[str, bool]:
    """Whether each committed, of those that are decided."""
    outcomes: dict[str, bool] = {}
    for batch in batches(transactions, AT_ONCE):
        decisions = await gather(*(read_decision(session.state, transaction) for transaction in batch))
        for transaction, decision in zip(batch, decisions, strict=True):
            if (outcome := committed(decision)) is not None:
                outcomes[transaction] = outcome
    return outcomes
